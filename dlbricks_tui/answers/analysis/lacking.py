"""Results that the analysis of a model lacks on this host, and the runs that measure them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.analysis.jobs import measure_peaks_of_host
from dlbricks_tui.analysis.lacking import Host, Lack, expected_seconds, lacks_of, requests_for
from dlbricks_tui.analysis.roofline import applies_to
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.answers.analysis.analysing import Analysis
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host import processor
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.host.peaks import PEAKS_SECONDS, PeaksError
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.runs.request import InputShape, InputValue, RunRequest
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.wording.numbers import counted


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
    if not applies_to(found.baseline.found.way.runtime):
        return None
    competing = [it.execution.runtime for it in lacks if it.competes]
    threads = max([found.threads, *(it.settings.threads or 1 for it in competing)])
    if threads == found.threads:
        return threads if found.lacks_peaks else None
    with ResultsDatabase(data.store) as store:
        known = any((it.system, it.threads) == (found.system, threads) for it in store.peaks())
    return None if known else threads


def measure_peaks(plans: Sequence[MeasuringPlan], data: DataFolder, tell_waiting: Callable[[str], None]) -> list[str]:
    """Measure the peaks that plans lack, and return why some could not be measured."""
    refusals = []
    # Models have the same peaks.
    for threads in dict.fromkeys(plan.peaks_threads for plan in plans if plan.peaks_threads is not None):
        try:
            measure_peaks_of_host(threads, data, tell_waiting)
        except PeaksError as refusal:
            refusals.append(str(refusal))
    return refusals


def lacks_in_words(plan: MeasuringPlan) -> Iterator[tuple[str, str]]:
    """Yield what a plan measures: the kind of the what-ifs that compare it, and the execution or the peaks."""
    for lack in plan.lacks:
        yield "baseline" if lack.kind is None else lack.kind.value, lack.in_words
    if plan.peaks_threads is not None:
        yield "roofline", f"the peaks of this host with {counted(plan.peaks_threads, 'thread')}"
