"""The workbench: models at the left, the decomposition in the middle, details and the estimate at the right."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Container

from dlbricks_tui.tui import messages
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.errands import Errands
from dlbricks_tui.tui.keeping import tell
from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.live.words import on_its_way
from dlbricks_tui.tui.opened import AskedShape, input_shapes
from dlbricks_tui.tui.screens.choosing import ChoosingScreen
from dlbricks_tui.tui.screens.questions import ask_for_path, ask_for_shapes, ask_whether_to_begin, ask_which_marked
from dlbricks_tui.tui.screens.visits import visit_corpus, visit_results, visit_systems
from dlbricks_tui.tui.shelf import Shelf
from dlbricks_tui.tui.survey import Survey
from dlbricks_tui.tui.widgets.details.panel import DetailsPanel
from dlbricks_tui.tui.widgets.estimate.panel import EstimatePanel
from dlbricks_tui.tui.widgets.headline import Headline
from dlbricks_tui.tui.widgets.key_bar import KeyBar
from dlbricks_tui.tui.widgets.models.entries import standing_of
from dlbricks_tui.tui.widgets.models.panel import ModelsPanel
from dlbricks_tui.tui.widgets.tree.panel import TreePanel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from textual.app import ComposeResult

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.models.graph import Level, Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.live.snapshot import RunSnapshot
    from dlbricks_tui.tui.opened import Opened, Wish
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.widgets.estimate.view import EstimateView

# Small, with branches side by side, so that the compositions differ.
FIRST_SAMPLE = "squeezenet1.1"


class WorkbenchScreen(ChoosingScreen):
    """Puts together what the panels say and what threads answer."""

    scope: ClassVar[Scope] = Scope.WORKBENCH
    BINDINGS = bindings(Scope.WORKBENCH)
    AUTO_FOCUS = "#models RowsView"
    HEARS_OF_RESULTS = True
    ABOUT = (
        "Choose a model, see what it is made of and how long it takes, and run the bricks that nobody has run yet. "
        "{workbench.show_results}, {workbench.show_corpus} and {workbench.show_systems} lead to all results, to what "
        "repeats in the corpus, and to the systems."
    )

    def __init__(self, session: Session, choices: Choices, config: Callable[[], Config]) -> None:
        super().__init__(session, choices, config)
        self._errands = Errands(session, self.post_message)
        self._shelf = Shelf()
        self._survey = Survey(self._errands, self.ask)
        self._wants_sample = False
        self._wish: Wish | None = None
        self._opened: Opened | None = None
        self._view: EstimateView | None = None
        self._headline = Headline()
        self._models = ModelsPanel()
        self._tree = TreePanel()
        self._details = DetailsPanel()
        self._estimate = EstimatePanel()

    def compose(self) -> ComposeResult:
        yield self._headline
        with Container(id="panels"):
            yield self._models
            yield self._tree
            yield self._details
            yield self._estimate
        yield self.run_bar
        yield KeyBar()

    def on_mount(self) -> None:
        self.make_current(self._models)
        self._estimate.show_choices(self.choices)
        self._show_headline()
        if self.session.is_new:
            ask_whether_to_begin(self.app, FIRST_SAMPLE, self._welcomed)
        self.ask(self._errands.list_models, "list")
        self.ask(self._errands.list_choices, "choices")

    def _welcomed(self, goes_along: bool | None) -> None:
        self._wants_sample = bool(goes_along)
        self._open_sample()

    def _open_sample(self) -> None:
        # Who is quick is here before the library is read.
        sample = self._shelf.called(FIRST_SAMPLE)
        if self._wants_sample and sample is not None:
            self._wants_sample = False
            self._models.put_cursor_on(sample)
            self.open(sample)
            self.go_to(self._estimate)
            self.start_usual_run((sample,), self._shelf.shapes, self.choices)

    # What panels say

    @on(ModelsPanel.Opened)
    def _model_wanted(self, event: ModelsPanel.Opened) -> None:
        self._open_in_front(event.source)

    @on(ModelsPanel.ShapesAsked)
    def _shapes_wanted(self, event: ModelsPanel.ShapesAsked) -> None:
        opened = self._opened if self._opened and self._opened.wish.source == event.source else None
        # An open model has shapes, whether they were given now, remembered, or are in its file.
        inputs = input_shapes(opened.graph) if opened else event.source.inputs
        if inputs:
            self._ask_for_shapes(event.source, inputs)
        else:
            # The box opens at once and takes the keys; its thread reads the inputs from the file.
            read = partial(self._errands.read_inputs, self._shelf.wish(event.source, self.choices))
            ask_for_shapes(self.app, event.source.name, read, "", partial(self._shapes_given, event.source))

    @on(ModelsPanel.RemovalAsked)
    def _removal_wanted(self, event: ModelsPanel.RemovalAsked) -> None:
        self.ask(partial(self._errands.remove_model, event.source), "remove")

    @on(TreePanel.Selected)
    def _part_selected(self) -> None:
        self._show_details()

    @on(EstimatePanel.Chosen)
    def _chosen(self, event: EstimatePanel.Chosen) -> None:
        self.choose(event.choices)

    def open(self, source: ModelSource) -> None:
        """Reads a model and shows it, in place of the one that is shown."""
        wish = self._shelf.wish(source, self.choices)
        self._wish, self._opened, self._view = wish, None, None
        self._details.show(None)
        self._tree.show_waiting()
        self._estimate.show_waiting()
        self._show_run_of_it()
        self._show_headline()
        self.ask(partial(self._errands.open, wish), "open")

    def _open_in_front(self, source: ModelSource) -> None:
        self.open(source)
        # Where all panels are to be seen the keys stay in the list, for the next model.
        if self.shows_one_panel:
            self.go_to(self._tree)

    def choices_changed(self, before: Choices) -> None:
        self._estimate.show_choices(self.choices)
        self._show_headline()
        self._models.forget_standings()
        self._look_for_results()
        if self._wish is None:
            return
        if (before.level, before.cutting) != (self.choices.level, self.choices.cutting):
            self.open(self._wish.source)
        else:
            self._judge()

    # What threads answer

    @on(messages.LibraryListed)
    def _library_listed(self, event: messages.LibraryListed) -> None:
        self._shelf.fill(event.sources)
        self._shelve()
        self._open_sample()

    @on(messages.ModelRemoved)
    def _model_removed(self, event: messages.ModelRemoved) -> None:
        again = key("workbench.open_path")
        tell(self.app, f"{event.source.name} left the list, its file stays. {again} and its path add it again.")

    @on(messages.ChoicesAvailable)
    def _choices_available(self, event: messages.ChoicesAvailable) -> None:
        self._estimate.show_choices(self.choices, event.available)
        if event.available.results:
            self._survey.has_results = True
            self._look_for_results()

    @on(messages.ModelOpened)
    def _model_opened(self, event: messages.ModelOpened) -> None:
        if event.opened.wish is self._wish:
            self._opened = event.opened
            self._tree.show(event.opened)
            self._judge()
            self._look_for_bricks()

    @on(messages.ModelRefused)
    def _model_refused(self, event: messages.ModelRefused) -> None:
        if event.wish is not self._wish:
            return
        self._tree.show_problem(event.reason, event.next_step)
        self._estimate.show_problem(event.reason, event.next_step)
        if event.inputs:
            self._ask_for_shapes(event.wish.source, event.inputs, event.reason)

    @on(messages.ModelJudged)
    def _model_judged(self, event: messages.ModelJudged) -> None:
        if event.opened is not self._opened or event.choices != self.choices:
            return
        self._view = event.view
        self._tree.show_tallies(event.tallies)
        self._show_details()
        self._estimate.show(event.view)
        self._models.show_standing(event.opened.wish.source, standing_of(event.view.judged))
        self._show_headline()

    @on(messages.BrickMeasured)
    def _brick_measured(self, event: messages.BrickMeasured) -> None:
        part = self._details.subject.part if self._details.subject else None
        if part is not None and part.source == event.pair:
            self._details.show_measurements(event.measured)

    @on(messages.BricksIndexed)
    def _bricks_indexed(self, event: messages.BricksIndexed) -> None:
        self._survey.take(event.elsewhere)
        self._show_details()

    @on(messages.ModelGlanced)
    def _model_glanced(self, event: messages.ModelGlanced) -> None:
        if event.choices == self.choices:
            self._models.show_standing(event.source, event.standing)

    @on(messages.ResultsGrew)
    def _results_grew(self) -> None:
        self._survey.has_results = True
        if self._opened is not None:
            self.ask(partial(self._errands.judge_anew, self._opened, self.choices), "judge")

    def _judge(self) -> None:
        if self._opened is not None:
            self.ask(partial(self._errands.judge, self._opened, self.choices), "judge")

    def show_run(self, run: RunSnapshot) -> None:
        super().show_run(run)
        self._show_run_of_it()

    def _show_run_of_it(self) -> None:
        if self._run is not None and self._wish is not None:
            self._estimate.show_run(on_its_way(self._run, self._wish.source.name))

    def run_rests(self) -> None:
        # By now there may be a runtime to choose that there was not before.
        self.ask(self._errands.list_choices, "choices")
        self._look_for_bricks()

    # What is looked for in the library computes, and waits for the end of a run.

    def _look_for_results(self) -> None:
        if not self.measuring:
            self._survey.look_for_results(self._shelf.wishes(self.choices), self.choices)

    def _look_for_bricks(self) -> None:
        if self._opened is not None and not self.measuring:
            self._survey.look_for_bricks(self._shelf.wishes(self.choices), self.choices)

    def _shelve(self) -> None:
        self._survey.forget()
        self._models.show(self._shelf.sources)
        self._look_for_results()

    def _show_details(self) -> None:
        """Shows what the cursor is on in the tree, and has its samples read."""
        subject = self._tree.subject
        self._details.show(subject)
        if subject is None or subject.occurrence is None:
            return
        if self._survey.elsewhere is not None and self._opened is not None:
            names = self._survey.elsewhere.models_with(subject.occurrence.brick.key, [self._opened.graph.name])
            self._details.show_elsewhere(names)
        if subject.part is not None and subject.part.measured is not None and self._view is not None:
            pair, way = subject.part.measured.pair, self._view.judged.way
            self.ask(partial(self._errands.read_measurements, pair, way), "samples")

    def _show_headline(self) -> None:
        self._headline.show(
            self._wish.source.name if self._wish else "", self.choices, self._view.judged if self._view else None
        )

    # What the person does

    def action_start_run(self) -> None:
        if self._models.marked:
            ask_which_marked(self.app, "model", self._models.marked_in_view, self._models.marked, self._start_run_of)
        elif self._wish:
            self._start_run_of((self._wish.source,))
        else:
            self.notify(f"Mark models with {key('models.mark')}, or open one: a run is about those.")

    def _start_run_of(self, sources: tuple[ModelSource, ...]) -> None:
        self.start_run(sources, self._shelf.shapes, self.choices)

    def action_open_path(self) -> None:
        ask_for_path(self.app, self._path_given)

    def action_show_settings(self) -> None:
        self.go_to(self._estimate)
        self._estimate.go_to_settings()

    def action_go_to_models(self) -> None:
        self.go_to(self._models)

    def action_go_to_tree(self) -> None:
        self.go_to(self._tree)

    def action_go_to_details(self) -> None:
        self.go_to(self._details)

    def action_go_to_estimate(self) -> None:
        self.go_to(self._estimate)

    def action_show_results(self) -> None:
        visit_results(self.app, self.session)

    def action_show_corpus(self) -> None:
        if self._models.marked:
            ask_which_marked(self.app, "model", self._models.marked_in_view, self._models.marked, self._show_corpus_of)
        else:
            self._show_corpus_of(self._shelf.sources)

    def _show_corpus_of(self, sources: tuple[ModelSource, ...]) -> None:
        def wishes(choices: Choices) -> list[Wish]:
            return [self._shelf.wish(source, choices) for source in sources]

        visit_corpus(self.app, self.session, wishes, self.choices, measuring=self.measuring)

    def action_show_systems(self) -> None:
        visit_systems(self.app, self.session, self._wish, self.choices, self._system_taken)

    def _system_taken(self, taken: tuple[str, Level] | None) -> None:
        if taken is not None:
            system, level = taken
            self.choose(replace(self.choices, system=system, runtime=None, level=level))

    def _path_given(self, path: Path | None) -> None:
        if path is not None:
            add = self._errands.add_folder if path.is_dir() else self._errands.add_model
            self.ask(partial(add, path), "list")

    @on(messages.ModelAdded)
    def _model_added(self, event: messages.ModelAdded) -> None:
        self._models.put_cursor_on(event.source)
        self._open_in_front(event.source)

    def _ask_for_shapes(self, source: ModelSource, examples: Mapping[str, Shape | None], reason: str = "") -> None:
        known = self._shelf.shapes_of(source)
        # Where a model was refused, the examples are guesses, which are not to be taken for its shapes.
        inputs = {
            name: AskedShape(known.get(name, None if reason else shape), shape) for name, shape in examples.items()
        }
        ask_for_shapes(self.app, source.name, inputs, reason, partial(self._shapes_given, source))

    def _shapes_given(self, source: ModelSource, shapes: dict[str, Shape] | None) -> None:
        if shapes is not None:
            self._shelf.give_shapes(source, shapes)
            self.open(source)
