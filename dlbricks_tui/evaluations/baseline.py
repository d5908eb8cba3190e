"""Earlier latencies of whole models, the facts recorded with them, and how they differ from today's."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from dlbricks_tui.evaluations.evaluation import SHORT_HASH, EvaluatedModel, Evaluation, RecordedResult
from dlbricks_tui.host.fingerprint import GIBIBYTE, UNKNOWN
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import TRAITS, runtime_title
from dlbricks_tui.runtime.variant import (
    INSTRUCTIONS_VARIABLE,
    OPTIMISATION_VARIABLE,
    stated_precision,
    stated_threads,
    stated_variant,
    threads_in_words,
)
from dlbricks_tui.settings.setting import plain
from dlbricks_tui.settings.variant import KERNELS
from dlbricks_tui.store.change import (
    Change,
    Timing,
    changes_from,
    known_changes,
    newest_together,
    timing_by,
    timing_of,
    with_doubt,
)
from dlbricks_tui.store.records import EndToEnd, Fact, Facts, Provenance, Record, RuntimeRecord, System

Described = TypeVar("Described", System, RuntimeRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The earlier latency of a whole model in one combination, and what is known of that measurement."""

    result: RecordedResult
    level: Level
    # None: the usual one.
    method: Method | None = None
    # None if the whole model was not timed.
    timing: Timing | None = None
    # The ids of the system and the runtime, and the key of the model; empty: not known.
    system: str = ""
    runtime: str = ""
    key: str = ""
    # The model as an evaluation states it, once for each format.
    models: tuple[EvaluatedModel, ...] = ()


def baselines_of_evaluation(evaluation: Evaluation) -> tuple[Baseline, ...]:
    """Return the recorded results of an evaluation."""
    contents = {it.name: it.sha256 for it in evaluation.models}
    return tuple(
        [
            replace(
                baseline_of_one_process(
                    replace(it, sha256=it.sha256 or contents.get(it.model, "")), evaluation.measuring.level
                ),
                method=evaluation.measuring.method or _method_of(str(dict(it.packages).get(METHOD))),
                models=tuple([model for model in evaluation.models if model.name == it.model]),
            )
            for it in evaluation.results
        ]
    )


def baseline_of_one_process(result: RecordedResult, level: Level) -> Baseline:
    """Return a result of one process, as an evaluation records it."""
    timing: Timing | None = None
    if result.measured_ms is not None and result.measured_ms > 0:
        if result.low_ms is not None and result.high_ms is not None:
            timing = Timing(
                value_ms=result.measured_ms,
                low_ms=result.low_ms,
                high_ms=result.high_ms,
                samples_ms=result.samples_ms,
                processes=1,
            )
        elif result.samples_ms:
            # Without an interval only samples tell how sure the latency is.
            timing = timing_of([result.samples_ms])
    return Baseline(result=result, level=level, timing=timing)


def baselines_of_records(records: Sequence[Record], system: str) -> tuple[Baseline, ...]:
    """Return the newest good results of whole models on a system, each combination once.

    Results of several runs within half a day count together.
    """
    runtimes = newest_by_id(it for it in records if isinstance(it, RuntimeRecord))
    systems = newest_by_id(it for it in records if isinstance(it, System))
    origins = {(it.run, it.runtime): it for it in records if isinstance(it, Provenance)}
    found: defaultdict[tuple[object, ...], list[EndToEnd]] = defaultdict(list)
    for it in records:
        if isinstance(it, EndToEnd) and it.good and it.system == system:
            runtime = runtimes[it.runtime]
            variant = (stated_threads(it.runtime), stated_precision(it.runtime), runtime.settings, it.batch_size)
            found[(it.name, runtime.framework, variant, it.level)].append(it)
    return tuple(
        [
            baseline_of(some, runtimes[newest.runtime], systems[system], origins.get((newest.run, newest.runtime)))
            for some in map(_newest_together, found.values())
            for newest in some[-1:]
        ]
    )


def baseline_of(
    results: Sequence[EndToEnd], runtime: RuntimeRecord, system: System, origin: Provenance | None = None
) -> Baseline:
    """Return the results of a whole model in one combination, one result or more, as one; the last is the newest."""
    newest, timing = results[-1], timing_of_results(results)
    recorded = RecordedResult(
        model=newest.name,
        framework=runtime.framework,
        version=runtime.version,
        **stated_variant(newest.runtime, newest.batch_size).parts,
        variables=tuning_variables(dict(runtime.settings)),
        when=newest.when,
        measured_ms=timing.value_ms,
        low_ms=timing.low_ms,
        high_ms=timing.high_ms,
        samples_ms=timing.samples_ms,
        packages=package_facts(origin, newest.protocol),
        host=facts_of_host(system, origin),
        sha256="" if origin is None else str(dict(origin.models).get(newest.model) or ""),
    )
    return Baseline(
        result=recorded,
        level=newest.level,
        method=_method_of(newest.protocol),
        timing=timing,
        system=system.id,
        runtime=newest.runtime,
        key=newest.model,
    )


