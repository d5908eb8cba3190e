"""The screen of language models: how fast each is on this host, predicted at once and measured on demand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on

from dlbricks_tui.answers import language as asking
from dlbricks_tui.documents.language import execution_words, line_of
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.process import JobProcess
from dlbricks_tui.language import opening
from dlbricks_tui.language.orders import LANGUAGE, LanguageFailed, LanguageMeasured
from dlbricks_tui.tui.dialogs.paths import PathScreen
from dlbricks_tui.tui.followed import FollowedProcess
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.language.panels import (
    LanguageAnswerPanel,
    LanguageCurvesPanel,
    LanguageModelsPanel,
    LanguageSettings,
    LanguageSettingsPanel,
)
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.wording.jobs import language_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dlbricks_tui.answers.language import LanguageAnswer
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.language.opening import NamedModel
    from dlbricks_tui.tui.session import Session

    Answers = tuple[LanguageAnswer, ...]


def read_details(model: NamedModel | str, settings: LanguageSettings, data: DataFolder) -> Iterator[Answers]:
    """Yield the answer of a model with its curves, then the same before those of other executions."""
    named = named_model(model)
    (answer,) = asking.stored_answers([named], settings, data)
    yield (answer,)
    yield (answer, *asking.stored_answers([named], settings.alternatives, data))


def _ignore(_: str) -> None:
    """Leave out what the list of models tells, too."""


def named_model(model: NamedModel | str) -> NamedModel:
    """Return a model, or that of a path or a name; raise a UserError where there is none."""
    return opening.open_language_model(model) if isinstance(model, str) else model


class LanguageMeasuring(FollowedProcess):
    """A language model that is measured."""

    def __init__(self, process: JobProcess) -> None:
        super().__init__(process)
        # The last message; None until the process has written one.
        self._last: Event | None = None

    @classmethod
    def new(cls, model: NamedModel | str, settings: LanguageSettings, data: DataFolder) -> LanguageMeasuring:
        """Return a measurement that starts when it is followed; raise a UserError if the model cannot be measured."""
        return cls(asking.language_process([named_model(model)], settings, data, end_to_end=settings.end_to_end))

    @classmethod
    def begun(cls, data: DataFolder) -> LanguageMeasuring | None:
        """Return the newest measurement that was begun before, and that nobody has followed to its end."""
        found = LANGUAGE.last_unseen(data)
        return None if found is None else cls(JobProcess.started_before(LANGUAGE, found, data))

    @property
    def progress(self) -> str:
        if self.cancelled:
            return "cancelling"
        return "the measurement starts" if self._last is None else language_line(self._last)

    @property
    def has_result(self) -> bool:
        return isinstance(self._last, LanguageMeasured)

    def take(self, message: Event) -> None:
        if language_line(message):
            self._last = message
        if isinstance(message, LanguageFailed):
            self.failure = message.line


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


class LanguageScreen(AnswerScreen[None]):
    """Predicts the models of the library in a thread, and measures one of them in a process."""

    scope = scopes.LANGUAGE
    CSS_PATH = "language.tcss"
    AUTO_FOCUS = "#language-models RowsView"
    ABOUT = (
        "How fast language models run on this host, and whether they fit into its memory, before you download them. "
        "{language.measure} measures the selected model, {language.cancel} cancels. It goes on when you leave."
    )

    def __init__(self, session: Session, config: Config) -> None:
        self._settings = LanguageSettings(threads=() if config.threads is None else (config.threads,))
        self._models = LanguageModelsPanel()
        self._answer = LanguageAnswerPanel()
        self._curves = LanguageCurvesPanel()
        self._form = LanguageSettingsPanel(self._settings)
        super().__init__(self._models, self._answer, self._curves, self._form)
        self._data = session.data
        # The models that the user has opened, by their names.
        self._opened: dict[str, NamedModel] = {}
        # Why there are no models, and why the last measurement failed.
        self._refusal = self._failure = ""
        self._measuring: LanguageMeasuring | None = None
        # True while the models are looked up, and if that has to be repeated.
        self._is_looking = self._is_outdated = False
        # The model to select once it is listed.
        self._wanted = ""

    def on_mount(self) -> None:
        self.run_in_thread(partial(asking.runtimes_here, self._data), "runtimes", self._runtimes_listed, _ignore)
        self.run_in_thread(partial(LanguageMeasuring.begun, self._data), "begun", self._go_on)

    # The models

    def look(self) -> None:
        # One look at a time: each computes for seconds.
        self._is_outdated = self._is_looking
        if not self._is_looking:
            self._is_looking = True
            look = partial(asking.library_answers, self._settings, self._data, tuple(self._opened.values()))
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

    @on(LanguageModelsPanel.Settled, "#language-models")
    def _model_selected(self) -> None:
        answer = self._models.selected
        self._answer.show(*([] if answer is None else [answer]))
        if answer is not None:
            read = partial(read_details, self._named(answer), self._settings, self._data)
            self.run_steps_in_thread(read, "details", self._show_details, _ignore)
        self.head_changed()

    def _show_details(self, answers: tuple[LanguageAnswer, ...]) -> None:
        if self._models.selected is not None and self._models.selected.model == answers[0].model:
            self._answer.show(*answers)
            self._curves.show(answers[0])

    @on(LanguageModelsPanel.Opened, "#language-models")
    def _model_opened(self) -> None:
        self.go_to(self._answer)

    def _named(self, answer: LanguageAnswer) -> NamedModel | str:
        return self._opened.get(answer.model, answer.model)

    def action_open_path(self) -> None:
        self.ask(OpenLanguageModelScreen(), self._open)

    def _open(self, path: Path) -> None:
        # A name looks like a file of the folder that this process is in.
        named = str(path) if path.exists() else str(path).removeprefix(f"{Path.cwd()}/")
        self.run_in_thread(partial(named_model, named), "open", self._add)

    def _add(self, model: NamedModel) -> None:
        self._wanted = model.name
        if all(it.model != model.name for it in self._models.answers):
            self._opened[model.name] = model
        self.look()

    # The settings

    def _runtimes_listed(self, runtimes: tuple[str, ...]) -> None:
        self._settings = replace(self._settings, registered=runtimes)
        self._form.show(self._settings)

    @on(LanguageSettingsPanel.Chosen)
    def _chosen(self, event: LanguageSettingsPanel.Chosen) -> None:
        self._settings = event.settings
        self._form.show(self._settings)
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
        if self._failure:
            yield line(Span(f" {self._failure}", "bad"))
        # How far a measurement is must not be cut off.
        if self._measuring is not None:
            yield line(Span(f" {self._measuring.progress}", "good"))

    def state(self) -> Line:
        answer = self._models.selected
        if self._measuring is not None or answer is None:
            return ()
        told = "Predicting the models of the library." if self._is_looking else execution_words(answer)
        return line(Span(f" {told}", "muted"))

    # The measurement

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "cancel":
            return self._measuring is not None
        return super().check_action(action, parameters)

    def action_measure(self) -> None:
        answer = self._models.selected
        if self._measuring is not None:
            self.notify(f"A model is being measured: {key('language.cancel')} cancels it.")
        elif answer is None:
            self.notify("Select a model to measure.")
        else:
            new = partial(LanguageMeasuring.new, self._named(answer), self._settings, self._data)
            self.run_in_thread(new, "order", self._go_on, self._fail)

    def _fail(self, reason: str) -> None:
        self._failure = reason
        self.head_changed()

    def _go_on(self, measuring: LanguageMeasuring | None) -> None:
        if measuring is not None and self._measuring is None:
            self._measuring, self._failure = measuring, ""
            self.run_worker(self._follow(measuring), group="measurement", exit_on_error=False)
        self.head_changed()

    async def _follow(self, measuring: LanguageMeasuring) -> None:
        try:
            await measuring.follow(self.head_changed)
        finally:
            self._measuring, self._failure = None, measuring.failure
            if measuring.cancelled:
                self.notify("The measurement is cancelled; what it has stored is kept.")
            self.head_changed()
            self.look()

    def action_cancel(self) -> None:
        if self._measuring is not None:
            self._measuring.cancel()
            self.head_changed()

    def action_leave(self) -> None:
        if self._measuring is not None:
            show_message(self.app, "The measurement goes on in the background; this screen shows it again.")
        super().action_leave()
