"""Runs and probes in the calling process, and the progress that they report."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dlbricks_tui.answers.measuring import MeasureOptions, RunJob, remarks_on_run, run_request
from dlbricks_tui.answers.probing import ProbeOptions, known_systems, probe_request
from dlbricks_tui.answers.run_results import ProbeResult, RunResult, probe_result, run_result
from dlbricks_tui.api.estimating import Model, folder_at, log, sources_of
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.runs.progress import RunProgress
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import RunOutcome
from dlbricks_tui.wording.events import doing_now, note_of


@dataclass(frozen=True, slots=True)
class Progress:
    """A run, or a fleet run, at the moment of an event."""

    run: str
    state: State
    # Bricks and whole models together.
    done: int
    total: int
    failed: int
    seconds_left: float | None
    # The current step of the run, and the event as a sentence, if it has one.
    doing: str
    note: str | None


def measure(
    models: Model | Sequence[Model],
    options: MeasureOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> RunResult:
    """Measure the bricks of models that the store lacks, and return the outcome with an estimate of each model.

    `progress` is called after each event. Call this function in the main thread only: it takes SIGINT, SIGTERM and
    SIGHUP for requests to end the run, whose state then says so. All results until then are kept.
    """
    require_main_thread()
    began, folder = time.monotonic(), folder_at(data)
    request = run_request(options or MeasureOptions(), sources_of(models, folder), folder)
    outcome = executed(request, folder, began, progress)
    return run_result(outcome.state, outcome)


def probe(
    models: Model | Sequence[Model] = (),
    options: ProbeOptions | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> ProbeResult:
    """Measure the few bricks that tell most about this system, and predict the others from other systems.

    Without models, all that were measured on any system of the store are estimated. As `measure`, this handles signals:
    call it in the main thread only.
    """
    require_main_thread()
    began, folder = time.monotonic(), folder_at(data)
    request = probe_request(options or ProbeOptions(), sources_of(models, folder), folder)
    others = known_systems(request, folder)
    outcome = executed(request, folder, began, progress)
    return probe_result(outcome, others)


def require_main_thread() -> None:
    """Raise JobError outside the main thread, which alone can handle the signals of a run."""
    if threading.current_thread() is not threading.main_thread():
        raise JobError("a run handles signals: measure in the main thread, or in a separate process")


def executed(
    request: RunRequest, folder: DataFolder, began: float, progress: Callable[[Progress], None] | None
) -> RunOutcome:
    """Return the outcome of a run in this process; its time counts from `began` on."""
    run = RunJob.create(request, folder)
    for remark in remarks_on_run(request):
        log.warning(remark)
    report = None if progress is None else _reporter(run.folder.run, progress)
    return run.execute(report, time.monotonic() - began)


def _reporter(run: str, progress: Callable[[Progress], None]) -> Callable[[Event], None]:
    folded = RunProgress()

    def report(event: Event) -> None:
        folded.take(event)
        note = note_of(event)
        failed = folded.bricks_failed + folded.models_failed
        progress(
            Progress(
                run,
                folded.state,
                folded.done,
                folded.total,
                failed,
                folded.seconds_left,
                doing_now(folded),
                None if note is None else note.text,
            )
        )

    return report
