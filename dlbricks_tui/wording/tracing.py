"""The progress of a trace in words."""

from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.printable import printable
from dlbricks_tui.traces.messages import LevelDone, RoundStarted
from dlbricks_tui.wording.numbers import in_ms


def trace_question(model: str) -> str:
    """Return the question that a trace answers."""
    return f"Where does the time of {printable(model)} go, layer by layer?"


def message_line(message: Event) -> str:
    """Return a message of the process that traces as a line; empty if others say the same.

    `layer level: 3.600 ms per inference, +0.2000 ms`
    """
    if isinstance(message, Waiting):
        return f"waiting for {message.holder}"
    if isinstance(message, RoundStarted):
        return f"round {message.number} of {message.rounds}" if message.rounds > 1 else ""
    if not isinstance(message, LevelDone):
        return ""
    level = f"{message.level.value} level"
    if message.inference_ms is None:
        return f"{level}: not traced: {message.missing}"
    added = "" if message.overhead_ms is None else f", {signed_ms(message.overhead_ms)}"
    return f"{level}: {in_ms(message.inference_ms)} per inference{added}"


def signed_ms(difference_ms: float) -> str:
    """Return a difference of latencies with its sign: `+0.2000 ms`."""
    return f"{'-' if difference_ms < 0 else '+'}{in_ms(abs(difference_ms))}"
