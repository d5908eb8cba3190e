"""The panels of the hosts of a fleet, of the models that it measures, and of the hosts of one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from dlbricks_tui.documents.lines import Line, Span, bar, column, line, number_column, titles
from dlbricks_tui.fleet.events import HostEstimate
from dlbricks_tui.fleet.progress import HostRow
from dlbricks_tui.tui.fleet import actions
from dlbricks_tui.tui.fleet.pictures import hosts_picture
from dlbricks_tui.tui.fleet.view import ModelView, by_cost
from dlbricks_tui.tui.fleet.words import HOST_STYLES
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import ItemPanel, Orders
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.wording.fleets import dollars, latency_on
from dlbricks_tui.wording.numbers import duration, milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

_STATE, _DONE, _FAILED, _DISTURBED, _LEFT = 12, 13, 7, 10, 8
_LATENCY, _COST, _PER_SECOND, _ORDER = 11, 11, 10, 9
_BAR, _ROOM_FOR_BAR = 10, 90
_HALF, _SHORTEST_NAME, _WIDEST_BAR, _ROOM_FOR_RATES = 8, 12, 24, 70


class HostsPanel(ItemPanel[HostRow]):
    """A row for each host: its state, its progress, and what disturbs it."""

    scope = actions.HOSTS
    TITLE = "Hosts"
    REACHED_BY = "fleet.go_to_hosts"
    HEADED = True
    SEARCH_HINT = "name, state or system"
    ABOUT = (
        "The hosts of the fleet run. Bricks with a result here are counted, of all that are wanted. Disturbed rounds "
        "were repeated, as other programs ran. A lost host goes on when it returns. A distrusted one returned what is "
        "impossible: nothing of that is stored."
    )

    @dataclass
    class Told(Message):
        """The user wants something of the selected host: `pause` or `cancel`."""

        host: str
        what: str

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="fleet-hosts")
        self.show_placeholder(
            line("There is no fleet run yet."),
            Hint("{fleet.start} starts one; see docs/guides/many-hosts.md.", "muted"),
        )

    def heading(self, width: int) -> Line:
        right = titles(("bricks", _DONE), ("failed", _FAILED), ("disturbed", _DISTURBED), ("left", _LEFT))
        gap = Span(" " * (_BAR if width > _ROOM_FOR_BAR else 0))
        left = (column("host", _name_width(width - 1), "muted"), column("state", _STATE, "muted"), gap)
        return (Span(" "), *left, *right)

    def show(self, hosts: Sequence[HostRow]) -> None:
        self.show_items(tuple(hosts))

    def identity(self, item: HostRow) -> str:
        return item.name

    def searched(self, item: HostRow) -> str:
        return f"{item.name} {item.state.value} {item.system} {item.system_name} {item.message}"

    def action_pause(self) -> None:
        self._tell("pause")

    def action_cancel(self) -> None:
        self._tell("cancel")

    def action_copy(self) -> None:
        told = self.selected.message if self.selected is not None else ""
        self.copy(told or None, "This host reports nothing.")

    def _tell(self, what: str) -> None:
        if self.selected is not None:
            self.post_message(self.Told(self.selected.name, what))

    def _row(self, index: int, width: int) -> Line:
        it = self.found[index]
        style = HOST_STYLES.get(it.state, "text")
        name = column(it.name, _name_width(width))
        state = column(it.state.value, _STATE, style)
        if it.message and not it.of:
            # Nothing was measured: the reason is more important than zeros.
            return (name, state, Span(it.message, style))
        share = bar(it.bricks / it.of if it.of else 0.0, _BAR, "·") if width >= _ROOM_FOR_BAR else ()
        counts = number_column(f"{it.bricks:,}/{it.of:,}", _DONE, "strong")
        left = "" if it.seconds_left is None else duration(it.seconds_left)
        failed = number_column(f"{it.failed:,}" if it.failed else "", _FAILED, "bad")
        disturbed = number_column(f"{it.disturbed_rounds:,}" if it.disturbed_rounds else "", _DISTURBED, "warn")
        return (name, state, *share, counts, failed, disturbed, number_column(left, _LEFT))


def _name_width(width: int) -> int:
    room = width - _STATE - _DONE - _FAILED - _DISTURBED - _LEFT - (_BAR if width >= _ROOM_FOR_BAR else 0)
    return max(10, min(room, 40))


class FleetModelsPanel(ItemPanel[ModelView]):
    """A row for each model: the fastest host, its latency, and whether the order of the hosts is settled."""

    TITLE = "Models"
    REACHED_BY = "fleet.go_to_models"
    HEADED = True
    SEARCH_HINT = "model, runtime or host"
    ABOUT = (
        "The models of the fleet run, with the host that is fastest so far. ~: a part is predicted; …: a part is "
        "missing. An order is settled once it is right with 95 % confidence."
    )

    class Selected(Message):
        """The cursor has settled on a model, or there is none."""

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="fleet-models")
        self.show_placeholder(line(Span("No host has an estimate yet.", "muted")))

    def heading(self, width: int) -> Line:
        name, host = _model_widths(width - 1)
        right = titles(("ms", _LATENCY), ("$/million", _COST), ("order", _ORDER))
        return (Span(" "), column("model", name, "muted"), column("fastest", host, "muted"), *right)

    def show(self, models: Sequence[ModelView]) -> None:
        self.show_items(tuple(models))
        self.cursor_settled()

    def identity(self, item: ModelView) -> tuple[str, str]:
        return item.model, item.runtime

    def searched(self, item: ModelView) -> str:
        return f"{item.model} {item.runtime} {' '.join(item.fastest)}"

    def search_changed(self) -> None:
        super().search_changed()
        self.cursor_settled()

    def cursor_settled(self) -> None:
        self.post_message(self.Selected())

    def _row(self, index: int, width: int) -> Line:
        it = self.found[index]
        name, host = _model_widths(width)
        best = next((each for each in it.estimates if each.host in it.fastest), None)
        settled = column(
            "settled" if it.is_settled else "open", _ORDER, "good" if it.is_settled else "warn", right=True
        )
        return (
            column(it.model, name),
            column(" = ".join(it.fastest), host, "strong"),
            number_column("-" if best is None else latency_on(best), _LATENCY),
            number_column("-" if best is None else dollars(best), _COST),
            settled,
        )


def _model_widths(width: int) -> tuple[int, int]:
    room = max(16, width - _LATENCY - _COST - _ORDER)
    host = max(8, room * 2 // 5)
    return room - host, host


class RankingPanel(ItemPanel[HostEstimate]):
    """The hosts of the selected model as bars, with interval, throughput and cost."""

    scope = actions.RANKING
    TITLE = "Ranking"
    REACHED_BY = "fleet.go_to_ranking"
    HEADED = True
    PICTURED = True
    ABOUT = (
        "The estimates of the selected model on each host. Half of the 95 % interval stands after ±. The cost is that "
        "of a million inferences one after another, by the prices of the hosts file or of prices.toml."
    )

    ORDERS: ClassVar[Orders] = {
        "latency": lambda it: (it.sequential_ms is None, it.sequential_ms or 0.0),
        "cost": lambda it: (it.dollars_per_million is None, it.dollars_per_million or 0.0),
    }

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="fleet-ranking")
        self.show_placeholder(line(Span("Select a model.", "muted")))

    def heading(self, width: int) -> Line:
        name, room, per_second = _ranking_widths(width - 1)
        rates = (("per s", per_second),) if per_second else ()
        right = titles(("ms", _LATENCY), ("±", _HALF), ("", room), *rates, ("$/million", _COST))
        return (Span(" "), column("host", name, "muted"), *right)

    def show(self, model: ModelView | None) -> None:
        self.show_items(() if model is None else tuple(by_cost(model.estimates)))
        self.show_picture(None if model is None else hosts_picture(model))
        self.show_title("" if model is None else f" for {model.model}, {model.runtime}")

    def show_counts(self) -> None:
        """Leave the title as it is: it names the model."""

    def identity(self, item: HostEstimate) -> str:
        return item.host

    def _row(self, index: int, width: int) -> Line:
        it = self.found[index]
        name, room, per_second = _ranking_widths(width)
        longest_ms = max((each.sequential_ms or 0.0 for each in self.found), default=0.0)
        share = (it.sequential_ms or 0.0) / longest_ms if longest_ms else 0.0
        half_ms = None if it.low_ms is None or it.high_ms is None else (it.high_ms - it.low_ms) / 2
        return (
            column(it.host, name),
            number_column(latency_on(it), _LATENCY, "strong"),
            number_column("" if half_ms is None else milliseconds(half_ms), _HALF, "muted"),
            *((Span(" "), *bar(share, room - 1)) if room else ()),
            number_column("-" if it.per_second is None else f"{it.per_second:,.1f}", per_second),
            number_column(dollars(it), _COST),
        )


def _ranking_widths(width: int) -> tuple[int, int, int]:
    """Return the widths of the name, of the bar and of the throughput; a narrow panel leaves the throughput out."""
    per_second = _PER_SECOND if width >= _ROOM_FOR_RATES else 0
    room = max(_SHORTEST_NAME, width - _LATENCY - _HALF - per_second - _COST)
    drawn = max(0, min(_WIDEST_BAR, room - _SHORTEST_NAME))
    return room - drawn, drawn, per_second
