"""The progress of proofs, exports and language models in words."""

from collections.abc import Mapping

from dlbricks_tui.analysis.proving import ProofDone, ProofOrder, RoundsDone
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.language.orders import LanguageMessage
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES
from dlbricks_tui.share.exporting import BricksChecked, ExportNoted, SuiteWritten
from dlbricks_tui.wording.changes import what_if_words
from dlbricks_tui.wording.fleets import suite_contents
from dlbricks_tui.wording.numbers import counted, duration, signed_percent


def proof_line(event: Event, order: ProofOrder) -> str:
    """Return how far a proof is, or its end."""
    if isinstance(event, RoundsDone):
        gain = signed_percent(event.gain.value)
        if event.rounds >= FEWEST_SAMPLES:
            gain += f" +- {50 * (event.gain.high - event.gain.low):.1f} points"
        return f"{what_if_words(event.what_if)}: {gain} after {counted(event.rounds, 'round')}"
    if not isinstance(event, ProofDone):
        return ""
    words = what_if_words(event.what_if)
    if event.gain is None:
        return f"{words}: not proved for {order.source.name}: {event.failure}"
    low, high = map(signed_percent, event.gain.interval)
    predicted = next((signed_percent(it.gain.value) for it in order.what_ifs if it.id == event.what_if), "nothing")
    measured = f"{words}: measured {signed_percent(event.gain.gain)} ({low} to {high}), predicted {predicted}"
    return f"{measured}, in {counted(event.rounds, 'round')}"


def export_line(event: Event) -> str:
    """Return how far an export is, or its end."""
    match event:
        case ExportNoted():
            return event.text
        case BricksChecked():
            return f"{event.done:,} of {event.of:,} bricks checked, about {duration(event.seconds_left)} left"
        case SuiteWritten():
            return f"{suite_contents(event)}; the key is {event.key}: keep it to yourself"
    return ""


def language_line(event: Event) -> str:
    """Return the line of an event of measuring language models; empty if it has none."""
    if isinstance(event, Waiting):
        return f"waiting for {event.holder}"
    return event.line if isinstance(event, LanguageMessage) else ""


def unreadable_in_words(unread: Mapping[str, int]) -> str:
    """Return which events could not be read: `3 events of another version are left out: Flown, Sung`; empty if none."""
    if not unread:
        return ""
    names = ", ".join(sorted(filter(None, unread))) or "torn lines"
    return f"{counted(sum(unread.values()), 'event')} of another version left out: {names}"
