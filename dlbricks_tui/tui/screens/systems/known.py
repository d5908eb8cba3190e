"""The systems that the store knows, and this host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import BLANK, Line, Span, column, figure, line, wrapped
from dlbricks_tui.tui.samples import fact_lines, said
from dlbricks_tui.tui.widgets.line_rows import LineRows
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView, place_of
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dlbricks_tui.store.records import Runtime
    from dlbricks_tui.tui.screens.systems.errands import KnownSystem
    from dlbricks_tui.tui.widgets.search_line import SearchLine

_GIBIBYTE = 1 << 30
_CORES, _MEMORY, _PRICE, _COUNT = 6, 9, 11, 8
_HERE = "this host "


class SystemRows(RowsView):
    """The systems, this host first."""

    def __init__(self) -> None:
        super().__init__()
        self.known: tuple[KnownSystem, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self.known)

    @property
    def under_cursor(self) -> KnownSystem | None:
        """The system that the cursor is on."""
        return self.known[self.cursor] if self.cursor < len(self.known) else None

    def row(self, index: int, width: int) -> Line:
        known = self.known[index]
        system = known.system
        here = _HERE if known.is_host else ""
        name = column(system.id, max(8, _name_width(width) - len(here)))
        memory = f"{system.memory_bytes / _GIBIBYTE:.0f} GiB" if system.memory_bytes else "-"
        return (
            *((Span(here, "accent"),) if here else ()),
            name,
            figure(str(system.cores or "-"), _CORES),
            figure(memory, _MEMORY),
            figure(price(known.dollars_per_hour), _PRICE),
            figure(f"{known.bricks:,}", _COUNT, "strong"),
            figure(f"{known.models:,}", _COUNT),
        )


class SystemsPanel(Panel):
    """On what there are results, and what an hour of it costs."""

    scope = Scope.SYSTEM_LIST
    BINDINGS = bindings(Scope.SYSTEM_LIST)
    TITLE = "Systems"
    REACHED_BY = "systems.go_to_systems"
    HEADED = True
    SEARCH_HINT = "name, processor or instance type"
    ABOUT = (
        "This host, and all systems that the store has results of. Prices are yours to change, in prices.toml in your "
        "data folder."
    )

    class Rested(Message):
        """The cursor rests on a system."""

        def __init__(self, known: KnownSystem) -> None:
            super().__init__()
            self.known = known

    class Taken(Message):
        """The person wants estimates by the results of this system."""

        def __init__(self, known: KnownSystem) -> None:
            super().__init__()
            self.known = known

    def __init__(self) -> None:
        self._list = SystemRows()
        super().__init__(self._list, id="systems")
        self._known: tuple[KnownSystem, ...] = ()
        self._words: tuple[str, ...] = ()
        self._list.say(line(Span("Reading the store.", "muted")))

    def heading(self, width: int) -> Line:
        titles = (("cores", _CORES), ("memory", _MEMORY), ("price", _PRICE), ("bricks", _COUNT), ("models", _COUNT))
        right = (column(text, wide, "muted", right=True) for text, wide in titles)
        return (Span(" "), column("system", _name_width(width - 1), "muted"), *right)

    def show(self, known: tuple[KnownSystem, ...]) -> None:
        """Lists the systems."""
        self._known = known
        self._find()

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        self._words = tuple(event.text.casefold().split())
        self._find()

    def on_click(self) -> None:
        self.take_focus()

    def action_take(self) -> None:
        if self._list.under_cursor is not None:
            self.post_message(self.Taken(self._list.under_cursor))

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()
        self._tell()

    def _find(self) -> None:
        here = self._list.under_cursor
        self._list.known = tuple(it for it in self._known if _fits(it, self._words))
        self._list.say(line("No system is called so."), Hint("{find.clear} shows all.", "muted"))
        self._list.rows_changed()
        self._list.move_to(place_of(here and here.system.id, [it.system.id for it in self._list.known]))
        self._tell()

    def _tell(self) -> None:
        if self._list.under_cursor is not None:
            self.post_message(self.Rested(self._list.under_cursor))


class SystemPanel(Panel):
    """All that is known of one system."""

    scope = Scope.SYSTEM
    TITLE = "System"
    REACHED_BY = "systems.go_to_system"
    ABOUT = "What is known of the system, and what was measured on it, by which runtime in which way."

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="system")
        self._known: KnownSystem | None = None
        self._runtimes: Mapping[str, Runtime] = {}

    def show(self, known: KnownSystem, runtimes: Mapping[str, Runtime]) -> None:
        """Tells of a system."""
        self._known, self._runtimes = known, runtimes
        self._list.move_to(0)
        self._list.remake()

    def on_click(self) -> None:
        self.take_focus()

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()

    def _lines(self, width: int) -> tuple[Line, ...]:
        lines = _described(self._known, self._runtimes) if self._known else ()
        return tuple(each for long in lines for each in (wrapped(long, width) if long else [BLANK]))


def price(dollars_per_hour: float | None) -> str:
    """What an hour costs."""
    return "-" if dollars_per_hour is None else f"$ {dollars_per_hour:g}/h"


def _name_width(width: int) -> int:
    return max(12, width - _CORES - _MEMORY - _PRICE - 2 * _COUNT - 1)


def _described(known: KnownSystem, runtimes: Mapping[str, Runtime]) -> Iterator[Line]:
    system = known.system
    yield line(Span(system.name, "strong"))
    yield said("id", system.id)
    yield said("processor", system.cpu or "unknown")
    if system.instance_type:
        yield said("instance", system.instance_type)
    yield from fact_lines(system.facts)
    if not known.ways:
        yield BLANK
        yield line("Nothing was measured on it yet.")
        yield Hint("On the workbench, {workbench.start_run} runs a model's bricks.", "muted").line
    for way in known.ways:
        runtime = runtimes.get(way.runtime)
        yield BLANK
        yield line(Span(runtime.name if runtime else way.runtime, "heading"))
        if runtime is not None:
            yield said("framework", f"{runtime.framework} {runtime.version}, Python {runtime.python}")
            yield said("threads", f"{runtime.threads}")
        yield said("level", way.level.value, Span(f", protocol {way.protocol}", "muted"))
        yield said("has", f"{counted(way.pairs, 'brick')} in {counted(way.measurements, 'result')}")
        if way.models:
            yield said("", f"{counted(way.models, 'model')} end to end")


def _fits(known: KnownSystem, words: tuple[str, ...]) -> bool:
    system = known.system
    text = f"{system.id} {system.name} {system.cpu} {system.instance_type}".casefold()
    return all(word in text for word in words)
