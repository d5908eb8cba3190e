"""The line at the foot of the screens: what measures, waits or was interrupted, and how busy this host is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.lines import Line, Span, bar, spread, width_of
from dlbricks_tui.documents.run import how_far, load_of, state_of, what_now
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.widgets.text import LineBar
from dlbricks_tui.wording.numbers import counted, names_of, percent
from dlbricks_tui.wording.runs import line_of_work

if TYPE_CHECKING:
    from dlbricks_tui.api.followed_runs import RunSnapshot
    from dlbricks_tui.host.queue import Place

# The widths of the bar of progress, and whether the load of each core is drawn.
_SHAPES = ((30, True), (10, False), (0, False))
_BAR = 10
# The most phrases that tell how far a run is.
_PHRASES = 5
_TRACK = "░"


class HostNow(NamedTuple):
    """The run, the line of work and the load of this host; `run` is followed until the user has seen its end."""

    run: RunSnapshot | None = None
    places: tuple[Place, ...] = ()
    # How busy the host is, in words; empty if that is not known.
    load: str = ""

    @property
    def line(self) -> tuple[Place, ...]:
        """The work in line, unless it is the followed run alone; that one has no place after its end."""
        run, places = self.run, self.places
        if run is None or run.replay is not None:
            return places
        others = tuple(it for it in places if it.id != run.run)
        return places if others and run.active else others


def status_line(now: HostNow, width: int, *, has_keys: bool) -> Line:
    """Return the line. If it is too long, the load of the host goes first, then names of what waits, then phrases."""
    keys = _keys(now) if has_keys else ()
    for bar_width, with_cores in _SHAPES:
        left, right = _measures(now, bar_width), (*_load(now, with_cores=with_cores), *keys)
        if width_of(left) + width_of(right) <= width:
            return spread(left, right, width)
    named = ((_BAR, _PHRASES, True), (0, _PHRASES, True))
    for bar_width, phrases, with_names in (*named, *((0, most, False) for most in range(_PHRASES, 0, -1))):
        left = _measures(now, bar_width, phrases, with_names=with_names)
        if width_of(left) + width_of(keys) <= width:
            break
    return spread(left, keys, width)


def _load(now: HostNow, *, with_cores: bool) -> Line:
    if now.run is not None and now.run.active:
        # The words about the host are of before the run, and a replay has no host.
        return load_of(now.run, with_cores=with_cores)
    return (Span(f"  {now.load} ", "muted"),) if now.load else ()


def _measures(now: HostNow, bar_width: int, phrases: int = _PHRASES, *, with_names: bool = True) -> Line:
    run, places = now.run, now.line
    is_first = run is not None and bool(places) and places[0].id == run.run
    several = counted(run.interrupted, "run") + " interrupted" if run is not None and run.interrupted > 1 else ""
    if places and not is_first:
        resumable = run is not None and run.can_be_resumed
        ended = several or f"{run.state.value}: {names_of(run.models)}" if run is not None and resumable else ""
        style = "strong" if places[0].measures else "warn"
        return (Span(f" {line_of_work(places)}", style), Span(f"; {ended}" if ended else "", "warn"))
    if run is None:
        return (Span(" nothing measures", "muted"),)
    if several:
        return (Span(f" {several}", "bad"),)
    head = (Span(" "), state_of(run), Span(" "))
    waiting = ", ".join(it.brief for it in places[1:]) if with_names else counted(len(places) - 1, "other")
    then = (Span(f"; then {waiting}", "warn"),) if is_first else ()
    if run.share is None:
        return (*head, *(what_now(run) or (Span(names_of(run.models), "muted"),)), *then)
    # An ended run needs no bar beside its percentage.
    drawn = bar(run.share, bar_width, _TRACK) if run.active and bar_width else ()
    return (*head, *drawn, Span(f" {percent(run.share):>5}  ", "strong"), *how_far(run, phrases), *then)


def _keys(now: HostNow) -> Line:
    if now.line:
        return (Span(f"  {key('workbench.show_queue')} ", "accent"), Span("queue ", "muted"))
    if now.run is None:
        return ()
    show = (Span(f"  {key('workbench.show_run')} ", "accent"), Span("run ", "muted"))
    close = (Span(f"  {key('workbench.close_run_bar')} ", "accent"), Span("close", "muted"))
    if now.run.interrupted > 1:
        return (*close, Span(f"  {key('workbench.show_runs')} ", "accent"), Span("jobs ", "muted"))
    if now.run.is_interrupted:
        # The key on the screen of the run.
        resume = f"  {key('workbench.show_run')} {key('run.pause')} "
        return (*close, Span(resume, "accent"), Span("resume ", "muted"))
    return show if now.run.active else (*close, *show)


class StatusLine(LineBar):
    """Tells what measures, also where the screen is about something else; only the workbench has its keys."""

    def __init__(self, *, has_keys: bool = False) -> None:
        super().__init__(id="status")
        self.now = HostNow()
        self._has_keys = has_keys
        self._drawn: Line = ()

    def show(self, now: HostNow) -> None:
        had_run, self.now = self.now.run, now
        # Drawing disturbs measurements.
        if self._drawn and status_line(now, self.size.width, has_keys=self._has_keys) != self._drawn:
            self.refresh()
        if (had_run is None) is not (now.run is None):
            self.screen.refresh_bindings()

    def lines(self, width: int) -> tuple[Line, ...]:
        self._drawn = status_line(self.now, width, has_keys=self._has_keys)
        return (self._drawn,)
