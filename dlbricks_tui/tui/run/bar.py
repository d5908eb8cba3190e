"""The bar of the followed run, below the workbench."""

from collections.abc import Sequence

from textual.message import Message

from dlbricks_tui.documents.lines import Line, Span, bar, spread
from dlbricks_tui.host.queue import Place
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.run.snapshot import RunSnapshot
from dlbricks_tui.tui.run.words import estimate_of, how_far, load_of, state_of, what_now
from dlbricks_tui.tui.widgets.text import LineBar
from dlbricks_tui.wording.numbers import names_of, percent
from dlbricks_tui.wording.runs import line_of_work

_ROOMY = 100
_BAR_NARROW, _BAR_WIDE = 10, 30
_TRACK = "░"


def status_lines(run: RunSnapshot | None, places: Sequence[Place], width: int) -> tuple[Line, ...]:
    """Return the lines of the bar: the line of work on this host, unless it is only the run, and then the run."""
    lines = () if run is None else bar_lines(run, width)
    if not places or (run is not None and run.active and [it.id for it in places] == [run.run]):
        return lines
    keys = (Span(f"  {key('workbench.show_queue')} ", "accent"), Span("queue ", "muted"))
    words = Span(f" {line_of_work(places)}", "strong" if places[0].measures else "warn")
    # A run that is under way is part of the line already.
    return (spread((words,), keys, width), *(() if run is not None and run.active and width < _ROOMY else lines[:1]))


def bar_lines(run: RunSnapshot, width: int) -> tuple[Line, ...]:
    """Return the lines about the followed run."""
    roomy = width >= _ROOMY
    if roomy:
        return (
            spread(_head(run, _BAR_WIDE, how_far(run)), _keys(run), width),
            spread(_foot(run), load_of(run, with_cores=True), width),
        )
    # An ended run needs no bar beside its percentage.
    return (spread(_head(run, _BAR_NARROW if run.active else 0, how_far(run)), _keys(run), width),)


def _keys(run: RunSnapshot) -> Line:
    show = (Span(f"  {key('workbench.show_run')} ", "accent"), Span("run ", "muted"))
    close = (Span(f"  {key('workbench.close_run_bar')} ", "accent"), Span("close", "muted"))
    if run.state is State.INTERRUPTED and run.replay is None:
        # The key on the screen of the run.
        resume = f"  {key('workbench.show_run')} {key('run.resume')} "
        return (*close, Span(resume, "accent"), Span("resume ", "muted"))
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
    """Shows the followed run until the user has seen how it ended, and other work on this host; hidden without both."""

    class Opened(Message):
        """The user wants to see the run screen."""

    def __init__(self) -> None:
        super().__init__(id="run")
        self._run: RunSnapshot | None = None
        self.places: tuple[Place, ...] = ()
        self._drawn: tuple[Line, ...] = ()
        self.display = False

    def show(self, run: RunSnapshot) -> None:
        self._run = run
        self._show()

    def show_queue(self, places: tuple[Place, ...]) -> None:
        """Show the line of work on this host."""
        self.places = places
        self._show()

    def hide(self) -> None:
        """Show no run."""
        self._run = None
        self._show()

    @property
    def shows_run(self) -> bool:
        return self._run is not None

    def _show(self) -> None:
        lines = status_lines(self._run, self.places, self.size.width)
        self.display = bool(lines)
        # Drawing disturbs measurements.
        if lines != self._drawn:
            self.refresh(layout=len(lines) != len(self._drawn))
        if not lines:
            self._drawn = ()

    def lines(self, width: int) -> tuple[Line, ...]:
        self._drawn = status_lines(self._run, self.places, width)
        return self._drawn

    def on_click(self) -> None:
        self.post_message(self.Opened())
