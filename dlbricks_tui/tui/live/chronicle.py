"""What happens in a run, in words."""

from dlbricks_tui.measure.events import Calibrated, Calibrating, CalibrationFailed, Event
from dlbricks_tui.runs.events import (
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    Paused,
    Planned,
    ProgramFailed,
    Resumed,
    RunEnded,
    RunStarted,
    ShapesRemembered,
    Waiting,
    WorkerReplaced,
)
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.tui.figures import counted, duration, percent
from dlbricks_tui.tui.live.snapshot import Note, Tone


def noted(event: Event) -> Note | None:
    """The event as a note; None for what the lists show anyway, and for noise, which has one note in all."""
    told = _failure(event) or _doubt(event) or _course(event)
    return Note(event.when, *told) if told else None


def _failure(event: Event) -> tuple[Tone, str] | None:
    match event:
        case ProgramFailed():
            return Tone.FAILURE, f"{event.label} failed: {event.reason}: {event.message}"
        case ModelLeftOut():
            return Tone.FAILURE, f"{event.model} is left out: {event.reason}"
        case RunEnded(state=State.FAILED.value):
            return Tone.FAILURE, f"The run failed: {event.message}"
    return None


def _doubt(event: Event) -> tuple[Tone, str] | None:
    match event:
        case FailedBefore():
            return Tone.DOUBT, f"{event.label} failed in an earlier run and is not tried again: {event.reason}"
        case LayerUnmeasurable():
            return Tone.DOUBT, f"Layer {event.layer} of {event.model} cannot be measured: {event.reason}"
        case LevelLowered():
            return Tone.DOUBT, f"{event.model} is measured as it is written, as it cannot be fused: {event.reason}"
        case ShapesRemembered():
            return Tone.ASIDE, f"The inputs of {event.model} have the shapes that were given before: {event.shapes}"
        case WorkerReplaced():
            return Tone.DOUBT, f"A fresh worker takes over: {event.message}"
        case CalibrationFailed():
            return Tone.DOUBT, f"Not calibrated, so that estimates may be some percent too low: {event.reason}"
    return None


def _course(event: Event) -> tuple[Tone, str] | None:
    match event:
        case RunStarted():
            return Tone.ASIDE, f"Process {event.pid} takes up the run of {counted(len(event.models), 'model')}"
        case Waiting():
            return Tone.COURSE, f"Waits for {event.holder}"
        case ModelLoading():
            return Tone.ASIDE, f"Reads {event.model}, {event.number} of {event.of}"
        case Planned():
            return Tone.COURSE, _plan(event)
        case Calibrating():
            return Tone.COURSE, f"Calibrates on network {event.number} of {event.of}: {event.network}"
        case Calibrated():
            return Tone.COURSE, f"Calibrated; mean error on networks that had no part in it: {percent(event.error)}"
        case Paused():
            return Tone.COURSE, "Stands still; others may measure"
        case Resumed():
            return Tone.COURSE, "Goes on"
        case RunEnded():
            end = f"The run is {event.state} after {duration(event.seconds)}"
            return Tone.COURSE, f"{end}: {event.message}" if event.message else end
    return None


def _plan(event: Planned) -> str:
    bricks = event.bricks - event.bricks_reused - event.bricks_failed_before
    models = event.models - event.models_reused - event.models_failed_before
    if not bricks and not models:
        return "Everything is known already"
    whole = f" and {counted(models, 'whole model')}" if models else ""
    known = event.bricks_reused + event.models_reused
    return f"{counted(bricks, 'brick')}{whole} to run, {known:,} known, about {duration(event.expected_seconds)}"
