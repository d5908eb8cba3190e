"""Stored results of whole models as evaluations record them: with their variant, versions and host."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way
from dlbricks_tui.evaluations.evaluation import RecordedResult
from dlbricks_tui.evaluations.recorded_facts import facts_of_host, package_facts, tuning_variables
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.jobs import CutModel
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.variant import (
    Precision,
    stated_kernels,
    stated_precision,
    stated_threads,
)
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.records import Provenance, System
from dlbricks_tui.store.selections import LEAST_FIRST, by_id


@dataclass(frozen=True, slots=True)
class FoundResult:
    """A model in one combination, as the store has it, and where the result comes from."""

    recorded: RecordedResult
    found: SystemEstimate
    # None if the whole model was not timed.
    timed: Summary | None
    # None if an older version measured it.
    provenance: Provenance | None


def found_result(
    store: ResultsDatabase,
    part: RunRequest,
    model: CutModel,
    name: str,
    sha256: str,
    system: System | None = None,
    until: str | None = None,
) -> FoundResult:
    """Return what the store has of a model by the runtime of a part of a run; the result gets the name.

    The results are those of this host, or of a system. The end-to-end result is the newest one, or the newest one up
    to a time.
    """
    system = system or fingerprint()
    conditions = conditions_of(system.id, part.runtime, part.method)
    way = Way(system.id, conditions.runtime, model.decomposition.graph.level, conditions.protocol)
    inquiry = Inquiry(store, model.decomposition, Options(measured_only=True))
    found = inquiry.by(way)
    timed = inquiry.timed(way) if until is None else _timed_until(store, model, way, until)
    origin = _origin(store, way, None if timed is None else timed.run)
    estimated = found.estimate.composed if found.estimate.coverage.complete else None
    recorded = RecordedResult(
        model=name,
        **_facts_of(part.runtime.framework, part.runtime.version, part.runtime.identity),
        variables=tuning_variables(dict(part.runtime.settings.environment)),
        batch=model.decomposition.graph.batch_size,
        precision=found.variant.precision,
        when=timed.when if timed is not None else origin.when if origin is not None else "",
        **_latencies_of(store, timed),
        estimate_ms=None if estimated is None else estimated.sequential_ms,
        estimate_low_ms=None if estimated is None else estimated.interval.low_ms,
        estimate_high_ms=None if estimated is None else estimated.interval.high_ms,
        packages=package_facts(origin, way.protocol),
        host=facts_of_host(system, origin),
        sha256=sha256,
    )
    return FoundResult(recorded, found, timed, origin)


def results_in_other_variants(
    store: ResultsDatabase, model: CutModel, name: str, framework: str
) -> Iterator[RecordedResult]:
    """Yield the newest end-to-end result of a model by a framework in each variant, on this system or one like it.

    At other batch sizes a model has other keys, so it is also sought by its name in the library.
    """
    here, systems, runtimes = fingerprint(), by_id(store.systems()), by_id(store.runtimes())
    graph = model.decomposition.graph
    levels = {graph.level, model.whole.level}
    found: dict[tuple[str, str, int], Summary] = {}
    for subject in (*(equal(model=key) for key in end_to_end_keys(graph).values()), equal(name=graph.name)):
        for each in store.select(subject & equal(of="model", good=True), order=LEAST_FIRST).summaries():
            system = systems.get(each.system)
            # Another governor or number of cores makes another system of the same processor.
            is_alike = each.system == here.id or (system is not None and system.cpu == here.cpu)
            if is_alike and each.runtime.startswith(f"{framework}-") and each.level in levels:
                variant = (each.system, each.runtime, each.batch_size)
                found[variant] = max(each, found.get(variant, each), key=attrgetter("precedence"))
    for each in found.values():
        way = Way(each.system, each.runtime, each.level, each.protocol)
        origin, stored = _origin(store, way, each.run), runtimes.get(each.runtime)
        version = each.runtime.split(" ")[0].partition("-")[2] if stored is None else stored.version
        settings = {} if stored is None else dict(stored.settings)
        precision = stated_precision(each.runtime)
        yield RecordedResult(
            model=name,
            **_facts_of(framework, version, each.runtime),
            variables=tuning_variables(settings),
            batch=each.batch_size,
            precision=Precision.FILE if precision is Precision.F32 and graph.is_quantised else precision,
            when=each.when,
            **_latencies_of(store, each),
            packages=package_facts(origin, each.protocol),
            host=facts_of_host(systems.get(each.system, here), origin),
            sha256="" if origin is None else str(dict(origin.models).get(each.model) or ""),
        )


def _timed_until(store: ResultsDatabase, model: CutModel, way: Way, until: str) -> Summary | None:
    """Return the newest good end-to-end result of a model up to a time."""
    timed = [it for it in _timed(store, model, way) if it.when <= until]
    return max(timed, key=attrgetter("precedence"), default=None)


def samples_since(store: ResultsDatabase, model: CutModel, way: Way, since: str) -> list[tuple[float, ...]]:
    """Return the samples of each good end-to-end result of a model since a time: each is of a process of its own."""
    return [store.samples_ms(it) for it in _timed(store, model, way) if it.when >= since]


def _timed(store: ResultsDatabase, model: CutModel, way: Way) -> Iterator[Summary]:
    of_way = equal(of="model", good=True, system=way.system, runtime=way.runtime, protocol=way.protocol)
    for level, key in end_to_end_keys(model.decomposition.graph).items():
        yield from store.select(of_way & equal(model=key, level=level.value), order=LEAST_FIRST).summaries()


def _facts_of(framework: str, version: str, identity: str) -> dict[str, Any]:
    kernels = stated_kernels(identity)
    return {
        "framework": framework,
        "version": version,
        "threads": stated_threads(identity),
        "instructions": kernels.instructions,
        "optimisation": kernels.optimisation,
    }


def _latencies_of(store: ResultsDatabase, timed: Summary | None) -> dict[str, Any]:
    if timed is None:
        return {"measured_ms": None, "low_ms": None, "high_ms": None, "samples_ms": ()}
    return {
        "measured_ms": timed.trimmed_mean_ms,
        "low_ms": timed.low_ms,
        "high_ms": timed.high_ms,
        "samples_ms": store.samples_ms(timed),
    }


def _origin(store: ResultsDatabase, way: Way, run: str | None) -> Provenance | None:
    """Return where a result comes from; without a run, where the newest results of the way come from."""
    if run is not None:
        return store.provenance_of(run, way.runtime)
    found = store.least_first(Provenance, equal(system=way.system, runtime=way.runtime, protocol=way.protocol))
    return next(reversed(found), None)
