"""The bar of the followed run, below the workbench."""

from textual.message import Message

from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.lines import Line, Span, bar, spread
from dlbricks_tui.tui.run.snapshot import RunSnapshot
from dlbricks_tui.tui.run.words import estimate_of, how_far, how_far_alone, load_of, state_of, what_now
from dlbricks_tui.tui.widgets.text import LineBar
from dlbricks_tui.wording.numbers import names_of, percent

_ROOMY = 100
_BAR_NARROW, _BAR_WIDE = 10, 30
_TRACK = "░"


def bar_lines(run: RunSnapshot, width: int) -> tuple[Line, ...]:
    """Return the lines of the run bar."""
    roomy = width >= _ROOMY
    if roomy:
        return (
            spread(_head(run, _BAR_WIDE, how_far(run)), _keys(run), width),
            spread(_foot(run), load_of(run, with_cores=True), width),
        )
    # An ended run needs no bar beside its percentage.
    return (spread(_head(run, _BAR_NARROW if run.active else 0, how_far_alone(run)), _keys(run), width),)


def _keys(run: RunSnapshot) -> Line:
    show = (Span(f"  {key('workbench.show_run')} ", "accent"), Span("run ", "muted"))
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
    # The least certain estimate changes most.
    for model in sorted(estimated, key=lambda it: -(it.half_widths[-1] if it.half_widths else 0))[:2]:
        spans += [*estimate_of(model), Span("   ")]
    return (*spans, *now)


class RunBar(LineBar):
    """Shows the followed run; hidden without a run, and after the user has seen how it ended."""

    class Opened(Message):
        """The user wants to see the run screen."""

    def __init__(self) -> None:
        super().__init__(id="run")
        self._run: RunSnapshot | None = None
        self._drawn: tuple[Line, ...] = ()
        self.display = False

    def show(self, run: RunSnapshot) -> None:
        self._run = run
        self.display = True
        # Drawing disturbs measurements.
        if bar_lines(run, self.size.width) != self._drawn:
            self.refresh(layout=not self._drawn)

    def hide(self) -> None:
        self.display = False
        self._drawn = ()

    def lines(self, width: int) -> tuple[Line, ...]:
        self._drawn = bar_lines(self._run, width) if self._run is not None else ()
        return self._drawn

    def on_click(self) -> None:
        self.post_message(self.Opened())
