"""Measure the models of a check again, and compare their latencies with the earlier ones."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dlbricks_tui.answers.checks.checking import CheckedTogether, CheckPlan, Item
from dlbricks_tui.answers.checks.results import CheckedModel
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.errors import UserError
from dlbricks_tui.evaluations.baseline import Baseline, baseline_of
from dlbricks_tui.evaluations.differences import Difference, differences
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.runs.events import FailedBefore, ModelLeftOut, ProgramFailed, RunEvents
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import RunOutcome
from dlbricks_tui.store.change import Change, Verdict, changes_from, known_changes
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import DamagedResultError, StoreError
from dlbricks_tui.store.records import EndToEnd
from dlbricks_tui.store.selections import OLDEST_FIRST, equal

_SHORT_KEY = 12


@dataclass(slots=True)
class Measured:
    """Today's results by the places of their items in the plan, and the reasons why others have none."""

    results: dict[int, list[EndToEnd]] = field(default_factory=lambda: defaultdict(list))
    reasons: dict[int, str] = field(default_factory=dict)
    # True if the user has stopped a run.
    stopped: bool = False


def measure_again(plan: CheckPlan, data: DataFolder, execute: Callable[[RunRequest], RunOutcome]) -> Measured:
    """Measure everything once, then all of it again, in as many processes as the options say.

    So the samples of a model come from different minutes.
    """
    measured = Measured()
    for _ in range(plan.options.processes):
        for group in plan.groups:
            if all(place in measured.reasons for place in group.places):
                continue
            try:
                outcome = execute(group.request)
            except StoreError:
                raise
            except UserError as refusal:
                measured.reasons |= dict.fromkeys(group.places, str(refusal))
                continue
            _take(measured, plan, group, outcome, data)
            if outcome.state.was_stopped:
                measured.stopped = True
                return measured
    return measured


def _take(measured: Measured, plan: CheckPlan, group: CheckedTogether, outcome: RunOutcome, data: DataFolder) -> None:
    """Add the results of a run, and the reasons why models have none."""
    results = _results_by_name(outcome, data)
    reasons = _reasons_by_label(RunFolder(data.runs / outcome.state.run))
    for place in group.places:
        source = plan.items[place].source
        name = plan.items[place].name if source is None else source.name
        result = results.get(name)
        if result is None:
            told = (why for label, why in reasons.items() if _is_of(name, label))
            measured.reasons[place] = next(told, outcome.state.message) or "its run ended without a result"
        elif result.good:
            measured.results[place].append(result)
        else:
            measured.reasons[place] = f"its result is in doubt: {', '.join(result.flags)}"


def _results_by_name(outcome: RunOutcome, data: DataFolder) -> Mapping[str, EndToEnd]:
    """Return the results of a run by the names of its models; several models can be the same network."""
    by_key: dict[str, EndToEnd] = {}
    with ResultsDatabase(data.store) as store:
        selection = store.select(equal(of="model", run=outcome.state.run), order=OLDEST_FIRST)
        for position in range(len(selection)):
            # The store reports damaged results.
            with suppress(DamagedResultError):
                result = selection.result(position)
                if isinstance(result, EndToEnd):
                    by_key[result.model] = result
    graphs = [decomposition.graph for decomposition, _ in outcome.estimates or ()]
    return {graph.name: by_key[key] for graph in graphs for key in end_to_end_keys(graph).values() if key in by_key}


def _reasons_by_label(folder: RunFolder) -> Mapping[str, str]:
    """Return why models of a run have no result, by their labels in its events."""
    found: dict[str, str] = {}
    for event in RunEvents(folder.events_file).new():
        if isinstance(event, ModelLeftOut):
            found[event.model] = event.reason
        elif isinstance(event, ProgramFailed) and not event.brick:
            found[event.label] = event.message or event.reason
        elif isinstance(event, FailedBefore) and not event.brick:
            found[event.label] = event.reason
    return found


def _is_of(name: str, label: str) -> bool:
    """Return whether a label is that of a model: its name, perhaps with the batch size, or with `end to end`."""
    return label == name or label.startswith((f"{name} (", f"{name} end to end"))


def checked(plan: CheckPlan, measured: Measured, data: DataFolder) -> tuple[CheckedModel, ...]:
    """Return the verdict on each item."""
    today = _today(plan, measured, data)
    baselines = [it.baseline for it in plan.items]
    earlier, now_timed = ([it.timing if it is not None else None for it in found] for found in (baselines, today))
    pairs = list(zip(earlier, now_timed, strict=True))
    changes = known_changes(pairs, changes_from(plan.options.by))
    return tuple(
        [
            _checked(
                item,
                now,
                change,
                measured.reasons.get(place, item.reason),
                tuple(it.run for it in measured.results.get(place, ())),
            )
            for place, (item, now, change) in enumerate(zip(plan.items, today, changes, strict=True))
        ]
    )


def _today(plan: CheckPlan, measured: Measured, data: DataFolder) -> list[Baseline | None]:
    """Return today's results of each item as one."""
    system = fingerprint()

    def found(place: int, item: Item) -> Baseline | None:
        results = measured.results.get(place)
        if not results or item.runtime is None:
            return None
        origin = store.provenance_of(results[-1].run, results[-1].runtime)
        return baseline_of(results, runtime_record(item.runtime, system), system, origin)

    with ResultsDatabase(data.store) as store:
        return [found(*it) for it in enumerate(plan.items)]


def _checked(
    item: Item, today: Baseline | None, change: Change | None, reason: str, runs: tuple[str, ...]
) -> CheckedModel:
    was = item.baseline
    recorded = None if was is None else was.result
    return CheckedModel(
        model=item.name,
        framework=None if recorded is None else recorded.framework,
        runtime=None if item.runtime is None else item.runtime.identity,
        **({} if recorded is None else recorded.parts),
        level=None if was is None else was.level,
        was_ms=None if was is None or was.timing is None else was.timing.value_ms,
        is_ms=None if change is None else change.is_ms,
        change=None if change is None else change.change,
        interval=None if change is None else change.interval,
        p_value=None if change is None else change.p_value,
        significant=change is not None and change.significant,
        verdict=Verdict.UNKNOWN if change is None else change.verdict,
        reason=reason if change is None else change.reason,
        compared=change is not None,
        differences=all_differences(was, today) if was is not None and today is not None else (),
        when=None if recorded is None else recorded.when,
        was_samples=0 if recorded is None else len(recorded.samples_ms),
        is_samples=0 if today is None else len(today.result.samples_ms),
        runs=runs,
    )


def all_differences(was: Baseline, now: Baseline) -> tuple[Difference, ...]:
    """Return the known circumstances of two measurements that differ, the system first."""
    # The variant is the same. Identities of runtimes do not tell that a model is quantised in its file.
    found = list(differences(was.result, replace(now.result, precision=was.result.precision)))
    if was.key and was.key != now.key and was.result.sha256 == now.result.sha256:
        found.insert(0, Difference("layers of the model", was.key[:_SHORT_KEY], now.key[:_SHORT_KEY]))
    if was.system and was.system != now.system:
        found.insert(0, Difference("system", was.system, now.system))
    return tuple(found)
