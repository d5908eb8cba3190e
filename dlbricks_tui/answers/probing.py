"""Options of a probe, and the request of the run that measures its bricks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.answers.estimating import measured_models
from dlbricks_tui.answers.measuring import MeasureOptions, run_request
from dlbricks_tui.estimate.prediction.other_systems import ways_of_others
from dlbricks_tui.estimate.selection import what_is_there
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.probing import PROBE_RULE
from dlbricks_tui.runs.request import CalibrationPolicy, RunRequest
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import combinations


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions:
    """Options of a probe. None: the results of other systems decide."""

    # From the start of the command to the estimates.
    seconds: float = 20.0
    # The most bricks to time alone; networks hold as many as there are in them.
    bricks: int = 30
    level: Level | None = None
    method: Method | None = None
    # A registered runtime by its name, and that of the settings, which counts only for models that it runs.
    runtime: str | None = None
    usual_runtime: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for name, value, unit in (("seconds", self.seconds, "seconds"), ("bricks", self.bricks, "bricks")):
            if not value > 0:
                raise RunError(f"{name} {value:g}: give more than 0 {unit}")


def probe_request(options: ProbeOptions, sources: Sequence[ModelSource], data: DataFolder) -> RunRequest:
    """Return the request of a run that measures the most informative bricks of models, by default of all in the store.

    It measures as the other systems of the store did.
    """
    models = sources or measured_models(data)
    if not models:
        raise RunError(
            "a probe compares this system with others, and the store has no results of any model of the library: "
            "`dlbricks results import FILE` adds some"
        )
    measuring = MeasureOptions(
        runtime=options.runtime,
        usual_runtime=options.usual_runtime,
        threads=options.threads,
        time_budget_seconds=options.seconds,
        calibration=CalibrationPolicy.NEVER,
        end_to_end=False,
    )
    way = _way_of_most(options, run_request(measuring, models, data).runtime.identity, data)
    method = next(each for each in Method if each.id == way.protocol)
    request = run_request(replace(measuring, level=way.level, method=method), models, data)
    return replace(request, rule=PROBE_RULE, probe_bricks=options.bricks)


def _way_of_most(options: ProbeOptions, runtime: str, data: DataFolder) -> Way:
    """Return the way of measuring on this host in which other systems have measured most."""
    host = fingerprint().id
    wanted = [
        Way(host, runtime, level, method.id)
        for level in ((options.level,) if options.level else Level)
        for method in ((options.method,) if options.method else Method)
    ]
    with ResultsDatabase(data.store) as store:
        there = combinations(store.select(order=()))
        pairs = {Way(it.system, it.runtime, it.level, it.protocol): it.pairs for it in there}
        found = [(pairs[other], way) for way in wanted for other in ways_of_others(store, way)]
    if found:
        return max(found)[1]
    raise RunError(
        f"a probe compares this system with others, and none has results by {runtime} and a method of this version; "
        f"{what_is_there(there, host, runtime)}; `--runtime` and `--threads` choose another runtime, "
        "`dlbricks results import FILE` adds results"
    )


def known_systems(request: RunRequest, data: DataFolder) -> list[str]:
    """Return the systems that a probe compares this one with."""
    way = Way(fingerprint().id, request.runtime.identity, request.level, request.method.id)
    with ResultsDatabase(data.store) as store:
        return [other.system for other in ways_of_others(store, way)]
