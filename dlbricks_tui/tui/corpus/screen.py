"""The screen of the corpus: what repeats within and across models, and how accurate estimates are."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from textual import on

from dlbricks_tui.answers.choices import Choices, change_setting, setting_named
from dlbricks_tui.answers.library_scans import ComparedModels, compare_models, find_accuracies
from dlbricks_tui.answers.open_models import ModelSpec
from dlbricks_tui.answers.session import Session
from dlbricks_tui.documents.corpus import totals_words
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.tui.corpus.panels import GranularitiesPanel, KindsPanel, LikenessPanel, UniquenessPanel
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.tui.workbench.work import is_wanted
from dlbricks_tui.wording.numbers import counted

QUESTION = "How many layers of these models are repeated?"


class CorpusScreen(AnswerScreen[None]):
    """Reads the models in a thread, then compares them."""

    scope = scopes.CORPUS
    CSS_PATH = "corpus.tcss"
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "The marked models of the workbench, or the whole library. Reading a model for the first time at this level "
        "takes the framework a moment; {corpus.read_all} reads those models too."
    )

    def __init__(
        self, session: Session, specs: Callable[[Choices], Sequence[ModelSpec]], choices: Choices, *, measuring: bool
    ) -> None:
        self._uniqueness = UniquenessPanel()
        self._kinds = KindsPanel()
        self._likeness = LikenessPanel()
        self._granularities = GranularitiesPanel()
        super().__init__(self._uniqueness, self._kinds, self._likeness, self._granularities)
        self._session = session
        self._specs_for = specs
        # The paper counts single written layers, whatever the workbench shows.
        self._choices = choices.of_single_layers()
        self._measuring = measuring
        self._read_all = False
        self._compared: ComparedModels | None = None
        self._progress = ""

    def look(self) -> None:
        self._start_reading()
        self._update_estimate()

    def take_new_results(self) -> None:
        # They arrive once no run measures any more.
        self._measuring = False
        self._update_estimate()

    def _update_estimate(self) -> None:
        specs = self._specs_for(self._choices)
        find = partial(find_accuracies, self._session, specs, is_wanted, measuring=self._measuring)
        self.run_in_thread(find, "accuracy", self._granularities.show)

    @on(UniquenessPanel.Opened, "#uniqueness")
    def _model_chosen(self) -> None:
        if self._uniqueness.selected is not None and self._uniqueness.selected.number is not None:
            self._likeness.go_to_model(self._uniqueness.selected.number - 1)
            self.go_to(self._likeness)

    def action_read_all(self) -> None:
        self._measuring, self._read_all = False, True
        self.look()

    def action_change(self, setting: str, step: int) -> None:
        choices = change_setting(setting_named(setting), self._choices, step)
        if choices != self._choices:
            self._choices = choices
            self._start_reading()

    def _start_reading(self) -> None:
        self._say(line(Span("Reading the models.", "muted")))
        self._show(None, "reading the models")
        specs = self._specs_for(self._choices)
        how = {"read_all": self._read_all, "measuring": self._measuring}
        compare = partial(compare_models, self._session.reader, specs, is_wanted, **how)
        self.run_steps_in_thread(compare, "compare", partial(self._models_compared, len(specs)))

    def _models_compared(self, total: int, compared: ComparedModels) -> None:
        reading = compared.tried < total
        if not reading and not compared.corpus.models:
            self._say(line("None of these models was read at this level yet."), Hint("{corpus.read_all} reads them."))
        slowly = " slowly, as a run measures" if self._measuring else ""
        self._show(compared, f"reading{slowly}, {compared.tried} of {counted(total, 'model')}" if reading else "")

    def _say(self, *lines: Line | Hint) -> None:
        for panel in (self._uniqueness, self._kinds, self._likeness):
            panel.show_placeholder(*lines)

    def _show(self, compared: ComparedModels | None, progress: str) -> None:
        self._compared, self._progress = compared, progress
        corpus = compared.corpus if compared and compared.corpus.models else None
        for panel in (self._uniqueness, self._kinds):
            panel.show(corpus, self._unit)
        self._likeness.show(corpus)
        self.head_changed()

    @property
    def _unit(self) -> str:
        return "layer" if self._choices.granularity == 1 else "sequence"

    def question(self) -> str:
        return QUESTION

    def answer(self) -> Iterable[Line]:
        compared = self._compared
        if compared is None:
            yield line(Span(f" {self._progress}", "muted"))
            return
        yield line(
            Span(" "),
            Span(f"{self._progress}; so far: " if self._progress else "", "warn"),
            Span(totals_words(compared.corpus, self._unit), "strong"),
        )
        for each in compared.refused[:1]:
            yield line(Span(f" Left out: {each}", "warn"))
        if len(compared.refused) > 1:
            yield line(Span(f" and {len(compared.refused) - 1} more cannot be read", "warn"))

    def state(self) -> Line:
        choices, compared = self._choices, self._compared
        longest = choices.granularity
        how = f" {choices.level.value} layers" + (f" in sequences of up to {longest}" if longest > 1 else "")
        if compared is None:
            return (Span(how, "muted"),)
        unread = f"; {compared.unread:,} never read, {key('corpus.read_all')} reads them" if compared.unread else ""
        return (Span(how, "muted"), Span(unread, "warn"))
