"""The events of a run as sentences, its current step, and the noise on the host, for the command line and the TUI."""

from dataclasses import replace

from dlbricks_tui.jobs.events import Event, Paused, Resumed, Waiting
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.runs.events import (
    Disturbances,
    EstimateChanged,
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    PartStarted,
    Planned,
    ProgramFailed,
    ProgramLoaded,
    ProgramMeasured,
    RunEnded,
    RunProgress,
    RunStarted,
    ShapesRemembered,
    WorkerReplaced,
)
from dlbricks_tui.wording.numbers import PREDICTED, counted, duration, percent, slower_words, with_interval
from dlbricks_tui.wording.runs import Done, Phrase, Tone

_NOISE_HINT = "close other programs, or measure when the host is quiet"


def note_of(event: Event) -> Phrase | None:
    """Return the sentence for an event.

    Rounds, batches, samples and estimates have none: lists and counters show them. Noise has one note for the whole
    run, `noise_note`.
    """
    found = _phrase(event)
    return found and found._replace(when=event.when)


def _phrase(event: Event) -> Phrase | None:
    match event:
        case ProgramFailed():
            what = f"{event.label} ({event.brick[:12] or 'whole model'})"
            return Phrase(f"failed: {what}: {event.reason}: {event.message}", Tone.FAILURE)
        case ModelLeftOut():
            # A reason may begin with the name.
            reason = event.reason.removeprefix(f"{event.model}: ")
            return Phrase(f"left out: {event.model}: {reason}", Tone.FAILURE)
        case RunEnded(state=State.FAILED.value):
            return Phrase(_end(event), Tone.FAILURE)
        case FailedBefore():
            return Phrase(f"failed in an earlier run, not tried again: {event.label}: {event.reason}", Tone.DOUBT)
        case LayerUnmeasurable():
            return Phrase(f"unmeasurable: {event.model}: {event.layer}: {event.reason}", Tone.DOUBT)
        case LevelLowered():
            return Phrase(
                f"cannot fuse {event.model} ({event.reason}); its layers are measured as written in the file",
                Tone.DOUBT,
            )
        case ProgramLoaded(allocates=True, brick=""):
            return Phrase(
                f"new outputs in each run: {event.label}: their sizes vary, or differ from the file; the latency "
                "includes their allocation, as that of a plain call does",
                Tone.DOUBT,
            )
        case WorkerReplaced():
            return Phrase(f"new worker: {event.message}", Tone.DOUBT)
        case RunStarted():
            return Phrase(f"run {event.run} of {counted(len(event.models), 'model')}, process {event.pid}", Tone.ASIDE)
        case ShapesRemembered():
            return Phrase(inputs_given_before(event.model, event.shapes), Tone.ASIDE)
        case Waiting():
            return Phrase(f"waiting for {event.holder}")
        case ModelLoading():
            return Phrase(reading(event), Tone.ASIDE)
        case Planned():
            return Phrase(_plan(event))
        case PartStarted():
            return Phrase(f"part {event.number} of {event.of}: {event.part}")
        case Paused():
            return Phrase("paused: other runs may measure")
        case Resumed():
            return Phrase("resumed")
        case RunEnded():
            return Phrase(_end(event))
    return None


def _end(event: RunEnded) -> str:
    return f"{event.state} after {duration(event.seconds)}{f': {event.message}' if event.message else ''}"


def _plan(event: Planned) -> str:
    bricks = event.bricks - event.bricks_reused - event.bricks_failed_before
    wholes = event.models - event.models_reused - event.models_failed_before
    told = (
        (event.bricks_imprecise, "too imprecise so far"),
        (event.bricks_of_slow_host, "measured while the host was slower"),
    )
    again = "; ".join(f"{number:,} again: {why}" for number, why in told if number)
    again = f" ({again})" if again else ""
    parts = [f"{counted(event.bricks, 'brick')}: {event.bricks_reused:,} known, {bricks:,} to measure{again}"]
    parts += [f"{wholes:,} of {counted(event.models, 'model')} to time end to end"] if event.models else []
    parts += [f"about {duration(event.expected_seconds)}"] if bricks or wholes else []
    return (f"{event.combination}: " if event.combination else "") + "; ".join(parts)


def all_combinations(number: int, planned: Planned) -> str:
    """Return how long all combinations of a run are expected to take."""
    return f"{number} combinations together: {_plan(replace(planned, combination=''))}"


def measured(event: ProgramMeasured) -> str:
    """Return the sentence for a whole model that was timed; bricks are too many for a sentence each."""
    return f"measured: {event.label}: {with_interval(event.trimmed_mean_ms, event.low_ms, event.high_ms)}"


def inputs_given_before(model: str, given: str) -> str:
    """Return that a model has the shapes or values of inputs that were given in an earlier session."""
    return f"inputs as given before: {model}: {given}"


def reading(event: ModelLoading) -> str:
    """Return which of the models is being read."""
    return f"reading {event.model}, {event.number} of {event.of}"


def counts_of(progress: RunProgress) -> tuple[Done, Done]:
    """Return how many bricks and how many whole models need no more work; none before the plan is known."""
    bricks, models = progress.of_bricks, progress.of_models
    return Done(bricks.done, bricks.total), Done(models.done, models.total)


def doing_now(progress: RunProgress) -> str:
    """Return what the run does now; empty while it is paused, and once it has ended."""
    if progress.ended is not None or progress.state is State.PAUSED:
        return ""
    if progress.loading is not None:
        return reading(progress.loading)
    if progress.planned is not None and progress.batch is None:
        return "starting a worker" if progress.done < progress.total else ""
    on_bench = progress.being_sampled
    if not on_bench:
        return ""
    samples = max(len(brick.samples_ms) for brick in on_bench)
    others = f" and {counted(len(on_bench) - 1, 'other')}" if len(on_bench) > 1 else ""
    return f"{on_bench[0].label}{others}, {counted(samples, 'sample')} so far"


def estimate_so_far(event: EstimateChanged) -> str | None:
    """Return a model's current estimate with its interval and its gaps; None while there is none."""
    if event.sequential_ms is None or event.low_ms is None or event.high_ms is None:
        return None
    without = event.missing_layers - event.predicted_layers + event.unmeasurable_layers
    predicted = PREDICTED if event.predicted_layers else ""
    note = f", without {without} of its layers" if without else ""
    note += f", {event.sampled_layers} still being sampled" if event.sampled_layers else ""
    note += f", {event.predicted_layers} predicted" if event.predicted_layers else ""
    return predicted + with_interval(event.sequential_ms, event.low_ms, event.high_ms, note)


def noise_counts(found: Disturbances) -> str:
    """Return how other programs disturbed the run; empty while they did not."""
    words = []
    if found.rounds:
        words.append(f"{counted(found.rounds, 'round')} repeated ({found.seconds:.0f} s)")
    if found.batches:
        words.append(f"{found.batches:,} batch{'' if found.batches == 1 else 'es'} restarted")
    if found.slower is not None:
        how = slower_words(found.slower) if found.slower > 0 else f"{percent(-found.slower)} faster"
        words.append(f"host {how} than at first")
    return ", ".join(words)


def noise_note(found: Disturbances) -> str:
    """Return how other programs disturbed the run and what helps; empty while they did not."""
    counts = noise_counts(found)
    return f"noise: {counts}; {_NOISE_HINT}" if counts else ""
