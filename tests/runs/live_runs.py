"""Runs as a process would have left them in a data folder: their state and the events that they have told."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import ProcessIdentity, this_process
from dlbricks_tui.jobs.events import Event, EventWriter, Waiting
from dlbricks_tui.jobs.folder import JobState, RunFolder, State, Tally
from dlbricks_tui.measure.events import BatchStarted, DriftNoted, RoundDone, Stop
from dlbricks_tui.runs.events import (
    EstimateChanged,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    Planned,
    ProgramFailed,
    ProgramLoaded,
    ProgramMeasured,
    ProgramUnfinished,
    RunEnded,
    RunStarted,
    WorkerReplaced,
)

RUN = "20261121-080000-ab12"
MODELS = ("resnet18_v1", "squeezenet1.1")
BEGAN = datetime(2026, 11, 21, 8, tzinfo=timezone.utc)
NOBODY = ProcessIdentity(4_000_000, "never")
BRICKS, ROUNDS = 40, 24


def at(seconds: float) -> str:
    """Return the time so many seconds after the run began."""
    return (BEGAN + timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def started(seconds: float = 0) -> RunStarted:
    """A process executes the run."""
    return RunStarted(
        when=at(seconds),
        run=RUN,
        pid=4711,
        models=MODELS,
        runtime="mxnet-1.9.1 python-3.11 threads-2",
        level="fused",
        granularity=1,
        end_to_end=True,
    )


def planned(seconds: float = 2, *, bricks: int = BRICKS, reused: int = 8, expected_seconds: float = 60.0) -> Planned:
    """The run knows what there is to do."""
    return Planned(
        when=at(seconds),
        system="s1",
        runtime="mxnet-1.9.1",
        bricks=bricks,
        bricks_reused=reused,
        bricks_failed_before=0,
        models=2,
        models_reused=0,
        models_failed_before=0,
        expected_seconds=expected_seconds,
    )


def loaded(program: int, seconds: float = 3) -> ProgramLoaded:
    """A brick, or as number 0 a whole model, is loaded."""
    return ProgramLoaded(**_about(program), when=at(seconds), first_run_ms=1.0, used_by=MODELS[: 1 + program % 2])


def round_done(programs: Iterable[int], number: int, seconds_left: float = 40.0) -> RoundDone:
    """One more sample of each."""
    return RoundDone(
        when=at(4 + number),
        samples_ms=tuple((program, (sample_ms(program, number),)) for program in programs),
        null_call_ms=0.0125,
        reference_ms=1.0 + 0.001 * number,
        seconds_left=seconds_left,
    )


def measured(program: int, seconds: float = 30, samples: int = ROUNDS, **otherwise: Any) -> ProgramMeasured:
    """A brick is known well enough, if nothing else is said."""
    latency = sample_ms(program, 0)
    event = ProgramMeasured(
        **_about(program),
        when=at(seconds),
        trimmed_mean_ms=latency,
        low_ms=latency * 0.993,
        high_ms=latency * 1.007,
        samples=samples,
        warm_up=1,
        outliers=0,
        stop=Stop.NARROW.value,
    )
    return replace(event, **otherwise)


def unfinished(program: int, seconds: float = 30, samples: int = 6) -> ProgramUnfinished:
    """The run was stopped before a brick was known well enough."""
    latency = sample_ms(program, 0)
    return ProgramUnfinished(
        **_about(program),
        when=at(seconds),
        trimmed_mean_ms=latency,
        low_ms=latency * 0.9,
        high_ms=latency * 1.1,
        samples=samples,
    )


def failed(program: int, seconds: float = 31) -> ProgramFailed:
    """A brick cannot be measured."""
    return ProgramFailed(**_about(program), when=at(seconds), reason="crashed", message="the worker died (SIGSEGV)")


def estimate(model: str, half_width: float, seconds: float = 5, missing: int = 20) -> EstimateChanged:
    """Return the estimate of a model so far."""
    return EstimateChanged(
        when=at(seconds),
        model=model,
        sequential_ms=12.5,
        parallel_ms=11.25,
        low_ms=12.5 * (1 - half_width),
        high_ms=12.5 * (1 + half_width),
        measured_layers=60 - missing,
        missing_layers=missing,
        unmeasurable_layers=0,
    )


def ended(state: State = State.FINISHED, message: str = "", seconds: float = 90) -> RunEnded:
    """The run is over."""
    return RunEnded(
        when=at(seconds),
        state=state.value,
        message=message,
        bricks=BRICKS,
        bricks_measured=30,
        bricks_reused=8,
        bricks_failed=2,
        models_failed=0,
        seconds=seconds,
    )


def in_the_middle() -> list[Event]:
    """A run that is half through: some bricks are known, one has failed, others are being sampled."""
    events: list[Event] = [
        started(),
        Waiting(when=at(0.5), holder="run 20261121-0755-99aa of ada (process 12, data in /home/ada, since 07:55)"),
        *(ModelLoading(when=at(1), model=name, number=number, of=3) for number, name in enumerate(MODELS, start=1)),
        ModelLeftOut(when=at(1.5), model="broken", reason="broken-symbol.json: not JSON; export the model again"),
        LevelLowered(when=at(1.6), model="squeezenet1.1", reason="Shape inconsistent"),
        planned(),
        BatchStarted(when=at(2), number=1, of=2, programs=16),
        *(loaded(program) for program in range(16)),
    ]
    for number in range(ROUNDS):
        events.append(round_done(range(16), number))
        events += [estimate(model, 0.3 / (number + 1), 4 + number) for model in MODELS]
    events += [measured(program) for program in range(10) if program != 7]
    events += [failed(7), WorkerReplaced(when=at(31), message="the worker died (SIGSEGV)")]
    events.append(DriftNoted(when=at(32), reference_ms=1.08, usual_ms=1.0))
    return events


def put_run(
    data: DataFolder,
    events: Sequence[Event],
    state: State = State.RUNNING,
    *,
    run: str = RUN,
    process: ProcessIdentity | None = None,
    seconds: float = 0.0,
) -> RunFolder:
    """Leaves a run in the data folder; unless it is said otherwise, this process is at work on it."""
    folder = RunFolder(data.runs / run)
    folder.path.mkdir(parents=True)
    bricks = Tally(BRICKS, 20, 8, 1)
    standing = JobState(folder.run, state, process or this_process(), MODELS, at(0), at(0), bricks, seconds=seconds)
    tell(folder, *events)
    # Last, so that viewers see all of it at once.
    folder.set_state(standing)
    return folder


def tell(folder: RunFolder, *events: Event) -> None:
    """Tell events of the run."""
    writer = EventWriter(folder.events_file)
    for event in events:
        writer.tell(event)
    writer.close()


def end(folder: RunFolder, state: State = State.FINISHED) -> None:
    """End the run in an orderly way."""
    folder.set_state(replace(folder.state(), state=state))
    tell(folder, ended(state))


def sample_ms(program: int, number: int) -> float:
    """Latencies that look like some."""
    return round((0.05 + 0.13 * program) * (1 + 0.01 * ((7 * number + program) % 5)), 4)


def _about(program: int) -> dict[str, Any]:
    if program == 0:
        return {"program": 0, "brick": "", "context": "", "model": "m" * 8, "label": "resnet18_v1 end to end"}
    label = f"Convolution 3x3 1x{8 * program}x56x56"
    return {"program": program, "brick": f"b{program:03}", "context": "c", "model": "", "label": label}
