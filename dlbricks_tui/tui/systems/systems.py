"""The panels of all systems, of one system, and of what disturbs this host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.answers.pairs.compared import Kind
from dlbricks_tui.documents.lines import (
    BLANK,
    Line,
    Span,
    column,
    fact,
    fact_lines,
    line,
    number_column,
    titles,
    wrapped,
)
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.systems import actions
from dlbricks_tui.tui.widgets.panel import ItemPanel, Panel
from dlbricks_tui.tui.widgets.rows import DrawnRows, LineRows
from dlbricks_tui.wording.ages import ago
from dlbricks_tui.wording.numbers import counted, gibibytes, price_per_hour, speeds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dlbricks_tui.host.noise import Finding
    from dlbricks_tui.store.records import Runtime
    from dlbricks_tui.tui.systems.work import KnownSystem

_CORES, _MEMORY, _PRICE, _COUNT = 6, 9, 11, 8
_HERE = "this host "


class SystemsPanel(ItemPanel["KnownSystem"]):
    """The systems with results, and their prices; this host comes first."""

    scope = actions.SYSTEM_LIST
    TITLE = "Systems"
    REACHED_BY = "systems.go_to_systems"
    HEADED = True
    SEARCH_HINT = "name, processor or instance type"
    ABOUT = (
        "This host and all systems that have results in the store. You can change the prices in prices.toml in your "
        "data folder."
    )

    @dataclass
    class Selected(Message):
        """The cursor has settled on a system."""

        known: KnownSystem

    @dataclass
    class Taken(Message):
        """The user wants estimates from the results of this system."""

        known: KnownSystem

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="systems")
        self.rows.stands_for = self._comparable
        self.show_placeholder(line(Span("Reading the store.", "muted")))

    def heading(self, width: int) -> Line:
        right = titles(
            ("cores", _CORES), ("memory", _MEMORY), ("price", _PRICE), ("bricks", _COUNT), ("models", _COUNT)
        )
        return (Span(" "), column("system", _name_width(width - 1), "muted"), *right)

    def show(self, known: tuple[KnownSystem, ...]) -> None:
        self.show_placeholder(line("No system matches the search."), Hint("{find.clear} shows all.", "muted"))
        self.show_items(known)

    def searched(self, item: KnownSystem) -> str:
        system = item.system
        return f"{system.id} {system.name} {system.cpu} {system.instance_type}"

    def identity(self, item: KnownSystem) -> str:
        return item.system.id

    def show_counts(self) -> None:
        self.show_title()

    def search_changed(self) -> None:
        super().search_changed()
        self.cursor_settled()

    def cursor_settled(self) -> None:
        if self.selected is not None:
            self.post_message(self.Selected(self.selected))

    def action_take(self) -> None:
        if self.selected is not None:
            self.post_message(self.Taken(self.selected))

    def _comparable(self, index: int) -> ComparableRow | None:
        if index >= len(self.found):
            return None
        system = self.found[index].system
        return ComparableRow(Kind.SYSTEM, system.id, system.id, system.id)

    def _row(self, index: int, width: int) -> Line:
        known = self.found[index]
        system = known.system
        here = _HERE if known.is_host else ""
        return (
            *((Span(here, "accent"),) if here else ()),
            column(system.id, max(8, _name_width(width) - len(here))),
            number_column(str(system.cores or "-"), _CORES),
            number_column(gibibytes(system.memory_bytes), _MEMORY),
            number_column(price_per_hour(known.dollars_per_hour), _PRICE),
            number_column(f"{known.bricks:,}", _COUNT, "strong"),
            number_column(f"{known.models:,}", _COUNT),
        )


class SystemPanel(Panel):
    """The facts about one system."""

    TITLE = "System"
    REACHED_BY = "systems.go_to_system"
    ABOUT = "The facts about the system, and its measurements by runtime, level and method."

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="system")
        self._known: KnownSystem | None = None
        self._runtimes: Mapping[str, Runtime] = {}

    def show(self, known: KnownSystem, runtimes: Mapping[str, Runtime]) -> None:
        self._known, self._runtimes = known, runtimes
        self._list.move_to(0)
        self._list.remake()

    def _lines(self, width: int) -> Iterable[Line]:
        return _described(self._known, self._runtimes) if self._known else ()


def _name_width(width: int) -> int:
    return max(12, width - _CORES - _MEMORY - _PRICE - 2 * _COUNT - 1)


def _described(known: KnownSystem, runtimes: Mapping[str, Runtime]) -> Iterator[Line]:
    system = known.system
    yield line(Span(system.name, "strong"))
    yield fact("id", system.id)
    yield fact("processor", system.cpu or "unknown")
    if system.instance_type:
        yield fact("instance", system.instance_type)
    yield from fact_lines(system.facts)
    for each in known.peaks:
        yield fact("at most", f"{speeds(each)}, with {counted(each.threads, 'thread')}")
    if not known.ways:
        yield BLANK
        yield line("Nothing was measured on it yet.")
        yield Hint("On the workbench, {workbench.start_run} runs a model's bricks.", "muted").line
    if known.newest:
        yield fact("measured", f"last {ago(known.newest)}")
    for way in known.ways:
        runtime = runtimes.get(way.runtime)
        yield BLANK
        yield line(Span(runtime.name if runtime else way.runtime, "heading"))
        if runtime is not None:
            yield fact("framework", f"{runtime.framework} {runtime.version}, Python {runtime.python}")
            yield fact("threads", f"{runtime.threads}")
        yield fact("level", way.level.value, Span(f", protocol {way.protocol}", "muted"))
        yield fact("has", f"{counted(way.pairs, 'brick')} and {counted(way.models, 'model')} end to end")
        if way.models:
            yield fact("", f"{counted(way.models, 'model')} end to end")


_VERDICT = 8
_SIGNS = {"noisy": "!", "unknown": "?", "quiet": " "}
_STYLES = {"noisy": "warn", "unknown": "muted", "quiet": "good"}


class DoctorPanel(Panel):
    """The sources of noise on this host, with their effects and cures."""

    scope = actions.DOCTOR
    TITLE = "Doctor"
    REACHED_BY = "systems.go_to_doctor"
    ABOUT = "The sources of noise on this host, as in `dlbricks doctor`, the worst first. {doctor.copy} copies a cure."

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="doctor")
        self._found: tuple[Finding, ...] = ()
        # The finding that each line belongs to.
        self._owners: tuple[Finding, ...] = ()
        self._list.show_placeholder(line(Span("Examining this host.", "muted")))

    def show(self, found: tuple[Finding, ...]) -> None:
        """Show the findings, the worst first."""
        self._found = tuple(sorted(found, key=lambda it: list(_SIGNS).index(it.verdict.value)))
        noisy = sum(it.verdict.value == "noisy" for it in found)
        self.border_subtitle = f"{noisy} noisy" if noisy else ""
        self._list.remake()

    def action_copy(self) -> None:
        here = self._list.cursor
        cure = self._owners[here].cure if here < len(self._owners) else ""
        if cure:
            self.app.copy_to_clipboard(cure)
        else:
            self.notify("This line has no cure.")

    def _lines(self, width: int) -> tuple[Line, ...]:
        made = [(it, each) for it in self._found for long in _told(it) for each in wrapped(long, width)]
        self._owners = tuple(it for it, _ in made)
        return tuple(each for _, each in made)


def _told(found: Finding) -> Iterator[Line]:
    verdict = found.verdict.value
    head = column(f"{_SIGNS[verdict]} {verdict}", _VERDICT + 2, _STYLES[verdict])
    state = f": {found.state}" if found.state != verdict else ""
    yield line(head, Span(found.source, "strong"), state)
    if found.cure:
        yield line(column("", _VERDICT + 2), Span(found.effect, "muted"))
        yield line(column("    cure", _VERDICT + 2, "accent"), found.cure)
