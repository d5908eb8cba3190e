"""The screen of language models: how fast each is on this host, predicted at once and measured on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from dlbricks_tui.api import language_answers, language_models, loads
from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.followed_jobs import LanguageJob
from dlbricks_tui.api.language_answers import LanguageAnswer, LanguageOptions, LanguageWhatIf
from dlbricks_tui.api.language_models import LanguageOnSystem, language_on_systems
from dlbricks_tui.api.loads import TokenLoadOptions
from dlbricks_tui.documents.language import (
    curve_parts,
    execution_words,
    language_command,
    language_parts,
    language_plots,
    library_columns,
    line_of,
)
from dlbricks_tui.documents.language_comparison import executions_parts, what_if_columns, what_if_line
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Heading, Sentence
from dlbricks_tui.documents.token_loads import token_load_parts, token_load_plots
from dlbricks_tui.settings.language import AT_LEAST, BEST_FOR, CACHE, FLASH_ATTENTION, GENERATE, PROMPT, WEIGHTS
from dlbricks_tui.settings.measuring import END_TO_END
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.dialogs.notices import WritingScreen
from dlbricks_tui.tui.dialogs.paths import PathScreen
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.form import FormPanel, FormRow
from dlbricks_tui.tui.widgets.panel import DocumentPanel, Orders, TablePanel, counts_text
from dlbricks_tui.tui.widgets.screens import WorkScreen, ask
from dlbricks_tui.tui.widgets.text import PictureView
from dlbricks_tui.wording.answers import what_if_words
from dlbricks_tui.wording.numbers import counted, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dlbricks_tui.api.loads import TokenLoadAnswer
    from dlbricks_tui.api.session import WorkbenchSession
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.documents.pictures import Plot
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.language.architecture import LanguagePhase
    from dlbricks_tui.language.opening import NamedModel

    Answers = tuple[LanguageAnswer, ...]


_FILTERS = "{language_models.only_fitting} and {language_models.at_least}"


class LanguageModelsPanel(TablePanel[LanguageAnswer]):
    scope = scopes.LANGUAGE_MODELS
    TITLE = "Language models"
    SEARCH_HINT = "name"
    PLACEHOLDER = (Hint("Predicting the models of the library.", "muted"),)
    NOUN = "model"
    IDENTITY = attrgetter("model")
    NOTHING_TO_COPY = "Select a model first."
    ABOUT = (
        "Each model with its speed, the time until its first token, and its memory; ~ is predicted from what was "
        f"measured on this host. {{language_models.sort}} sorts; {_FILTERS} show only models that fit, or fast ones."
    )
    ORDERS: ClassVar[Orders] = {
        # Models that do not fit come last.
        "speed": lambda it: (not it.fits, -it.decode_tokens_per_second),
        "first token": lambda it: (not it.fits, it.first_token_ms),
        "memory": lambda it: it.memory_bytes,
        "parameters": lambda it: it.parameters,
        "name": lambda it: it.title.casefold(),
    }

    def __init__(self) -> None:
        super().__init__()
        self.answers: Sequence[LanguageAnswer] = ()
        self._only_fitting = False
        self._at_least = 0.0

    def columns(self) -> tuple[Column[LanguageAnswer], ...]:
        return library_columns(self.items)

    def show(self, answers: Sequence[LanguageAnswer], refusal: str = "") -> None:
        """Show these models, as far as they are wanted; or why there are none."""
        self.answers = answers
        none = Hint(f"No model is as asked for: {_FILTERS} change that, {{find.clear}} ends a search.", "muted")
        self.show_placeholder(line(Span(refusal, "warn")) if refusal else none)
        self.show_items([it for it in answers if self._is_wanted(it)])

    def searched(self, item: LanguageAnswer) -> str:
        return f"{item.model} {item.title}"

    def show_counts(self) -> None:
        fit = ", that fit" * self._only_fitting
        fast = f", at least {self._at_least:g} tokens/s" * (self._at_least > 0)
        counts = counts_text(len(self.found), len(self.answers))
        self.show_title(f" {counts}{fit}{fast}, by {self.order}" if self.answers else "")

    def action_only_fitting(self) -> None:
        self._only_fitting = not self._only_fitting
        self.show(self.answers)

    def action_at_least(self) -> None:
        box: WritingScreen[float] = WritingScreen(
            "At least so fast",
            f"{self._at_least:g}" if self._at_least else "",
            "Tokens per second; an empty line shows all models.",
            lambda text: AT_LEAST.kind.read(text) if text else 0.0,
        )
        ask(self.app, box, self._show_at_least)

    def copied(self) -> str | None:
        return language_command(self.selected) if self.selected else None

    def _show_at_least(self, rate: float) -> None:
        self._at_least = rate
        self.show(self.answers)

    def _is_wanted(self, it: LanguageAnswer) -> bool:
        return it.decode_tokens_per_second >= self._at_least and (it.fits or not (self._only_fitting or self._at_least))


class LanguageAnswerPanel(DocumentPanel):
    TITLE = "Answer"
    ABOUT = "All figures of the model, where its time goes, its memory, and other ways to execute it."

    def show(self, best_for: LanguagePhase, *answers: LanguageAnswer) -> None:
        """Show an answer, and the executions after it, the best first."""
        parts = [part for it in answers[:1] for part in language_parts(it, on_screen=True)]
        if len(answers) > 1:
            parts += [BLANK_LINE, Heading("All executions"), *executions_parts(answers[1:], best_for)]
        self.show_parts(parts, answers[0].model if answers else None)


class LanguageWhatIfsPanel(TablePanel[LanguageWhatIf]):
    scope = scopes.LANGUAGE_WHAT_IFS
    TITLE = "What could be faster"
    SEARCH_HINT = "change or setting"
    PLACEHOLDER = (Hint("Predicting what changes of the execution would gain.", "muted"),)
    NOUN = "what-if"
    IDENTITY = attrgetter("id")
    COPIES = attrgetter("how")
    NOTHING_TO_COPY = "There is no what-if to copy."
    ABOUT = (
        "Changes of the execution in the settings. The gain is the share of the time that a change saves, for the "
        "prompt and for each token: ~ is predicted from what was measured before the change, and measured is what "
        "{language.prove} finds, with its verdict."
    )
    ORDERS: ClassVar[Orders] = {
        f"by {name}": partial(lambda place, it: it.predicted[place].ratio, place)
        for place, name in enumerate(("all", "prefill", "decode"))
    }

    def __init__(self) -> None:
        super().__init__()
        self._proving = ""

    def columns(self) -> tuple[Column[LanguageWhatIf], ...]:
        return what_if_columns(self.items, self._proving, is_panel=True)

    def show_proving(self, identity: str) -> None:
        self._proving = identity
        self.columns_changed()

    def searched(self, item: LanguageWhatIf) -> str:
        return f"{item.id} {what_if_words(item.id)} {item.how}"

    def show_counts(self) -> None:
        self.show_title(f" {counts_text(len(self.found), len(self.items))}, {self.order}" if self.items else "")


class CompareLanguageScreen(ConfirmingScreen):
    scope = scopes.COMPARE_LANGUAGE
    MEASURES = True
    HEADING = "Compare all executions"
    ABOUT = "What is measured is kept, also if you cancel: the comparison then has predictions in its place."

    def __init__(self, name: str, lacking: int, seconds: float) -> None:
        told = f"{name} was not measured in {counted(lacking, 'execution')}; that takes about {duration(seconds)}."
        super().__init__(Sentence(told))


class LanguageCurvesPanel(DocumentPanel):
    TITLE = "Speed by length"
    ABOUT = (
        "Left: tokens per second after so many tokens, and what the bandwidth of the memory allows. Right: the time "
        "until the first token after a prompt of so many tokens. o is measured, ~ is predicted."
    )

    def __init__(self) -> None:
        super().__init__()
        self._second = PictureView()

    def compose(self) -> ComposeResult:
        with Horizontal(classes="pictures"):
            yield self.picture
            yield self._second
        yield self.rows

    def show(self, answer: LanguageAnswer) -> None:
        self.show_title(f" of {answer.title}")
        self._show_plots(language_plots(answer))
        self.show_parts(curve_parts(answer))

    def show_load(self, load: TokenLoadAnswer) -> None:
        self.show_title(f": users of {load.title or load.model}")
        self._show_plots(token_load_plots(load))
        self.show_parts(())

    def _show_plots(self, plots: tuple[Plot, ...]) -> None:
        for view, picture in zip_longest((self.picture, self._second), plots):
            view.show(picture)


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSettings(LanguageOptions):
    """Options with one precision, and at most one number of threads and runtime."""

    # True: a measurement also times the whole model.
    end_to_end: bool = False
    # The names of the runtimes to choose from.
    registered: tuple[str, ...] = ()

    @property
    def alternatives(self) -> LanguageOptions:
        """The options that compare all executions of this host."""
        return self.with_every_execution(self.registered)


class LanguageSettingsPanel(FormPanel):
    scope = scopes.LANGUAGE_SETTINGS
    TITLE = "Settings"
    ROWS = (
        FormRow(setting=PROMPT, words=lambda it: f"{it.prompt:,}"),
        FormRow(setting=GENERATE, words=lambda it: f"{it.generate:,}"),
        FormRow(setting=WEIGHTS, many=True),
        FormRow(setting=CACHE, many=True, usual="default"),
        FormRow(
            setting=THREADS,
            many=True,
            single=True,
            usual="default",
            offered=lambda _: [(it,) for it in THREADS.kind.offered],
        ),
        FormRow(
            setting=RUNTIME,
            kept_in="runtimes",
            many=True,
            usual="default",
            meaning="of this host",
            offered=lambda it: [(name,) for name in it.registered],
        ),
        FormRow(setting=BEST_FOR, label="best for"),
        FormRow(
            setting=END_TO_END,
            label="measure",
            meaning="a block stands for its equals",
            words=lambda it: "blocks and whole" if it.end_to_end else "blocks",
        ),
        FormRow(setting=FLASH_ATTENTION, many=True, usual="default", label="flash", meaning="attention of llama.cpp"),
    )
    ABOUT = (
        "What the models are asked to do, and how they are executed; the table follows each change. A carrier holds "
        "each different block of a model once. The whole model is built with random weights, and timed in an engine "
        "that people use. {language_settings.write} writes a number of your own."
    )


def read_details(model: NamedModel | str, settings: LanguageSettings, data: DataFolder) -> Iterator[Answers]:
    """Yield the answer of a model with its curves, then the same with what-ifs before those of all executions."""
    named = language_answers.named_model(model)
    (answer,) = language_models.stored_answers([named], settings, data)
    yield (answer,)
    others = language_models.stored_answers([named], settings.alternatives, data)
    (answer,) = language_models.stored_answers([named], replace(settings, what_ifs=True), data)
    yield (answer, *others)


def read_load(model: NamedModel | str, settings: LanguageSettings, data: DataFolder) -> TokenLoadAnswer:
    return loads.token_load(language_answers.named_model(model), taken(TokenLoadOptions, settings), data)


def on_systems(model: NamedModel | str, settings: LanguageSettings, data: DataFolder) -> tuple[LanguageOnSystem, ...]:
    """Return a model on this host and on all systems of the store."""
    return language_on_systems([language_answers.named_model(model)], settings, data)


def _as_options(threads: int | None) -> tuple[int, ...]:
    return () if threads is None else (threads,)


def _ignore(_: str) -> None:
    """Leave out what the list of models tells, too."""


class OpenLanguageModelScreen(PathScreen):
    """Returns the path of a model, or a name as a path."""

    HEADING = "Open a language model"
    HINT = "~/models/config.json"
    ENDINGS: ClassVar = (".json", ".gguf", ".onnx")
    ABOUT = (
        "The path of a config.json, of its folder, or of a GGUF file, of which the beginning is enough; or a name. "
        "{path.next} selects one of the names below. A ~ stands for your home folder."
    )

    def problem_with(self, path: Path) -> str:
        # It may be a name, also one with a slash: opening it says what is wrong.
        return ""


class LanguageScreen(WorkScreen[None, LanguageJob]):
    """Predicts the models of the library in a thread, and measures one of them in a process."""

    scope = scopes.LANGUAGE
    CSS = """
    /* At the left the models above their curves, at the right the answer above what-ifs and settings. */
    LanguageScreen.-medium .panels, LanguageScreen.-wide .panels { grid-size: 2 9; grid-columns: 13fr 7fr; }
    LanguageModelsPanel { row-span: 5; }
    LanguageAnswerPanel { row-span: 4; }
    LanguageWhatIfsPanel { row-span: 3; }
    LanguageCurvesPanel { row-span: 4; }
    LanguageSettingsPanel { row-span: 2; }
    /* The pictures stand side by side above the rows. */
    LanguageCurvesPanel .pictures { height: 5fr; }
    LanguageCurvesPanel .picture { height: 100%; }
    """
    ABOUT = (
        "How fast language models run on this host, and whether they fit into its memory, before you download them. "
        "{language.measure} measures the selected model, {language.cancel} cancels. It goes on when you leave."
    )
    UNDER_WAY = "A model is being measured"
    CANCELLED = "The measurement is cancelled; what it has stored is kept."

    def __init__(self, session: WorkbenchSession, config: Callable[[], Config]) -> None:
        self._config = config
        # The threads of the config, until it has others.
        self._configured = config().threads
        self._settings = LanguageSettings(threads=_as_options(self._configured))
        self._models = LanguageModelsPanel()
        self._answer = LanguageAnswerPanel()
        self._what_ifs = LanguageWhatIfsPanel()
        self._curves = LanguageCurvesPanel()
        self._form = LanguageSettingsPanel(self._settings, self._take)
        super().__init__(self._models, self._answer, self._what_ifs, self._curves, self._form)
        self._session = session
        self._data = session.data
        # All executions of the selected model.
        self._executions: Sequence[LanguageAnswer] = ()
        # True if its users are shown in place of its answer.
        self._shows_load = False
        # The models that the user has opened, by their names.
        self._opened: dict[str, NamedModel] = {}
        # Why there are no models.
        self._refusal = ""
        # True while the models are looked up, and if that has to be repeated.
        self._is_looking = self._is_outdated = False
        # The model to select once it is listed.
        self._wanted = ""

    def on_mount(self) -> None:
        self.run_in_thread(
            partial(language_answers.runtimes_here, self._data), "runtimes", self._runtimes_listed, _ignore
        )
        self.find_job(partial(LanguageJob.begun, self._data))

    def config_changed(self) -> None:
        before, self._configured = self._configured, self._config().threads
        if self._configured != before:
            self._take(replace(self._settings, threads=_as_options(self._configured)))

    # The models

    def look(self) -> None:
        # One look at a time: each computes for seconds.
        self._is_outdated = self._is_looking
        if not self._is_looking:
            self._is_looking = True
            look = partial(language_models.library_answers, self._settings, self._data, tuple(self._opened.values()))
            self.run_in_thread(look, "models", self._listed, partial(self._listed, ()))

    def _listed(self, found: tuple[LanguageAnswer, ...], refusal: str = "") -> None:
        self._is_looking = False
        if self._is_outdated:
            self.look()
            return
        self._refusal = refusal
        self._models.show(found, refusal)
        if self._wanted:
            self._models.select(self._wanted)
            self._wanted = ""

    @on(LanguageModelsPanel.Settled, "LanguageModelsPanel")
    def _model_selected(self) -> None:
        answer = self._models.selected
        self._answer.show(self._settings.best_for, *([] if answer is None else [answer]))
        self._executions, self._shows_load = (), False
        self._what_ifs.show_items(())
        if answer is not None:
            read = partial(read_details, self._named(answer), self._settings, self._data)
            self.run_steps_in_thread(read, "details", self._show_details, _ignore)
        self.head_changed()

    def _show_details(self, answers: tuple[LanguageAnswer, ...]) -> None:
        if self._models.selected is not None and self._models.selected.model == answers[0].model:
            if not self._shows_load:
                self._answer.show(self._settings.best_for, *answers)
                self._curves.show(answers[0])
            self._what_ifs.show_items(answers[0].what_ifs)
            self._executions = answers[1:]

    def action_tell_how(self) -> None:
        if chosen := self._what_ifs.selected:
            self.notify(what_if_line(chosen))

    def action_show_load(self) -> None:
        if (answer := self._models.selected) is None:
            self.notify("Select a model first.")
        else:
            read = partial(read_load, self._named(answer), self._settings, self._data)
            self.run_in_thread(read, "load", partial(self._show_load, self._settings))

    def _show_load(self, settings: LanguageSettings, load: TokenLoadAnswer) -> None:
        """Show the users of the selected model, unless it or the settings have changed since."""
        answer = self._models.selected
        if answer is not None and answer.model == load.model and settings == self._settings:
            self._shows_load = True
            self._answer.show_parts(token_load_parts(load, on_screen=True), f"users of {load.model}")
            self._curves.show_load(load)
            self.go_to(self._answer)

    def _named(self, answer: LanguageAnswer) -> NamedModel | str:
        return self._opened.get(answer.model, answer.model)

    def action_show_systems(self) -> None:
        from dlbricks_tui.tui.systems import AskedLanguageModel, SystemsScreen

        if (answer := self._models.selected) is None:
            self.notify("Select a model first.")
            return
        ask = partial(on_systems, self._named(answer), self._settings, self._data)
        asked = AskedLanguageModel(answer.model, ask)
        self.app.push_screen(SystemsScreen(self._session, None, asked))

    def action_open_path(self) -> None:
        self.ask(OpenLanguageModelScreen(), self._open)

    def _open(self, path: Path) -> None:
        # A name looks like a file of the folder that this process is in.
        named = str(path) if path.exists() else str(path).removeprefix(f"{Path.cwd()}/".replace("//", "/"))
        self.run_in_thread(partial(language_answers.named_model, named), "open", self._add)

    def _add(self, model: NamedModel) -> None:
        self._wanted = model.name
        self._opened[model.name] = model
        self.look()

    # The settings

    def _runtimes_listed(self, runtimes: tuple[str, ...]) -> None:
        self._settings = replace(self._settings, registered=runtimes)
        self._form.show(self._settings)

    def _take(self, settings: LanguageSettings) -> None:
        self._settings = settings
        self._form.show(settings)
        self.look()

    # What is shown

    def question(self) -> str:
        answer = self._models.selected
        named = "a language model" if answer is None else answer.title or answer.model
        return f"How fast does {named} run on this host?"

    def answer(self) -> Iterable[Line]:
        answer = self._models.selected
        if self._refusal:
            yield line(Span(f" {self._refusal}", "warn"))
        elif answer is not None:
            yield line(Span(f" {line_of(answer)}", "strong"))
        else:
            told = "Predicting the models of the library." if self._is_looking else "No model is selected."
            yield line(Span(f" {told}", "muted"))
        if self.failure:
            yield line(Span(f" {self.failure}", "bad"))
        # How far a measurement is must not be cut off.
        if self.job is not None:
            yield line(Span(f" {self.job.progress}", "good"))

    def state(self) -> Line:
        answer = self._models.selected
        if self.job is not None or answer is None:
            return ()
        told = "Predicting the models of the library." if self._is_looking else execution_words(answer)
        return line(Span(f" {told}", "muted"))

    # The measurement

    def action_measure(self) -> None:
        self._measure(self._settings)

    def action_compare(self) -> None:
        answer, lacking = self._models.selected, [it for it in self._executions if not it.is_measured]
        if answer is None:
            self.notify("Select a model to measure.")
        elif not self._executions:
            self.notify("The executions are still being looked up.")
        elif not lacking:
            self.notify("All executions of this host are measured.")
        elif not self.says_under_way():
            box = CompareLanguageScreen(answer.title, len(lacking), language_models.seconds_to_measure(lacking))
            self.ask(box, lambda _: self._measure(self._settings.alternatives))

    def action_prove(self) -> None:
        chosen = self._what_ifs.selected
        if chosen is None:
            self.notify("There is no what-if to prove.")
        elif self._measure(replace(self._settings, prove=(chosen.id,))):
            self._what_ifs.show_proving(chosen.id)

    def _measure(self, how: LanguageOptions) -> bool:
        """Measure the selected model, and return whether that begins."""
        answer = self._models.selected
        if answer is None:
            self.notify("Select a model to measure.")
        if answer is None or self.says_under_way():
            return False
        end_to_end = self._settings.end_to_end
        new = partial(LanguageJob.new, self._named(answer), how, self._data, end_to_end=end_to_end)
        self.run_in_thread(new, "order", self.follow, self._fail)
        return True

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._what_ifs.show_proving("")
        self.head_changed()

    def job_ended(self, job: LanguageJob) -> None:
        self._what_ifs.show_proving("")
        self.head_changed()
        self.look()
