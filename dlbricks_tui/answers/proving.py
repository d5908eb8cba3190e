"""The what-ifs that a user wants to prove, and the runs that measure what they lack."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dlbricks_tui.analysis.lacking import Host, Lack, expected_seconds, lacks_of, requests_for
from dlbricks_tui.analysis.roofline import applies_to
from dlbricks_tui.analysis.what_if import Execution, WhatIf, WhatIfKind
from dlbricks_tui.answers.analysing import Analysis
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host import processor
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.host.host_lock import host_lock
from dlbricks_tui.host.peaks import PEAKS_SECONDS, keep_peaks
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.runs.request import InputShape, InputValue, RunRequest
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.wording.numbers import counted, names_of

ALL = "all"


class ProvingError(UserError):
    """There is no what-if of that id, or its model was analysed on another system."""


@dataclass(frozen=True, slots=True)
class MeasuringPlan:
    """The executions and peaks that the analysis of a model lacks, and about how long it takes to measure them."""

    model: str
    lacks: tuple[Lack, ...]
    requests: tuple[RunRequest, ...]
    seconds: float
    # The number of threads whose peaks are missing; None if none are.
    peaks_threads: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to measure."""
        return not self.lacks and self.peaks_threads is None


def plan_of(
    found: Analysis,
    kinds: Collection[WhatIfKind],
    data: DataFolder,
    inputs: Mapping[str, Shape],
    values: Mapping[str, Numbers],
) -> MeasuringPlan:
    """Return what the what-ifs of these kinds lack on this host, and with all kinds the peaks for the roofline."""
    baseline = found.baseline
    measured = [it.execution for it in found.executions if it.is_measured]
    measured += [it.change for it in found.what_ifs if it.change is not None]
    host = Host(fingerprint().cores, processor.instruction_sets(HostFiles()), Registry(data.path).all())
    lacks = lacks_of(found.source, baseline.execution, measured, host, kinds)
    end_to_end, composed = baseline.found.end_to_end, baseline.estimate.composed
    latency_ms = end_to_end.value_ms if end_to_end is not None else composed.sequential_ms if composed else 0.0
    shapes = tuple(InputShape(name, shape) for name, shape in inputs.items())
    numbers = tuple(InputValue(name, value) for name, value in values.items())
    requests = tuple(replace(it, inputs=shapes, values=numbers) for it in requests_for(found.source, lacks))
    seconds = sum(expected_seconds(it, latency_ms) for it in lacks)
    threads = _peaks_threads(found, lacks, data) if set(kinds) == set(WhatIfKind) else None
    if threads is not None:
        seconds += PEAKS_SECONDS
    return MeasuringPlan(found.source.name, lacks, requests, seconds, threads)


def _peaks_threads(found: Analysis, lacks: Sequence[Lack], data: DataFolder) -> int | None:
    """Return the number of threads whose peaks the roofline lacks once the executions are measured."""
    baseline = found.baseline.execution
    if not applies_to(found.baseline.found.way.runtime):
        return None
    competing = [it.execution for it in lacks if _competes(it.execution, baseline)]
    threads = max([found.threads, *(it.runtime.settings.threads or 1 for it in competing)])
    if threads == found.threads:
        return threads if found.lacks_peaks else None
    with ResultsDatabase(data.store) as store:
        known = any((it.system, it.threads) == (found.system, threads) for it in store.peaks())
    return None if known else threads


def _competes(execution: Execution, baseline: Execution) -> bool:
    """Return whether an execution counts for the best once it is measured."""
    precisions = execution.runtime.settings.precision, baseline.runtime.settings.precision
    is_alike = execution.batch_size == baseline.batch_size and precisions[0] is precisions[1]
    return is_alike and execution.runtime.at_once == 1


def lacks_in_words(plan: MeasuringPlan) -> Iterator[tuple[str, str]]:
    """Yield what a plan measures: the kind of the what-ifs that compare it, and the execution or the peaks."""
    for lack in plan.lacks:
        yield "baseline" if lack.kind is None else lack.kind.value, lack.in_words
    if plan.peaks_threads is not None:
        yield "roofline", f"the peaks of this host with {counted(plan.peaks_threads, 'thread')}"


def measure_peaks_of_host(threads: int, data: DataFolder) -> None:
    """Measure the peaks of this host, and store them; raise PeaksError while a run measures."""
    with ResultsDatabase(data.store) as store:
        keep_peaks(store, fingerprint(), threads, host_lock(), data.path)


def refuse_other_system(found: Sequence[Analysis]) -> None:
    """Raise ProvingError if a model was analysed on another system than this host."""
    here = fingerprint().id
    for each in found:
        if each.system != here:
            raise ProvingError(
                f"{each.source.name} was analysed on another system, and models run on this host: leave out --system"
            )


class Asked(NamedTuple):
    """The what-ifs of a model that are to be proved, and the ids that it does not have."""

    found: Analysis
    what_ifs: tuple[WhatIf, ...]
    unknown: tuple[str, ...]


def asked_what_ifs(found: Sequence[Analysis], ids: Collection[str], kinds: Collection[WhatIfKind]) -> tuple[Asked, ...]:
    """Return the what-ifs with these ids, or with `all` those that can be run; refuse an id that no model has."""
    asked = tuple([_asked(each, tuple(dict.fromkeys(ids)), kinds) for each in found])
    missing = set.intersection(*(set(each.unknown) for each in asked)) if asked else set()
    for each in (it for it in ids if it in missing):
        known = dict.fromkeys(it.id for one in found for it in one.what_ifs if it.kind in kinds)
        there = f"there are {', '.join(known)}" if known else "there are none: --measure measures what they lack"
        models = names_of(list(dict.fromkeys(it.source.name for it in found)))
        raise ProvingError(f"no what-if {each[:60]!r} of {models}; {there}")
    if not any(each.what_ifs for each in asked):
        raise ProvingError("there is no what-if to prove: --measure measures what they lack")
    return asked


def _asked(found: Analysis, ids: Sequence[str], kinds: Collection[WhatIfKind]) -> Asked:
    known = {it.id: it for it in found.what_ifs if it.kind in kinds}
    if ALL in ids:
        return Asked(found, tuple(it for it in known.values() if it.change is not None), ())
    return Asked(found, tuple(known[each] for each in ids if each in known), tuple(it for it in ids if it not in known))
