"""What stands above the lists of the run screen: which run, how far, and what it is at."""

from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.lines import Line, Span, bar, line, spread
from dlbricks_tui.tui.live.snapshot import RunSnapshot
from dlbricks_tui.tui.live.words import how_far, joined, state_of, what_now
from dlbricks_tui.wording.numbers import percent
from dlbricks_tui.wording.runs import names_of

_TRACK = "░"
# The last of the settings is the runtime, which takes many words.
_ROOMY = 150
# A change that a quiet host has at any time is none.
_WORTH_A_WARNING = 0.05


def head_lines(run: RunSnapshot | None, width: int) -> tuple[Line, ...]:
    """Three lines, whatever is known."""
    if run is None:
        return (line(Span(" Looking for the run.", "muted")), (), ())
    said = run.settings if width >= _ROOMY else run.settings[:-1]
    settings = (Span("  "), *joined([Span(text, "muted") for text in said]), Span(" "))
    who = (Span(" "), state_of(run), Span(f"  {names_of(run.models)}", "strong"), Span(f"  {run.run}", "muted"))
    return (spread(who, settings, width), _progress(run, width), spread(_now(run), _drift(run), width))


def _progress(run: RunSnapshot, width: int) -> Line:
    said = how_far(run)
    if run.share is None:
        return (Span(" "), *said)
    return (Span(" "), *bar(run.share, width // 3, _TRACK), Span(f" {percent(run.share):>5}  ", "strong"), *said)


def _now(run: RunSnapshot) -> Line:
    now = what_now(run)
    if not run.active and run.can_be_taken_up:
        return (Span(" "), *now, Span(f"  {key('run.take_up')}", "accent"), Span(" takes it up again", "muted"))
    return (Span(" "), *now)


def _drift(run: RunSnapshot) -> Line:
    if run.drift is None:
        return ()
    style = "warn" if abs(run.drift) >= _WORTH_A_WARNING else "muted"
    how = "slower" if run.drift > 0 else "faster"
    return (Span(f"  machine {percent(abs(run.drift), 1)} {how} than at first ", style),)
