"""The screen of systems: where results come from, which machine is best for a model, and what disturbs this host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on

from dlbricks_tui.api.language_models import LanguageOnSystem
from dlbricks_tui.api.open_models import ComparableRow, PairKind
from dlbricks_tui.api.session import Asked, WorkbenchSession, options_of
from dlbricks_tui.api.store_contents import KnownSystem, Systems, examine_host, list_systems, rank_systems
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import Column, Sentence
from dlbricks_tui.documents.systems import (
    OF_THE_LIVE_HOST,
    finding_parts,
    language_systems_answer,
    language_systems_columns,
    machine_columns,
    noisy_words,
    system_columns,
    system_parts,
)
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import Copyable, DocumentPanel, Orders, TablePanel
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.wording.jobs import machines_answer, machines_question

if TYPE_CHECKING:
    from dlbricks_tui.estimate.comparison import Candidate
    from dlbricks_tui.host.noise import Finding
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.store.records import RuntimeRecord


class SystemsPanel(TablePanel[KnownSystem]):
    scope = scopes.SYSTEM_LIST
    TITLE = "Systems"
    SEARCH_HINT = "name, processor or instance type"
    PLACEHOLDER = (Hint("Reading the store.", "muted"),)
    NOUN = "system"
    IDENTITY = attrgetter("system.id")
    ABOUT = (
        "This host and all systems that have results in the store. You can change the prices in prices.toml in your "
        "data folder."
    )

    def columns(self) -> tuple[Column[KnownSystem], ...]:
        return system_columns(self.items)

    def searched(self, item: KnownSystem) -> str:
        system = item.system
        return f"{system.id} {system.name} {system.cpu} {system.instance_type}"

    def comparable(self, item: KnownSystem) -> ComparableRow:
        return ComparableRow(PairKind.SYSTEM, item.system.id, item.system.id, item.system.id)

    def show_counts(self) -> None:
        self.show_title()


class SystemPanel(DocumentPanel):
    TITLE = "System"
    ABOUT = "The facts about the system, and its measurements by runtime, level and method."


class DoctorPanel(DocumentPanel):
    scope = scopes.DOCTOR
    TITLE = "Doctor"
    PLACEHOLDER = (Hint("Examining this host.", "muted"),)
    NOTHING_TO_COPY = "This line has no cure."
    ABOUT = "The sources of noise on this host, as in `dlbricks doctor`, the worst first. {doctor.copy} copies a cure."


class MachinesPanel(TablePanel["Candidate"]):
    scope = scopes.MACHINES
    TITLE = "Which machine"
    IDENTITY = attrgetter("estimate.way.system")
    ABOUT = (
        "The answer of the open model on each system, with its combination, and the cost of a million inferences one"
        " after another on an otherwise idle machine. part: some of the model was not measured there; ~: a"
        " predicted range."
    )
    ORDERS: ClassVar[Orders] = {
        "latency": lambda it: (not it.complete, it.latency_ms),
        # Machines without a price come last.
        "cost": lambda it: (not it.complete, it.dollars_per_million is None, it.dollars_per_million or 0.0),
    }

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model

    def columns(self) -> tuple[Column[Candidate], ...]:
        # A search hides systems, but the quickest one stays the same.
        return machine_columns("system", self.items)

    def show_counts(self) -> None:
        self.show_title(f" for {self._model}" if self._model else "")

    def comparable(self, item: Candidate) -> ComparableRow:
        system = item.estimate.way.system
        return ComparableRow(PairKind.SYSTEM, system, system, system)


class LanguageMachinesPanel(TablePanel[LanguageOnSystem]):
    scope = scopes.MACHINES
    TITLE = "Which machine"
    PLACEHOLDER = (Hint("Predicting.", "muted"),)
    IDENTITY = attrgetter("system")
    ABOUT = (
        "The language model on each system: tokens per second, its first token, its memory, and the cost of a million"
        " generated tokens, one request after another. ~: a prediction, and what it rests on."
    )
    ORDERS: ClassVar[Orders] = {
        "speed": lambda it: (not it.fits, not it.competes, -(it.decode_tokens_per_second or 0.0)),
        "cost": lambda it: (not it.fits, it.cost is None, it.cost.dollars_per_million if it.cost else 0.0),
    }

    def columns(self) -> tuple[Column[LanguageOnSystem], ...]:
        return language_systems_columns(self.items)

    def show_counts(self) -> None:
        self.show_title()


class TakenSystem(NamedTuple):
    """A system whose results the user wants estimates from, and the level measured there."""

    system: str
    level: Level


class AskedLanguageModel(NamedTuple):
    """The name of a language model, and the function that asks for it on all systems, which takes a while."""

    model: str
    on_systems: Callable[[], Sequence[LanguageOnSystem]]


class SystemsScreen(AnswerScreen[TakenSystem]):
    """Returns a system and the level measured there, if the user wants estimates from its results."""

    scope = scopes.SYSTEMS
    CSS = """
    SystemsScreen.-medium .panels { grid-columns: 3fr 2fr; grid-rows: 4fr 5fr; }
    SystemsScreen.-wide .panels { grid-columns: 1fr 1fr; grid-rows: 4fr 5fr; }
    """
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "The systems with measurements, the quickest and the cheapest of them for the open model, and what disturbs "
        "this host."
    )

    def __init__(
        self, session: WorkbenchSession, asked: Callable[[], Asked] | None, language: AskedLanguageModel | None = None
    ) -> None:
        self._systems = SystemsPanel()
        self._system = SystemPanel()
        self._language = language
        self._model = asked().spec.source.name if asked else language.model if language else ""
        self._machines = MachinesPanel(self._model)
        self._language_machines = LanguageMachinesPanel()
        self._doctor = DoctorPanel()
        machines = self._language_machines if language else self._machines
        super().__init__(self._systems, self._system, machines, self._doctor)
        self._session = session
        self._asked = asked
        self._runtimes: Mapping[str, RuntimeRecord] = {}
        self._found: Sequence[Candidate] | None = None
        self._found_language: Sequence[LanguageOnSystem] | None = None

    def question(self) -> str:
        return machines_question(self._model)

    def answer(self) -> Iterable[Line]:
        if self._language is not None:
            found = self._found_language
            told = language_systems_answer(found or ()) or "No system is known to be the quickest."
            yield line(Span(" Predicting.", "muted") if found is None else Span(f" {told}", "strong"))
        elif self._asked is None:
            yield line(Span(" Open a model on the workbench to compare the systems for it.", "muted"))
        elif self._found is None:
            yield line(Span(" Estimating.", "muted"))
        elif not self._found:
            yield Hint(" Nothing was measured of it yet: {systems.leave} {workbench.start_run} measures.", "warn").line
        else:
            yield line(Span(f" {machines_answer(self._model, self._found)}", "strong"))
        if self._found is not None and len(self._found) < 2:
            yield Hint(
                " {workbench.show_results} {results.import_file} on the workbench imports results of other hosts,"
                " {workbench.show_fleet} measures there.",
                "muted",
            ).line

    def on_mount(self) -> None:
        if self._language is not None:
            return
        self._machines.show_counts()
        if self._asked is not None:
            self._machines.show_placeholder(Hint("Estimating.", "muted"))
        else:
            how = Hint("to see its latency and cost on every system.", "muted")
            self._machines.show_placeholder(Hint("Open a model on the workbench"), how)

    @on(SystemsPanel.Settled, "SystemsPanel")
    def _system_selected(self) -> None:
        if (known := self._systems.selected) is not None:
            hint = Hint("On the workbench, {workbench.start_run} runs a model's bricks.", "muted")
            self._system.show_parts([*system_parts(known, self._runtimes), *[hint] * (not known.ways)], known.system.id)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # No estimates of language models are taken from a system.
        is_taken = self._language is None or action not in ("take_system", "take_machine")
        return is_taken and super().check_action(action, parameters)

    def action_take_system(self) -> None:
        if (known := self._systems.selected) is not None and known.ways:
            self.dismiss(TakenSystem(known.system.id, known.ways[0].level))
        else:
            self.notify("Nothing was measured on it yet.")

    def action_take_machine(self) -> None:
        if (machine := self._machines.selected) is not None:
            self.dismiss(TakenSystem(machine.estimate.way.system, machine.estimate.way.level))

    def look(self) -> None:
        self.run_steps_in_thread(self._looked, "look", lambda show: show())

    def _looked(self) -> Iterator[Callable[[], None]]:
        """Yield functions that show what was found.

        One step follows another: in parallel, they would disturb the examination of this host.
        """
        yield partial(self._show_systems, list_systems(self._session))
        if self._asked is not None:
            asked = self._asked()
            yield partial(self._show_machines, rank_systems(asked.spec.source, options_of(*asked), self._session.data))
        if self._language is not None:
            yield partial(self._show_language, self._language.on_systems())
        yield partial(self._show_findings, examine_host())

    def _show_systems(self, found: Systems) -> None:
        self._runtimes = found.runtimes
        self._systems.show_items(found.known)

    def _show_machines(self, found: Sequence[Candidate]) -> None:
        self._found = found
        self._machines.show_placeholder(
            line(f"{self._model} was not measured on any system."),
            Hint("On the workbench, {workbench.start_run} runs its bricks here;", "muted"),
            Hint("{workbench.show_results} {results.import_file} imports results of other hosts.", "muted"),
        )
        self._machines.show_items(found)
        self.head_changed()

    def _show_language(self, found: Sequence[LanguageOnSystem]) -> None:
        self._found_language = found
        self._language_machines.show_items(found)
        self.head_changed()

    def _show_findings(self, found: Sequence[Finding]) -> None:
        self._doctor.border_subtitle = noisy_words(found)
        live = [Copyable((Sentence(OF_THE_LIVE_HOST, "warn"),))] if recorded_host() is not None else []
        self._doctor.show_groups([*live, *(Copyable(tuple(finding_parts(it)), it.cure) for it in found)])
