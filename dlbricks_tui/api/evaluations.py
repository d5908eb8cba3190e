"""The functions of the public API that carry out evaluations, checks and fleet runs."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dlbricks_tui.answers.checks.checked import checked, measure_again
from dlbricks_tui.answers.checks.checking import CheckOptions, check_plan
from dlbricks_tui.answers.checks.results import CheckedModel
from dlbricks_tui.answers.evaluations.evaluating import EvaluateOptions, EvaluationSteps
from dlbricks_tui.answers.evaluations.evaluating import evaluate as evaluation_result
from dlbricks_tui.answers.evaluations.from_run import written_evaluation
from dlbricks_tui.answers.evaluations.preparing import check_file
from dlbricks_tui.answers.evaluations.results import EvaluationResult
from dlbricks_tui.answers.fleets.controlling import FleetJob
from dlbricks_tui.answers.fleets.requesting import FleetOptions, fleet_request
from dlbricks_tui.answers.fleets.results import FleetResult
from dlbricks_tui.answers.scenarios.load_process import measure as measure_order
from dlbricks_tui.api.estimating import Model, folder_at, log, names_of, sources_of
from dlbricks_tui.api.measuring import Progress, executed, require_main_thread
from dlbricks_tui.evaluations.evaluation import Evaluation
from dlbricks_tui.fleet.request import FleetProgress
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.scenarios.messages import ScenarioOrder
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.wording.fleets import fleet_line, note_line


def check(
    against: os.PathLike[str] | str,
    models: Model | Sequence[Model] = (),
    options: CheckOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> tuple[CheckedModel, ...]:
    """Measure models again, by default all of a file, and return whether they are slower than the file says.

    The file is an evaluation with results, or one of `dlbricks results export`. As `measure`, this handles signals:
    call it in the main thread only. JobError is raised if it is interrupted.
    """
    require_main_thread()
    folder = folder_at(data)
    plan = check_plan(names_of(models), Path(against), options or CheckOptions(), folder)
    measured = measure_again(plan, folder, lambda request: executed(request, folder, time.monotonic(), progress))
    if measured.stopped:
        raise JobError("the check was stopped before its verdicts; what was measured is kept in the store")
    return checked(plan, measured, folder)


def evaluate(
    file: os.PathLike[str] | str,
    options: EvaluateOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> EvaluationResult:
    """Carry out an evaluation: check what matches its file, run what the store lacks, and return the results.

    If something does not match, the result says so and nothing is measured, unless the options have `anyway`. As
    `measure`, this handles signals: call it in the main thread only.
    """
    require_main_thread()
    began, folder, path = time.monotonic(), folder_at(data), Path(file)
    checked = check_file(path, folder)

    def run(request: RunRequest) -> None:
        state = executed(request, folder, began, progress).state
        if state.was_stopped:
            raise JobError(f"run {state.run} was {state.state.value}: evaluate {path} again to go on with the rest")

    def measure_load(order: ScenarioOrder) -> LoadTest:
        return measure_order(order, folder, lambda _: None).test

    steps = EvaluationSteps(log.info, run, measure_load)
    return evaluation_result(checked, options or EvaluateOptions(), folder, steps)


def evaluation_of(run: str, file: os.PathLike[str] | str, *, data: os.PathLike[str] | str | None = None) -> Evaluation:
    """Write the evaluation of a finished run to a file, with its results, and return it."""
    return written_evaluation(run, Path(file), folder_at(data))


def fleet(
    models: Model | Sequence[Model],
    options: FleetOptions,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> FleetResult:
    """Measure the bricks of models on many hosts, and return an estimate of each model on each host.

    `progress` is called after each event; it counts the bricks of all hosts together. As `measure`, this handles
    signals: call it in the main thread only.
    """
    require_main_thread()
    folder = folder_at(data)
    found = FleetJob.create(fleet_request(options, sources_of(models, folder), folder), folder)
    found.drive(None if progress is None else _reporter(found.folder.run, progress))
    return found.result()


def fleet_status(run: str = "last", *, data: os.PathLike[str] | str | None = None) -> FleetResult:
    """Return a fleet run as it is now, by its id or the beginning of its id; nothing is measured."""
    return FleetJob.find(run, folder_at(data)).result()


def _reporter(run: str, progress: Callable[[Progress], None]) -> Callable[[Event], None]:
    folded = FleetProgress()

    def report(event: Event) -> None:
        note = note_line(event, folded)
        folded.take(event)
        hosts = folded.hosts.values()
        left = [host.seconds_left for host in hosts if host.seconds_left is not None]
        progress(
            Progress(
                run=run,
                state=State.RUNNING if folded.ended is None else State(folded.ended.state),
                done=sum(host.bricks for host in hosts),
                total=sum(host.of for host in hosts),
                failed=sum(host.failed for host in hosts),
                # Hosts measure side by side.
                seconds_left=max(left, default=None),
                doing="" if folded.ended is not None else fleet_line(folded),
                note=note or None,
            )
        )

    return report
