"""The run in one line, or two where there is room."""

from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.lines import Line, Span, bar, spread
from dlbricks_tui.tui.live.snapshot import RunSnapshot
from dlbricks_tui.tui.live.words import estimate_of, how_far, how_far_alone, state_of, what_now
from dlbricks_tui.wording.numbers import percent
from dlbricks_tui.wording.runs import names_of

ROOMY = 100
_BAR_NARROW, _BAR_WIDE = 10, 30
_TRACK = "░"


def bar_lines(run: RunSnapshot, width: int) -> tuple[Line, ...]:
    """What the run bar says."""
    roomy = width >= ROOMY
    if roomy:
        return (spread(_head(run, _BAR_WIDE, how_far(run)), _keys(run), width), spread(_foot(run), (), width))
    # Once the run has ended, its percentage says enough.
    return (spread(_head(run, _BAR_NARROW if run.active else 0, how_far_alone(run)), _keys(run), width),)


def _keys(run: RunSnapshot) -> Line:
    show = (Span(f"  {key('workbench.go_to_run')} ", "accent"), Span("run ", "muted"))
    close = (Span(f"  {key('workbench.close_run_bar')} ", "accent"), Span("close", "muted"))
    return show if run.active else (*close, *show)


def _head(run: RunSnapshot, bar_width: int, said: Line) -> Line:
    head = (Span(" "), state_of(run), Span(" "))
    if run.share is None:
        return (*head, *(what_now(run) or (Span(names_of(run.models), "muted"),)))
    drawn = bar(run.share, bar_width, _TRACK) if bar_width else ()
    progress = (*drawn, Span(f" {percent(run.share):>5}  ", "strong"))
    return (*head, *progress, *said)


def _foot(run: RunSnapshot) -> Line:
    estimated = [model for model in run.estimates if model.sequential_ms is not None]
    now = what_now(run) if run.share is not None else ()
    spans = [Span(" ")]
    # The one that is least sure is the one that changes.
    for model in sorted(estimated, key=lambda it: -(it.half_widths[-1] if it.half_widths else 0))[:2]:
        spans += [*estimate_of(model), Span("   ")]
    return (*spans, *now)
