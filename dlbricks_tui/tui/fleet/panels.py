"""The panels of the fleet screen (hosts, models, the hosts of a model), and its boxes."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from dlbricks_tui.api.fleets import FleetEstimate, FleetModel, FleetSettings
from dlbricks_tui.documents.fleet import (
    dollars,
    estimate_columns,
    fastest_hosts,
    host_columns,
    hosts_picture,
    latency_on,
)
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Sentence, name_column
from dlbricks_tui.settings.measuring import PROBE, QUESTION
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.dialogs.paths import PathScreen
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.run.boxes import StoredRunsScreen
from dlbricks_tui.tui.widgets.form import FormDialog, FormRow
from dlbricks_tui.tui.widgets.panel import Orders, TablePanel
from dlbricks_tui.wording.answers import runtime_words
from dlbricks_tui.wording.numbers import names_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.fleet.request import HostRow
    from dlbricks_tui.jobs.folder import JobState


class HostsPanel(TablePanel["HostRow"]):
    scope = scopes.FLEET_HOSTS
    ID = "fleet-hosts"
    TITLE = "Hosts"
    REACHED_BY = "fleet.go_to_hosts"
    SEARCH_HINT = "name, state or system"
    PLACEHOLDER = (
        Hint("There is no fleet run yet."),
        Hint("{fleet.start} starts one; see docs/guides/many-hosts.md.", "muted"),
    )
    NOUN = "host"
    IDENTITY = attrgetter("name")
    NOTHING_TO_COPY = "This host reports nothing."
    ABOUT = (
        "The hosts of the fleet run. Bricks with a result here are counted, of all that are wanted. Disturbed rounds "
        "were repeated, as other programs ran. A lost host goes on when it returns. A distrusted one returned what is "
        "impossible: nothing of that is stored."
    )

    @dataclass
    class Told(Message):
        """The user wants something of the selected host: `pause` or `cancel`."""

        host: HostRow
        what: str

    def columns(self) -> tuple[Column[HostRow], ...]:
        return host_columns(self.items, in_panel=True)

    def searched(self, item: HostRow) -> str:
        return f"{item.name} {item.state.value} {item.system} {item.system_name} {item.message}"

    def copied(self) -> str | None:
        return self.selected.message if self.selected else None

    def action_tell(self, what: str) -> None:
        if self.selected is not None:
            self.post_message(self.Told(self.selected, what))


class FleetModelsPanel(TablePanel[FleetModel]):
    ID = "fleet-models"
    TITLE = "Models"
    REACHED_BY = "fleet.go_to_models"
    SEARCH_HINT = "model, runtime or host"
    PLACEHOLDER = (Hint("No host has an estimate yet.", "muted"),)
    NOUN = "model"
    IDENTITY = attrgetter("model", "runtime")
    ABOUT = (
        "The models of the fleet run, with the host that is fastest so far. ~: a part is predicted; part: a part is "
        "missing. An order is sure once it is right with 95 % confidence."
    )

    def columns(self) -> tuple[Column[FleetModel], ...]:
        return (
            name_column("model", lambda it: it.model),
            name_column("fastest", lambda it: " = ".join(fastest_hosts(it)), "strong"),
            Column("ms", lambda it: _of_fastest(it, latency_on)),
            Column("$/million", lambda it: _of_fastest(it, dollars)),
            Column(
                "order",
                lambda it: "sure" if it.settled else "not sure",
                style=lambda it: "good" if it.settled else "warn",
            ),
        )

    def searched(self, item: FleetModel) -> str:
        return f"{item.model} {item.runtime} {' '.join(fastest_hosts(item))}"


def _of_fastest(model: FleetModel, told: Callable[[FleetEstimate], str]) -> str:
    fastest = fastest_hosts(model)
    return next((told(it) for it in model.estimates if it.host in fastest), "-")


class RankingPanel(TablePanel[FleetEstimate]):
    """The hosts of the selected model as bars, with interval, throughput and cost."""

    scope = scopes.FLEET_RANKING
    ID = "fleet-ranking"
    TITLE = "Ranking"
    REACHED_BY = "fleet.go_to_ranking"
    PICTURED = True
    ABOUT = (
        "The estimates of the selected model on each host. Latencies are in milliseconds. The price is that "
        "of a million inferences one after another, by the prices of the hosts file or of prices.toml."
    )
    PLACEHOLDER = (Hint("Select a model.", "muted"),)
    IDENTITY = attrgetter("host")
    ORDERS: ClassVar[Orders] = {
        "latency": lambda it: (it.sequential_ms is None, it.sequential_ms or 0.0),
        "cost": lambda it: (it.dollars_per_million is None, it.dollars_per_million or 0.0),
    }

    def columns(self) -> tuple[Column[FleetEstimate], ...]:
        return estimate_columns(max((it.sequential_ms or 0.0 for it in self.items), default=0.0))

    def show(self, model: FleetModel | None) -> None:
        self.show_items(() if model is None else model.estimates)
        self.show_picture(None if model is None else hosts_picture(model))
        self.show_title("" if model is None else f" for {model.model}, {runtime_words(model.runtime)}")

    def show_counts(self) -> None:
        """Leave the title as it is: it names the model."""


class HostsFileScreen(PathScreen):
    """Returns the path of a hosts file."""

    HEADING = "Hosts file"
    HINT = "~/hosts.toml"
    ENDINGS = (".toml",)
    ABOUT = (
        "The path of a hosts file, which names the hosts that are reached over SSH. "
        "docs/guides/many-hosts.md describes it. {path.next} selects one of the names below."
    )


class StartFleetScreen(FormDialog[FleetSettings]):
    """Returns the settings to start the fleet run with."""

    scope = scopes.START_FLEET
    CSS_PATH = "fleet.tcss"
    ABOUT = (
        "`which-host` measures until the order of the hosts is certain; `everything` measures all bricks on all hosts. "
        "The probe measures the bricks that tell most, before any other. The fleet run is a separate process that "
        "continues if you quit."
    )

    def __init__(self, models: tuple[str, ...], runtimes: tuple[str, ...]) -> None:
        rows = (
            FormRow(setting=QUESTION),
            FormRow(setting=PROBE, label="probe", words=lambda it: f"{it.probe_seconds:g} s"),
            FormRow(setting=RUNTIME, usual="default", meaning="that measures on all hosts", offered=lambda _: runtimes),
            FormRow(setting=THREADS, usual="default", meaning="on all hosts", offered=lambda _: (1, 2, 4, 8, 16)),
        )
        super().__init__(rows, FleetSettings(), heading=f"Measure {names_of(models)} on a fleet")


class AllFleetsScreen(StoredRunsScreen[str]):
    """Returns the id of the fleet run to watch."""

    scope = scopes.FLEETS
    HEADING = "Fleet runs"
    NOUN, STARTED_BY = "fleet run", "{fleet.start}"
    ABOUT = "All fleet runs, the newest first, including those that were started in other terminals."

    def result_for(self, job: JobState) -> str:
        return job.run


class CancelFleetScreen(ConfirmingScreen):
    HEADING = "Cancel the fleet run?"
    scope = scopes.CANCEL_FLEET
    ABOUT = "The store keeps all results. You can resume the fleet run later."

    def __init__(self, run: str, models: tuple[str, ...]) -> None:
        told = "Its hosts end what they measure. Its results are kept, and it can be resumed later."
        super().__init__(Sentence(f"Fleet run {run} of {names_of(models)}."), BLANK_LINE, Sentence(told))
