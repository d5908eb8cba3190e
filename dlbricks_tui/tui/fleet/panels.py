"""The panels of the hosts of a fleet, of the models that it measures, and of the hosts of one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from dlbricks_tui.answers.fleets.results import FleetEstimate, FleetModel
from dlbricks_tui.documents.fleet import (
    dollars,
    estimate_columns,
    fastest_hosts,
    host_columns,
    hosts_picture,
    latency_on,
)
from dlbricks_tui.documents.lines import Span, line
from dlbricks_tui.documents.parts import Column, name_column
from dlbricks_tui.fleet.request import HostRow
from dlbricks_tui.tui.fleet import actions
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import Orders
from dlbricks_tui.tui.widgets.table import TablePanel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class HostsPanel(TablePanel[HostRow]):
    """A row for each host: its state, its progress, and what disturbs it."""

    scope = actions.HOSTS
    TITLE = "Hosts"
    REACHED_BY = "fleet.go_to_hosts"
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
        super().__init__(id="fleet-hosts")
        self.show_placeholder(
            line("There is no fleet run yet."),
            Hint("{fleet.start} starts one; see docs/guides/many-hosts.md.", "muted"),
        )

    def columns(self) -> tuple[Column[HostRow], ...]:
        return host_columns(self.items, in_panel=True)

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


class FleetModelsPanel(TablePanel[FleetModel]):
    """A row for each model: the fastest host, its latency, and whether the order of the hosts is settled."""

    TITLE = "Models"
    REACHED_BY = "fleet.go_to_models"
    SEARCH_HINT = "model, runtime or host"
    ABOUT = (
        "The models of the fleet run, with the host that is fastest so far. ~: a part is predicted; …: a part is "
        "missing. An order is settled once it is right with 95 % confidence."
    )

    class Selected(Message):
        """The cursor has settled on a model, or there is none."""

    def __init__(self) -> None:
        super().__init__(id="fleet-models")
        self.show_placeholder(line(Span("No host has an estimate yet.", "muted")))

    def columns(self) -> tuple[Column[FleetModel], ...]:
        return (
            name_column("model", lambda it: it.model),
            name_column("fastest", lambda it: " = ".join(fastest_hosts(it)), "strong"),
            Column("ms", lambda it: _of_fastest(it, latency_on)),
            Column("$/million", lambda it: _of_fastest(it, dollars)),
            Column(
                "order",
                lambda it: "settled" if it.settled else "open",
                style=lambda it: "good" if it.settled else "warn",
            ),
        )

    def show(self, models: Sequence[FleetModel]) -> None:
        self.show_items(tuple(models))
        self.cursor_settled()

    def identity(self, item: FleetModel) -> tuple[str, str]:
        return item.model, item.runtime

    def searched(self, item: FleetModel) -> str:
        return f"{item.model} {item.runtime} {' '.join(fastest_hosts(item))}"

    def search_changed(self) -> None:
        super().search_changed()
        self.cursor_settled()

    def cursor_settled(self) -> None:
        self.post_message(self.Selected())


def _of_fastest(model: FleetModel, told: Callable[[FleetEstimate], str]) -> str:
    fastest = fastest_hosts(model)
    return next((told(it) for it in model.estimates if it.host in fastest), "-")


class RankingPanel(TablePanel[FleetEstimate]):
    """The hosts of the selected model as bars, with interval, throughput and cost."""

    scope = actions.RANKING
    TITLE = "Ranking"
    REACHED_BY = "fleet.go_to_ranking"
    PICTURED = True
    ABOUT = (
        "The estimates of the selected model on each host. Latencies are in milliseconds. The price is that "
        "of a million inferences one after another, by the prices of the hosts file or of prices.toml."
    )

    ORDERS: ClassVar[Orders] = {
        "latency": lambda it: (it.sequential_ms is None, it.sequential_ms or 0.0),
        "cost": lambda it: (it.dollars_per_million is None, it.dollars_per_million or 0.0),
    }

    def __init__(self) -> None:
        super().__init__(id="fleet-ranking")
        self.show_placeholder(line(Span("Select a model.", "muted")))

    def columns(self) -> tuple[Column[FleetEstimate], ...]:
        return estimate_columns(max((it.sequential_ms or 0.0 for it in self.items), default=0.0))

    def show(self, model: FleetModel | None) -> None:
        self.show_items(() if model is None else model.estimates)
        self.show_picture(None if model is None else hosts_picture(model))
        self.show_title("" if model is None else f" for {model.model}, {model.runtime}")

    def show_counts(self) -> None:
        """Leave the title as it is: it names the model."""

    def identity(self, item: FleetEstimate) -> str:
        return item.host