def timing_of_results(results: Sequence[EndToEnd]) -> Timing:
    """Return the latency of a whole model in several processes, each with a result."""
    samples = [sample for it in results for sample in it.steady_ms]
    latencies = [with_doubt(it.statistics.latency, it.busy) for it in results]
    return timing_by(latencies, samples, busy=any(it.busy for it in results))


def newest_by_id(described: Iterable[Described]) -> Mapping[str, Described]:
    """Return systems or runtimes by their ids, each as described last."""
    return {it.id: it for it in described}


def _newest_together(results: Sequence[EndToEnd]) -> list[EndToEnd]:
    """Return the newest result of each run at about the time of the last one, measured in the same way, oldest first.

    A run times a model twice if it times its bricks too.
    """
    newest = sorted(results, key=lambda it: datetime.fromisoformat(it.when))[-1]
    way = newest.runtime, newest.protocol, newest.model
    return newest_together([it for it in results if (it.runtime, it.protocol, it.model) == way])


def _method_of(protocol: str) -> Method | None:
    """Return the method of a result by its id; None for results of other programs, such as those of the paper."""
    return next((method for method in Method if protocol.startswith(f"{method.value}-")), None)


# The name of the fact that is the id of the method.
METHOD = "method"
# The facts about a system that are part of its id, and so hold for all of its results.
_LASTING = ("governor", "turbo", "hyper_threading", "vectors", "quota_cores")
# Variables that are parts of a variant by themselves.
_OF_THE_VARIANT = (INSTRUCTIONS_VARIABLE, OPTIMISATION_VARIABLE)


def package_facts(origin: Provenance | None, protocol: str) -> Facts:
    """Return the versions of the packages that a result was measured with, and the method."""
    return (*(() if origin is None else origin.packages), (METHOD, protocol))


def facts_of_host(system: System, origin: Provenance | None) -> Facts:
    """Return the facts about a system as they were when a result was measured, without those that it does not tell."""
    described = dict(system.facts)
    found: dict[str, Fact] = {
        "cpu": system.cpu,
        "cores": system.cores,
        "memory_gib": math.ceil(system.memory_bytes / GIBIBYTE),
        "instance_type": system.instance_type,
        **{name: described[name] for name in _LASTING if name in described},
        **({} if origin is None else dict(origin.host)),
    }
    return tuple((name, fact) for name, fact in found.items() if is_told(fact))


def is_told(fact: Fact) -> bool:
    """Return whether a host, or a framework, tells a fact."""
    return fact not in (None, "", UNKNOWN)


def tuning_variables(settings: Mapping[str, Fact]) -> dict[str, str]:
    """Return the variables that tune a runtime, without those of its variant."""
    return {name: str(value) for name, value in settings.items() if name not in _OF_THE_VARIANT}


NOT_SET = "not set"
# The titles of facts in messages. All others have the name of the fact.
TITLES = {
    "cpu": "processor",
    "memory_gib": "memory (GiB)",
    "instance_type": "instance type",
    "hyper_threading": "hyper-threading",
    "vectors": "instruction sets",
    "quota_cores": "time quota (cores)",
    "onednn": "oneDNN",
    "python": "Python",
    "os": "operating system",
}

