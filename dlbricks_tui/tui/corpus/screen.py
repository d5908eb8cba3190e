"""The screen of the corpus: what repeats within and across models, and how accurate estimates are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.documents.corpus import totals_words
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.models.graph import Level
from dlbricks_tui.settings.cutting import GRANULARITY, LEVEL
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.choices import change_setting
from dlbricks_tui.tui.corpus import actions, work
from dlbricks_tui.tui.corpus.panels import GranularitiesPanel, KindsPanel, LikenessPanel, UniquenessPanel
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.widgets.answering import AnsweringScreen
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.widgets.panel import Panel

QUESTION = "How many layers of these models are repeated?"


class CorpusScreen(AnsweringScreen[None]):
    """Reads the models in a thread, then compares them."""

    scope = actions.CORPUS
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
        super().__init__()
        self._session = session
        self._specs_for = specs
        # The paper counts single written layers, whatever the workbench shows.
        self._choices = replace(choices, level=Level.WRITTEN, granularity=1, cut=Cut.CHAIN)
        self._measuring = measuring
        self._read_all = False
        self._compared: work.ComparedModels | None = None
        self._progress = ""
        self._uniqueness = UniquenessPanel()
        self._kinds = KindsPanel()
        self._likeness = LikenessPanel()
        self._granularities = GranularitiesPanel()

    def panels(self) -> Iterable[Panel]:
        return (self._uniqueness, self._kinds, self._likeness, self._granularities)

    def on_mount(self) -> None:
        self._start_reading()
        self._update_estimate()

    @on(messages.NewResults)
    def _new_results(self) -> None:
        # They arrive once no run measures any more.
        self._measuring = False
        self._update_estimate()

    def _update_estimate(self) -> None:
        specs = self._specs_for(self._choices)
        find = partial(work.find_accuracies, self._session, specs, measuring=self._measuring)
        self.run_in_thread(find, "accuracy", self._granularities.show)

    @on(UniquenessPanel.Chosen)
    def _model_chosen(self, event: UniquenessPanel.Chosen) -> None:
        self._likeness.go_to_model(event.number)
        self.go_to(self._likeness)

    def action_read_all(self) -> None:
        self._measuring, self._read_all = False, True
        self._start_reading()
        self._update_estimate()

    def action_other_level(self) -> None:
        self._choose(change_setting(LEVEL, self._choices, 1))

    def action_coarser(self) -> None:
        self._choose(change_setting(GRANULARITY, self._choices, 1))

    def action_finer(self) -> None:
        self._choose(change_setting(GRANULARITY, self._choices, -1))

    def _choose(self, choices: Choices) -> None:
        if choices != self._choices:
            self._choices = choices
            self._start_reading()

    def _start_reading(self) -> None:
        self._say(line(Span("Reading the models.", "muted")))
        self._show(None, "reading the models")
        specs = self._specs_for(self._choices)
        reader, measuring = self._session.reader, self._measuring
        compare = partial(work.compare_models, reader, specs, self._read_all, measuring=measuring)
        self.run_steps_in_thread(compare, "compare", partial(self._models_compared, len(specs)))

    def _models_compared(self, total: int, compared: work.ComparedModels) -> None:
        reading = compared.tried < total
        if not reading and not compared.corpus.models:
            self._say(line("None of these models was read at this level yet."), Hint("{corpus.read_all} reads them."))
        slowly = " slowly, as a run measures" if self._measuring else ""
        self._show(compared, f"reading{slowly}, {compared.tried} of {counted(total, 'model')}" if reading else "")

    def _say(self, *lines: Line | Hint) -> None:
        for panel in (self._uniqueness, self._kinds, self._likeness):
            panel.show_placeholder(*lines)

    def _show(self, compared: work.ComparedModels | None, progress: str) -> None:
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
            Span(f" {self._progress}; so far: " if self._progress else " ", "warn"),
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
