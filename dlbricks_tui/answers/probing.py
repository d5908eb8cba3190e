"""Options of a probe, and the request of the run that measures its bricks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.answers.estimating import measured_models
from dlbricks_tui.answers.measuring import MeasureOptions, run_request
from dlbricks_tui.answers.opening import InputOptions, RuntimeOptions
from dlbricks_tui.estimate.prediction.stored import ways_of_others
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.planning import PROBE_RULE
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.settings.measuring import PROBE_BRICKS, PROBE_SECONDS
from dlbricks_tui.settings.setting import fields_of, require_allowed
from dlbricks_tui.settings.variant import BATCH, THREADS, VARIANT
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import Combination, Way, combinations
from dlbricks_tui.wording.numbers import names_of

_NO_OTHER_SYSTEM = (
    "the store has no results of another system to compare this one with: write them there with "
    "`dlbricks results export`, and add them here with `dlbricks results import FILE`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions(RuntimeOptions, InputOptions):
    """Options of a probe. None: the results of other systems decide."""

    # From the start of the command to the estimates.
    seconds: float = 20.0
    # The most bricks to time alone; networks hold as many as there are in them.
    bricks: int = 30
    level: Level | None = None
    method: Method | None = None

    def __post_init__(self) -> None:
        require_allowed(self, (PROBE_SECONDS, PROBE_BRICKS, THREADS, BATCH), JobError)


def probe_request(options: ProbeOptions, sources: Sequence[ModelSource], data: DataFolder) -> RunRequest:
    """Return the request of a run that measures the most informative bricks of models, by default of all in the store.

    It measures as the other systems of the store did.
    """
    models = sources or measured_models(data)
    if not models:
        raise JobError(_NO_OTHER_SYSTEM)
    measuring = MeasureOptions(
        inputs=options.inputs,
        values=options.values,
        **fields_of(options, VARIANT),
        usual_runtime=options.usual_runtime,
        time_budget_seconds=options.seconds,
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
        pairs = {it.way: it.pairs for it in there}
        found = [(pairs[other], way) for way in wanted for other in ways_of_others(store, way)]
    if found:
        return max(found)[1]
    raise JobError(_no_way_of_others([it for it in there if it.system != host], runtime, options))


def _no_way_of_others(elsewhere: Sequence[Combination], runtime: str, options: ProbeOptions) -> str:
    """Return what to do if no other system has measured as the options ask."""
    if not elsewhere:
        return _NO_OTHER_SYSTEM
    methods = {method.id: method.value for method in Method}
    ways = [it for it in elsewhere if it.protocol in methods]
    usable = dict.fromkeys(f"{it.runtime} (level {it.level.value}, method {methods[it.protocol]})" for it in ways)
    if not usable:
        return (
            "all results of other systems are by methods of other versions of dlbricks, which are never combined with "
            "new ones: measure there with this version, and import the results here"
        )
    asked = [runtime]
    asked += [f"level {options.level.value}"] if options.level else []
    asked += [f"method {options.method.value}"] if options.method else []
    return (
        f"no other system has results by {', '.join(asked)}; there are results by {names_of(list(usable))}: choose "
        "one of these runtimes with its threads, or import other results"
    )


def known_systems(request: RunRequest, data: DataFolder) -> list[str]:
    """Return the systems that a probe compares this one with."""
    way = Way(fingerprint().id, request.runtime.identity, request.level, request.method.id)
    with ResultsDatabase(data.store) as store:
        return [other.system for other in ways_of_others(store, way)]