# The parts of a variant beside its threads.
_PARTS = {
    "batch": "batch size",
    "precision": "precision",
    "instructions": "instruction set of the kernels",
    "optimisation": "graph optimisation",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A circumstance that was another one for the earlier result."""

    subject: str
    was: str
    now: str

    @property
    def in_words(self) -> str:
        """The difference as messages show it."""
        return f"{self.subject}: {self.was} before, {self.now} now"


@dataclass(frozen=True, slots=True)
class ComparableTimings:
    """The timings of two results: both end to end, or both estimates, or neither if there are no such two.

    Those of different batch sizes are per item.
    """

    was: Timing | None
    now: Timing | None
    end_to_end: bool = False
    per_item: bool = False


class Judgement(NamedTuple):
    """Today's result of a model beside an earlier one."""

    was: Baseline | None
    now: Baseline | None
    timings: ComparableTimings
    # None if the timings cannot be compared.
    change: Change | None
    # The known circumstances that differ, the system first.
    differences: tuple[Difference, ...]


def judged(pairs: Sequence[tuple[Baseline | None, Baseline | None]], by: float) -> list[Judgement]:
    """Return the verdicts on earlier results and those of today; None where there is none.

    Changes of up to `by`, a share of the latency, count as none. P-values are corrected for the number of results.
    """
    timings = [comparable(was, now) if was and now else ComparableTimings(None, None) for was, now in pairs]
    changes = known_changes([(it.was, it.now) for it in timings], changes_from(by))
    return [
        Judgement(was, now, timed, change, differences(was, now) if was and now else ())
        for (was, now), timed, change in zip(pairs, timings, changes, strict=True)
    ]


def differences(was: Baseline, now: Baseline) -> tuple[Difference, ...]:
    """Return all known circumstances of two results of a model that differ, those that users choose first."""
    one, other = was.result, now.result
    told = [
        *([("system", was.system, now.system)] if was.system and now.system else ()),
        *_hashes("model content", one.sha256, other.sha256),
        *(_hashes("layers of the model", was.key, now.key) if one.sha256 == other.sha256 else ()),
        ("framework", runtime_title(one.framework), runtime_title(other.framework)),
        ("threads", threads_in_words(one.threads), threads_in_words(other.threads)),
        *((title, str(plain(one.parts[part])), str(plain(other.parts[part]))) for part, title in _PARTS.items()),
    ]
    for name in sorted({*one.variables, *other.variables}):
        told.append((f"variable {name}", one.variables.get(name, NOT_SET), other.variables.get(name, NOT_SET)))
    # A framework's own package has its version.
    own = {other.framework, *(TRAITS[other.framework].packages if other.framework in TRAITS else ())}
    if one.framework == other.framework:
        told.append((f"{runtime_title(other.framework)} version", one.version, other.version))
    told += _facts(one.packages, [it for it in other.packages if it[0] not in own])
    told += _facts(one.host, other.host)
    return tuple(Difference(*it) for it in told if it[1] != it[2])


def _hashes(subject: str, was: str, now: str) -> Iterator[tuple[str, str, str]]:
    if was and now:
        yield subject, was[:SHORT_HASH], now[:SHORT_HASH]


def _facts(was: Facts, now: Iterable[tuple[str, Fact]]) -> Iterator[tuple[str, str, str]]:
    """Yield the facts that both tell, in words; floats that are close are the same."""
    before, words = dict(was), {True: "on", False: "off"}
    for name, value in now:
        if is_told(value) and is_told(before.get(name)):
            known = before[name]
            both = (value, value) if _is_close(known, value) else (known, value)
            told = [words[it] if isinstance(it, bool) else str(it) for it in both]
            yield TITLES.get(name, name), told[0], told[1]


def _is_close(was: Fact, now: Fact) -> bool:
    numbers = isinstance(was, int | float) and isinstance(now, int | float)
    return numbers and isinstance(was + now, float) and math.isclose(was, now)  # type: ignore[arg-type, operator]


def nearest(now: Baseline, earlier: Iterable[Baseline]) -> Baseline | None:
    """Return the earlier result of the same model and framework that differs least; of equal ones the newest.

    None if the framework has no earlier result of the model.
    """
    same = now.result.model, now.result.framework
    fitting = [it for it in earlier if (it.result.model, it.result.framework) == same]
    by_age = sorted(fitting, key=lambda it: it.result.when, reverse=True)
    return min(by_age, key=lambda it: _distance(it.result, now.result), default=None)


def _distance(was: RecordedResult, now: RecordedResult) -> tuple[float, ...]:
    """Return how far two results differ: what changes latencies most comes first."""
    return (
        abs(math.log2(was.batch / now.batch)),
        was.precision is not now.precision,
        # A result without a latency is the last choice.
        was.measured_ms is None and was.estimate_ms is None,
        _threads_apart(was.threads, now.threads),
        *(was.parts[it.field] is not now.parts[it.field] for it in KERNELS),
        len({name for name, _ in set(was.variables.items()) ^ set(now.variables.items())}),
        was.version != now.version,
    )


def _threads_apart(was: int | None, now: int | None) -> float:
    if was is None or now is None:
        return 0.0 if was is now else math.inf
    return abs(math.log2(was / now))


def comparable(was: Baseline, now: Baseline) -> ComparableTimings:
    """Return two end-to-end timings, or two estimates if one is missing; per item if batch sizes differ."""
    sizes = was.result.batch, now.result.batch
    items = sizes if sizes[0] != sizes[1] else (1, 1)
    for end_to_end in (True, False):
        before, after = (it.timing if end_to_end else _estimate(it.result) for it in (was, now))
        if before is not None and after is not None:
            both = before.per_item(items[0]), after.per_item(items[1])
            return ComparableTimings(*both, end_to_end, per_item=sizes[0] != sizes[1])
    return ComparableTimings(None, None)


def _estimate(result: RecordedResult) -> Timing | None:
    value, low, high = result.estimate_ms, result.estimate_low_ms, result.estimate_high_ms
    if value is None or low is None or high is None:
        return None
    return Timing(value_ms=value, low_ms=low, high_ms=high)
