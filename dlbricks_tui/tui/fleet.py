"""The screen of fleets: many hosts that measure for one user, and what models take on each of them."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on

from dlbricks_tui.api.fleets import (
    FleetEstimate,
    FleetJob,
    FleetModel,
    FleetSettings,
    FleetView,
    newest_fleet,
    start_fleet,
)
from dlbricks_tui.api.jobs import pause_or_resume
from dlbricks_tui.api.new_runs import registered_runtimes
from dlbricks_tui.config.config import Config
from dlbricks_tui.documents.fleet import (
    dollars,
    estimate_columns,
    fastest_hosts,
    fastest_sentence,
    fleet_question,
    host_columns,
    hosts_picture,
    latency_on,
)
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Sentence, name_column
from dlbricks_tui.documents.run import STATE_STYLES
from dlbricks_tui.settings.measuring import PROBE, QUESTION
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.dialogs.paths import PathScreen
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.messages import ResultsStored
from dlbricks_tui.tui.widgets.form import FormDialog, FormRow
from dlbricks_tui.tui.widgets.panel import Orders, TablePanel
from dlbricks_tui.tui.widgets.screens import WorkScreen
from dlbricks_tui.wording.answers import runtime_words
from dlbricks_tui.wording.jobs import settled_line
from dlbricks_tui.wording.numbers import ago, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from dlbricks_tui.api.session import WorkbenchSession
    from dlbricks_tui.fleet.request import HostChanged
    from dlbricks_tui.models.library import ModelSource


class HostsPanel(TablePanel["HostChanged"]):
    scope = scopes.FLEET_HOSTS
    TITLE = "Hosts"
    SEARCH_HINT = "name, state or system"
    PLACEHOLDER = (
        Hint("There is no fleet run yet."),
        Hint("{fleet.start} starts one; see docs/guides/many-hosts.md.", "muted"),
    )
    NOUN = "host"
    IDENTITY = attrgetter("host")
    COPIES = attrgetter("message")
    NOTHING_TO_COPY = "This host reports nothing."
    ABOUT = (
        "The hosts of the fleet run. Bricks with a result here are counted, of all that are wanted. Disturbed rounds "
        "were repeated, as other programs ran. A lost host goes on when it returns. A distrusted one returned what is "
        "impossible: nothing of that is stored."
    )

    def columns(self) -> tuple[Column[HostChanged], ...]:
        return host_columns(self.items, in_panel=True)

    def searched(self, item: HostChanged) -> str:
        return f"{item.host} {item.state.value} {item.system} {item.system_name} {item.message}"


class FleetModelsPanel(TablePanel[FleetModel]):
    TITLE = "Models"
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
    TITLE = "Ranking"
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
    """Returns the path of a hosts file, for hosts that are to measure."""

    MEASURES = True
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
    CSS = "StartFleetScreen RowsView { height: 4; }"
    ABOUT = (
        "`which-host` measures until the order of the hosts is certain; `everything` measures all bricks on all hosts. "
        "The probe measures the bricks that tell most, before any other. The fleet run is a separate process that "
        "continues if you quit."
    )

    def __init__(self, models: tuple[str, ...], runtimes: tuple[str, ...], first: FleetSettings) -> None:
        rows = (
            FormRow(setting=QUESTION),
            FormRow(setting=PROBE, label="probe", words=lambda it: f"{it.probe_seconds:g} s"),
            FormRow(setting=RUNTIME, usual="default", meaning="that measures on all hosts", offered=lambda _: runtimes),
            FormRow(setting=THREADS, usual="default", meaning="on all hosts", offered=lambda _: (1, 2, 4, 8, 16)),
        )
        super().__init__(rows, first, heading=f"Measure {names_of(models)} on a fleet")


class CancelFleetScreen(ConfirmingScreen):
    HEADING = "Cancel the fleet run?"
    scope = scopes.CANCEL_FLEET
    ABOUT = "The store keeps all results. You can resume the fleet run later."

    def __init__(self, run: str, models: tuple[str, ...]) -> None:
        told = "Its hosts end what they measure. Its results are kept, and it can be resumed later."
        super().__init__(Sentence(f"Fleet run {run} of {names_of(models)}."), BLANK_LINE, Sentence(told))


# Over SSH each change of the screen costs time.
_SECONDS_BETWEEN_LOOKS = 0.5


class FleetScreen(WorkScreen[None, Any]):
    """Shows a fleet run, which goes on when the screen is closed."""

    scope = scopes.FLEET
    CSS = """
    FleetScreen.-medium .panels, FleetScreen.-wide .panels { grid-rows: 2fr 3fr; }
    FleetScreen.-medium HostsPanel, FleetScreen.-wide HostsPanel { column-span: 2; }
    """
    ABOUT = (
        "Many hosts that measure for you: the models stay here, and only their layers travel. {fleet.start} starts a "
        "fleet run of the marked or open models on the hosts of a hosts file. {fleet.show_fleets} leads to other fleet "
        "runs."
    )

    def __init__(
        self, session: WorkbenchSession, sources: tuple[ModelSource, ...], config: Callable[[], Config], run: str = ""
    ) -> None:
        """`run` is the id of the fleet run to watch; empty: the newest one."""
        self._hosts = HostsPanel()
        self._models = FleetModelsPanel()
        self._ranking = RankingPanel()
        super().__init__(self._hosts, self._models, self._ranking)
        self._data = session.data
        self._sources = sources
        self._config = config
        self._first = run
        self._fleet: FleetJob | None = None
        self._view: FleetView | None = None
        self._is_looking = False

    def on_mount(self) -> None:
        if self._first:
            self.watch_fleet(self._first)
        else:
            self.run_in_thread(partial(newest_fleet, self._data), "open", self._watch)
        self.set_interval(_SECONDS_BETWEEN_LOOKS, self.look)

    # Watching

    def watch_fleet(self, run: str) -> None:
        """Watch a fleet run in place of the one before."""
        self.run_in_thread(partial(FleetJob.find, run, self._data), "open", self._watch)

    def _watch(self, fleet: FleetJob | None) -> None:
        if fleet is not None:
            self._fleet, self._is_looking = fleet, False
            self.look()

    def look(self) -> None:
        # A slow disk must not let threads pile up.
        if self._fleet is not None and not self._is_looking and self.app.screen is self:
            self._is_looking = True
            self.run_in_thread(self._fleet.look, "look", partial(self._show, self._fleet))

    def _show(self, fleet: FleetJob, view: FleetView | None) -> None:
        if fleet is not self._fleet:
            return
        self._is_looking = False
        if view is not None:
            self._view = view
            self._hosts.show_items(view.hosts)
            self._models.show_items(view.result.models)
            self.head_changed()

    @on(FleetModelsPanel.Settled, "FleetModelsPanel")
    def _model_selected(self) -> None:
        self._ranking.show(self._models.selected)

    def question(self) -> str:
        view = self._view
        if view is None:
            return "Which host is best?"
        return fleet_question(view.result.question, view.state.models, len(view.hosts))

    def state(self) -> Line:
        if self._view is None:
            return ()
        state = self._view.state
        named = Span(f"  {state.run}, begun {ago(state.started)}", "muted")
        return line(Span(f" {state.state.value}", STATE_STYLES.get(state.state, "text")), named)

    def answer(self) -> Iterable[Line]:
        if self._view is None:
            yield Hint(" {fleet.start} starts a fleet run of the marked or open models.", "muted").line
            return
        models = self._view.result.models
        if self._view.failure:
            yield line(Span(f" {self._view.failure}", "bad"))
        elif not models:
            yield line(Span(" Nothing is known yet.", "muted"))
        elif all(it.settled for it in models):
            yield line(Span(f" {fastest_sentence(models, is_final=True)}; the order is sure.", "good"))
        else:
            found = Span(f" {fastest_sentence(models, is_final=False)}", "strong")
            yield line(found, Span(f"; {settled_line(it.settled for it in models)}.", "warn"))

    # Control

    def action_leave(self) -> None:
        # What its hosts have measured is in the store.
        self.app.post_message(ResultsStored())
        super().action_leave()

    def controls(self) -> Mapping[str, bool]:
        is_active = self._view is not None and self._view.state.active
        return {"cancel": is_active, "add": is_active, "pause": self._view is not None}

    def action_start(self) -> None:
        def ask_settings(hosts_file: Path) -> None:
            self.run_in_thread(
                partial(registered_runtimes, self._data), "runtimes", partial(ask_with_runtimes, hosts_file)
            )

        def ask_with_runtimes(hosts_file: Path, runtimes: tuple[str, ...]) -> None:
            names = tuple(source.name for source in self._sources)
            config = self._config()
            first = FleetSettings(
                runtime=config.runtime,
                threads=config.threads,
                target_interval=config.target_ci,
                time_budget_seconds=config.time_budget,
            )
            self.ask(StartFleetScreen(names, runtimes, first), partial(start, hosts_file))

        def start(hosts_file: Path, settings: FleetSettings) -> None:
            self.notify("The fleet run is being started.")
            begin = partial(start_fleet, self._sources, hosts_file, settings, self._data)
            self.run_in_thread(begin, "start", self._watch)

        if not self._sources:
            self.notify(f"Mark models on the workbench with {key('app.mark')}, or open one.")
        else:
            self.ask(HostsFileScreen(), ask_settings)

    def action_show_fleets(self) -> None:
        from dlbricks_tui.tui.run.boxes import AllJobsScreen

        self.app.push_screen(AllJobsScreen(self._data))

    def action_pause(self) -> None:
        self._tell(lambda fleet: pause_or_resume(fleet.folder.run, self._data))

    def action_cancel(self) -> None:
        if self._view is not None:
            box = CancelFleetScreen(self._view.state.run, self._view.state.models)
            self.ask(box, lambda _: self._tell(lambda fleet: fleet.folder.cancel()))

    def action_add(self) -> None:
        self.ask(HostsFileScreen(), lambda path: self._tell(lambda fleet: fleet.add_hosts(path)))

    def action_tell_host(self, what: str) -> None:
        if (host := self._hosts.selected) is not None:
            self._tell(lambda fleet: fleet.control_host(host, what))

    def _tell(self, what: Callable[[FleetJob], object]) -> None:
        """Tell the driver something; errors are shown."""
        if self._fleet is not None:
            self.run_in_thread(partial(what, self._fleet), "tell")
