"""What repeats within and across models, and what that is good for (the paper's evaluation)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Container

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.models.graph import Level
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.lines import Line, Span, line, wrapped
from dlbricks_tui.tui.screens.corpus import errands
from dlbricks_tui.tui.screens.corpus.granularities import GranularitiesPanel
from dlbricks_tui.tui.screens.corpus.kinds import KindsPanel
from dlbricks_tui.tui.screens.corpus.likeness import LikenessPanel
from dlbricks_tui.tui.screens.corpus.surveyed import HowSurveyed, Surveyed
from dlbricks_tui.tui.screens.corpus.uniqueness import UniquenessPanel
from dlbricks_tui.tui.screens.panelled import PanelledScreen
from dlbricks_tui.tui.widgets.key_bar import KeyBar
from dlbricks_tui.tui.widgets.said import Said
from dlbricks_tui.wording.numbers import counted, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.opened import Wish
    from dlbricks_tui.tui.session import Session


class CorpusScreen(PanelledScreen[None]):
    """Reads the models, then compares them."""

    scope: ClassVar[Scope] = Scope.CORPUS
    BINDINGS = bindings(Scope.CORPUS)
    AUTO_FOCUS = "#uniqueness RowsView"
    HEARS_OF_RESULTS = True
    ABOUT = (
        "The marked models of the workbench, or all of the library. A model that was never read before, at this level, "
        "takes the framework a moment: {corpus.read_all} reads those too."
    )

    def __init__(
        self, session: Session, wishes: Callable[[Choices], Sequence[Wish]], choices: Choices, *, measuring: bool
    ) -> None:
        super().__init__()
        self._errands = errands.CorpusErrands(session, self.post_message)
        self._wishes = wishes
        # As the paper counts, whatever is estimated meanwhile.
        self._choices = replace(choices, level=Level.WRITTEN, granularity=1, cut=Cut.CHAIN)
        self._measuring = measuring
        self._read_all = False
        self._surveyed: Surveyed | None = None
        self._progress = ""
        self._head = Said(self._head_lines, classes="corpus-head")
        self._uniqueness = UniquenessPanel()
        self._kinds = KindsPanel()
        self._likeness = LikenessPanel()
        self._granularities = GranularitiesPanel()

    def compose(self) -> ComposeResult:
        yield self._head
        with Container(id="corpus-panels"):
            yield self._uniqueness
            yield self._kinds
            yield self._likeness
            yield self._granularities
        yield KeyBar()

    def on_mount(self) -> None:
        self.make_current(self._uniqueness)
        if self._measuring:
            # What is not asked for must not disturb the run.
            self._say(
                line("A run is measuring, and this would disturb it."), Hint("{corpus.read_all} reads the models now.")
            )
        else:
            self._survey()
            self._judge()

    @property
    def _how(self) -> HowSurveyed:
        return HowSurveyed(self._choices.level, self._choices.cutting, self._read_all)

    @on(errands.Reading)
    def _reading(self, event: errands.Reading) -> None:
        if event.how == self._how:
            self._surveyed, self._progress = event.surveyed, f"reading, {event.done} of {event.total} models"
            self._show()
            self._head.refresh(layout=True)

    @on(errands.Compared)
    def _compared(self, event: errands.Compared) -> None:
        if event.how != self._how:
            return
        self._surveyed, self._progress = event.surveyed, ""
        corpus = event.surveyed.corpus if event.surveyed.corpus.models else None
        if corpus is None:
            self._say(line("No model of these was read at this level yet."), Hint("{corpus.read_all} reads them."))
        self._show()
        self._head.refresh(layout=True)

    @on(errands.GranularitiesJudged)
    def _granularities_judged(self, event: errands.GranularitiesJudged) -> None:
        self._granularities.show(event.judged)

    @on(messages.ResultsGrew)
    def _judge(self) -> None:
        if not self._measuring:
            self.ask(partial(self._errands.judge_granularities, self._wishes(self._choices)), "judge")

    @on(UniquenessPanel.Chosen)
    def _model_chosen(self, event: UniquenessPanel.Chosen) -> None:
        self._likeness.go_to_model(event.number)
        self.go_to(self._likeness)

    def action_read_all(self) -> None:
        self._measuring, self._read_all = False, True
        self._survey()
        self._judge()

    def action_other_level(self) -> None:
        self._choose(self._choices.with_next_level())

    def action_coarser(self) -> None:
        self._choose(self._choices.with_granularity(self._choices.granularity + 1))

    def action_finer(self) -> None:
        self._choose(self._choices.with_granularity(self._choices.granularity - 1))

    def action_go_to_uniqueness(self) -> None:
        self.go_to(self._uniqueness)

    def action_go_to_kinds(self) -> None:
        self.go_to(self._kinds)

    def action_go_to_likeness(self) -> None:
        self.go_to(self._likeness)

    def action_go_to_granularities(self) -> None:
        self.go_to(self._granularities)

    def action_leave(self) -> None:
        self.dismiss(None)

    def _choose(self, choices: Choices) -> None:
        if choices != self._choices:
            self._choices = choices
            self._survey()

    def _survey(self) -> None:
        self._surveyed, self._progress = None, "reading the models"
        self._say(line(Span("Reading the models.", "muted")))
        self._show()
        self._head.refresh(layout=True)
        self.ask(partial(self._errands.survey, self._wishes(self._choices), self._how), "survey")

    def _say(self, *lines: Line | Hint) -> None:
        for panel in (self._uniqueness, self._kinds, self._likeness):
            panel.say(*lines)

    def _show(self) -> None:
        corpus = self._surveyed.corpus if self._surveyed and self._surveyed.corpus.models else None
        for panel in (self._uniqueness, self._kinds, self._likeness):
            panel.show(corpus)

    def _head_lines(self, width: int) -> tuple[Line, ...]:
        choices, surveyed = self._choices, self._surveyed
        how = Span(f" {choices.level.value} layers, G={choices.granularity}  ", "accent")
        if surveyed is None:
            return (line(how, Span(self._progress, "muted")),)
        corpus = surveyed.corpus
        share = f" ({percent(corpus.unique_layers / corpus.layers, 1)})" if corpus.layers else ""
        reads = key("corpus.read_all")
        unread = f"; {surveyed.unread:,} never read, {reads} reads them" if surveyed.unread else ""
        unit = "layer" if choices.granularity == 1 else "sequence"
        told = line(
            how,
            Span(f"{self._progress}; so far " if self._progress else "", "warn"),
            Span(f"{counted(len(corpus.models), 'model')}, {counted(corpus.layers, unit)}: ", "muted"),
            Span(f"{corpus.unique_layers:,} unique{share}", "strong"),
            Span(f", {corpus.contexts:,} with their contexts", "muted"),
            Span(unread, "warn"),
        )
        refused = [line(Span(f" left out: {each}", "warn")) for each in surveyed.refused[:1]]
        if len(surveyed.refused) > 1:
            refused.append(line(Span(f" and {len(surveyed.refused) - 1} more cannot be read", "warn")))
        return tuple(each for long in (told, *refused) for each in wrapped(long, width))
