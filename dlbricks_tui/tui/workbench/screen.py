"""The workbench: models at the left, the decomposition in the middle, details and the estimate at the right."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.containers import Container

from dlbricks_tui.api.open_models import AskedShape, GivenInputs, asked_inputs, choices_from, id_of, known_latency
from dlbricks_tui.documents.run import NOTHING_UNDER_WAY, under_way
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.widgets.screens import KeyBar, after_picture
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.tui.workbench import work
from dlbricks_tui.tui.workbench.estimate import EstimatePanel, Headline, problem_note
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.tree import DetailsPanel, TreePanel
from dlbricks_tui.tui.workbench.views import ViewsScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.app import ComposeResult

    from dlbricks_tui.api.estimating import Answer, Measurements
    from dlbricks_tui.api.followed_runs import RunSnapshot
    from dlbricks_tui.api.model_reading import BrickIndex, ModelReader, Refusal
    from dlbricks_tui.api.open_models import Available, Choices, ComparableRow, CutAt, KnownLatency
    from dlbricks_tui.api.session import WorkbenchSession
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.documents.lines import Line
    from dlbricks_tui.documents.part_details import PartLatencies
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.workbench.boxes import Inputs
    from dlbricks_tui.tui.workbench.estimate import EstimateView

# Small, with parallel branches, so that the compositions differ.
FIRST_SAMPLE = "squeezenet1.1"

# What to do about a model that cannot be read, by the name of the cure.
_CURES = {
    "LAYERS_AS_WRITTEN": "Press {workbench.other_level} for layers as written.",
    "OTHER_BATCH_SIZE": "{workbench.show_settings} goes to the settings: choose another batch there.",
}


class WorkbenchScreen(ViewsScreen):
    """Connects the panels with the worker threads."""

    scope = scopes.WORKBENCH
    WANTS_NEW_RESULTS = True
    ABOUT = (
        "Select a model, see its parts and its latency, and run the bricks that were never run. "
        "{workbench.show_analysis} shows how fast it could be and what is worth changing, {workbench.show_scenario} "
        "how much load it can serve, {workbench.show_trace} where its time goes. {workbench.show_results}, "
        "{workbench.show_corpus} and {workbench.show_systems} show all results, what repeats in the corpus, and the "
        "systems."
    )

    def __init__(
        self,
        session: WorkbenchSession,
        choices: Choices,
        config: Callable[[], Config],
        model: ModelSource | Path | None = None,
    ) -> None:
        """`model` is opened at the start; a path is added to the library."""
        super().__init__(session, choices, config)
        self._first = model
        self._configured = choices_from(config(), session.data)
        # Without results there is nothing to estimate.
        self._has_results = False
        # The bricks of the library as they are cut now; None until all models were indexed.
        self._index: BrickIndex | None = None
        self._indexed_cut: CutAt | None = None
        self._wants_sample = False
        # True: the sample is read while the user reads the welcome box.
        self._prepares_sample = False
        self._view: EstimateView | None = None
        self._latencies: PartLatencies | None = None
        self._progress = NOTHING_UNDER_WAY
        self._is_empty = False
        self._headline = TextLines(self._headline_lines, classes="headline")
        self._details = DetailsPanel()
        self._estimate = EstimatePanel(self.choose, self._show_slow_layer)

    def compose(self) -> ComposeResult:
        yield self._headline
        with Container(classes="panels"):
            yield self._models
            yield self._tree
            yield self._details
            yield self._estimate
        yield self.status
        yield KeyBar()

    def on_mount(self) -> None:
        self._estimate.show_choices(self.choices)
        self._show_parts()
        after_picture(self, self._read_all)
        if self._first is not None:
            return
        if self.session.is_new:
            from dlbricks_tui.tui.dialogs.notices import WelcomeScreen

            self.ask(WelcomeScreen(FIRST_SAMPLE), self._begin_with_sample)
            self._prepares_sample = True
        elif (recorded := recorded_host()) is not None:
            from dlbricks_tui.tui.dialogs.notices import DemonstrationScreen

            self.ask(DemonstrationScreen(recorded.origin), self._begin_with_sample)

    def _read_all(self) -> None:
        first = self._first
        self._change_library(partial(work.add_path, path=first) if isinstance(first, Path) else lambda _: first)
        self._list_choices()

    def _begin_with_sample(self, wanted: bool) -> None:
        if not wanted:
            self._models.search()
            return
        self._wants_sample = True
        self._use_sample()

    def _use_sample(self) -> None:
        """Read the sample ahead, so that its run finds its fused layers in the cache, and open it if that is wanted."""
        sample = self._library.named(FIRST_SAMPLE)
        if sample is None:
            # A quick user is here before the library is read.
            return
        if self._prepares_sample:
            self._prepares_sample = False
            read = partial(work.read_model, self.session, self._library.spec(sample, self.choices), self.choices)
            self.run_in_thread(read, "prepare")
        if self._wants_sample:
            self._wants_sample = False
            self._models.put_cursor_on(sample)
            self.open(sample)
            self.go_to(self._estimate)
            if recorded_host() is None:
                self.start_default_run((sample,))

    # Messages of panels

    @on(ModelsPanel.Opened)
    def _model_wanted(self) -> None:
        if self._models.selected is not None:
            self._open_in_front(self._models.selected)

    def action_give_shapes(self) -> None:
        source = self._models.selected
        if source is None:
            return
        opened = self._opened if self._opened and id_of(self._opened.spec.source) == id_of(source) else None
        # An open model has shapes: given now, remembered, or from its file.
        if opened:
            self._ask_for_inputs(source, asked_inputs(opened.graph))
        elif shapes := source.inputs:
            self._ask_for_inputs(source, {name: AskedShape(shape, shape) for name, shape in shapes.items()})
        else:
            # The box opens at once and takes the keys; its thread reads the inputs from the file.
            spec = self._library.spec(source, self.choices)
            self._show_shapes(source, lambda: self.session.reader.inputs(spec))

    def action_remove_model(self) -> None:
        if (source := self._models.selected) is not None:
            again = key("workbench.open_path")
            told = f"{source.name} was removed; its file stays. {again} adds it again."
            self._change_library(lambda reader: reader.library.remove(source.path), told)

    @on(TreePanel.Selected)
    def _part_selected(self) -> None:
        self._show_details()

    def _show_slow_layer(self, layer: int) -> None:
        self._tree.show_layer(layer)
        self.go_to(self._tree)

    def open(self, source: ModelSource) -> None:
        """Read a model and show it."""
        spec = self._library.spec(source, self.choices)
        self.view = self.view.opened(id_of(source))
        self.keep_view()
        self._spec, self._opened, self._view, self._latencies = spec, None, None, None
        self._details.show(None)
        self._tree.show_waiting()
        self._estimate.show_waiting()
        self._show_run_of_it()
        self._headline.refresh()
        self.run_in_thread(partial(work.read_model, self.session, spec, self.choices), "model", self._model_read)

    def _open_in_front(self, source: ModelSource) -> None:
        self.open(source)
        # If all panels are visible, the focus stays in the list for the next model.
        if self.shows_one_panel:
            self.go_to(self._estimate)
            self._estimate.go_to_answer()

    def config_changed(self) -> None:
        """Take the choices that the config makes otherwise than before; others stay as they are."""
        before, self._configured = self._configured, choices_from(self._config(), self.session.data)
        now = ((it.name, getattr(self._configured, it.name)) for it in fields(before))
        changed = {name: value for name, value in now if value != getattr(before, name)}
        if self.choices.runtime is not None:
            # A runtime that was chosen has its own format.
            changed.pop("format", None)
        self.choose(replace(self.choices, **changed))

    # A run may have added the runtime of the config.
    on_screen_resume = config_changed

    def choose(self, choices: Choices) -> None:
        before, self.choices = self.choices, choices
        if choices == before:
            return
        self._estimate.show_choices(self.choices)
        self._headline.refresh()
        self._models.forget_latencies()
        self._look_for_results()
        if self._spec is None:
            return
        if before.cut_at != choices.cut_at:
            self.open(self._library.listed(self._spec.source))
        else:
            self._update_estimate()

    # Work in threads

    def _change_library(self, change: Callable[[ModelReader], ModelSource | None], told: str = "") -> None:
        """Change the library in a thread; `told` is shown unless the change is refused."""

        def changed() -> work.Listing:
            return work.change_library(self.session.reader, change)

        self.run_in_thread(changed, "library", partial(self._library_changed, told))

    def _library_changed(self, told: str, listing: work.Listing) -> None:
        self._library.sources = listing.sources
        self._index = self._indexed_cut = None
        self._models.show(listing.sources, listing.language_models)
        self._look_for_results()
        self._use_sample()
        if listing.refusal is not None:
            self.app.post_message(messages.Failed(listing.refusal))
        elif told:
            show_message(self.app, told)
        if listing.added is not None:
            added = self._library.listed(listing.added)
            self._models.put_cursor_on(added)
            self._open_in_front(added)
        self.apply_sizes()

    def _list_choices(self) -> None:
        self.run_in_thread(lambda: self.session.estimator.available(), "choices", self._choices_listed)

    def _choices_listed(self, available: Available) -> None:
        self._estimate.show_choices(self.choices, available)
        self._is_empty = not available.results
        self._has_results = self._has_results or not self._is_empty
        self._headline.refresh()
        self._look_for_results()

    def _model_read(self, found: work.OpenModel | Refusal) -> None:
        if isinstance(found, work.OpenModel):
            self._opened = found
            self._tree.show(found)
            self.show_wanted_layer()
            self._update_estimate()
            self._look_for_bricks()
            return
        cure = _CURES.get(found.cure.name, "")
        self._tree.show_note(problem_note("shown", found.reason, cure))
        self._estimate.show(problem_note("estimated", found.reason, cure))
        if found.inputs and self._spec is not None:
            self._ask_for_inputs(self._spec.source, found.inputs, found.reason)

    def _update_estimate(self, refresh: bool = False) -> None:
        if self._opened is not None and self._spec is not None:
            own = sum(source.task is None for source in self._library.sources)
            estimate = partial(work.estimate_model, self.session, self._spec, self._opened, self.choices, refresh, own)
            self.run_in_thread(estimate, "model", self._model_estimated)

    def _model_estimated(self, found: work.OpenModelEstimate) -> None:
        self._view = found.view
        if found.opened is not self._opened:
            self._opened = found.opened
            # The tree keeps the selected layer, as where a model is cut anew.
            self._tree.show_waiting()
            self._tree.show(found.opened)
        self._latencies = found.latencies
        self._estimate.show(found.view)
        self._show_latencies()
        self._headline.refresh()

    @on(messages.NewResults)
    def _new_results(self) -> None:
        self._has_results = True
        self._is_empty = False
        self._headline.refresh()
        self._update_estimate(refresh=True)
        if not self.measuring:
            self._list_choices()

    def show_run(self, run: RunSnapshot) -> None:
        super().show_run(run)
        self._show_run_of_it()

    def _show_run_of_it(self) -> None:
        if self._run is not None and self._spec is not None:
            before, self._progress = self._progress, under_way(self._run, self._spec.source.name)
            # Drawing disturbs measurements.
            if self._progress != before:
                self._estimate.show_run(self._progress)
                self._headline.refresh()
            self._show_latencies()

    def _show_latencies(self) -> None:
        """Show the latencies of the open model, unless its run has better figures than the store."""
        if self._view is None or self._spec is None:
            return
        one, source = self._view.document.one, self._spec.source
        is_outdated = self._progress.replaces(one)
        latencies = None if is_outdated else self._latencies
        if is_outdated:
            self._models.forget_latency(source)
        # Each event of a run leads here.
        if latencies is not self._tree.latencies:
            self._tree.show_latencies(latencies)
            self._show_details()
            if not is_outdated:
                self._show_latency(source, known_latency(one))

    def run_has_stopped(self) -> None:
        # The run may have added a runtime.
        self._list_choices()
        self._look_for_bricks()

    # Scans of the library use the processor: while a run measures, they go slowly.

    def _look_for_results(self) -> None:
        """Estimate the models of the library, if there are any results."""
        choices, specs, measuring = self.choices, self._library.specs(self.choices), self.measuring

        def scan() -> Iterator[tuple[ModelSource, KnownLatency | None]]:
            from dlbricks_tui.api.model_reading import estimate_library

            return estimate_library(self.session, specs, choices, measuring=measuring)

        def show(found: tuple[ModelSource, KnownLatency | None]) -> None:
            source, latency = found
            if latency is not None and choices == self.choices:
                self._show_latency(source, latency)

        if self._has_results:
            self.run_steps_in_thread(scan, "latencies", show)

    def _show_latency(self, source: ModelSource, latency: KnownLatency) -> None:
        """Show the answer of a model in the list, once a run of it has no better figures than the store."""
        has_better = self._run is not None and under_way(self._run, source.name).has_figures
        if latency.measured >= latency.layers or not has_better:
            self._models.show_latency(source, latency)

    def _look_for_bricks(self) -> None:
        """Index the bricks of the library, unless the index is up to date."""
        cut_at, specs, measuring = self.choices.cut_at, self._library.specs(self.choices), self.measuring

        def scan() -> Iterator[BrickIndex]:
            from dlbricks_tui.api.model_reading import index_bricks

            return index_bricks(self.session.reader, specs, work.is_wanted, measuring=measuring)

        def take(index: BrickIndex) -> None:
            if cut_at == self._indexed_cut:
                self._index = index
                self._show_details()

        if self._opened is not None and cut_at != self._indexed_cut:
            self._index, self._indexed_cut = None, cut_at
            self.run_steps_in_thread(scan, "index", take)

    def _show_details(self) -> None:
        """Show the selected part and read its samples."""
        selected = self._tree.selected_part
        self._details.show(selected)
        if selected is None or selected.node.occurrence is None:
            return
        if self._index is not None and self._opened is not None:
            names = self._index.get(selected.node.occurrence.brick.key, ())
            self._details.show_other_models([name for name in names if name != self._opened.graph.name])
        part = selected.estimated
        if part is not None and part.measured is not None and self._view is not None:
            pair, way = part.measured.pair, self._view.document.one.way

            def show(measured: Measurements | None) -> None:
                now = self._details.selected.estimated if self._details.selected else None
                if now is not None and now.source == pair:
                    self._details.show_measurements(measured)

            self.run_in_thread(partial(self.session.estimator.measurements, pair, way), "samples", show)

    def ages_changed(self) -> None:
        self._headline.refresh()
        self._models.rows.refresh()
        self._estimate.remake()

    def _headline_lines(self, width: int) -> tuple[Line, ...]:
        document = None if self._view is None else self._view.document
        headline = Headline(
            self._spec.source.name if self._spec else "",
            self.choices,
            None if document is None else document.one,
            document is not None and document.is_chosen,
            self._progress,
            self.view.expert,
            self._is_empty,
        )
        return (headline.line(width),)

    # Actions

    def action_start_run(self) -> None:
        if self._models.marked:
            self._ask_which_marked(self.start_run)
        else:
            if spec := self.open_selected(f"Mark the models to run with {key('app.mark')}, or open one."):
                self.start_run((spec.source,))

    @property
    def marked_rows(self) -> tuple[ComparableRow, ...]:
        """The marked models, as rows to compare."""
        return self._models.compared

    def answer_for(self, source: ModelSource) -> Answer:
        """Return the answer of a model under the current settings; raise UserError if it cannot be read."""
        return self.session.answer(self._library.spec(source, self.choices), self.choices)

    def action_open_path(self) -> None:
        from dlbricks_tui.tui.dialogs.paths import OpenPathScreen

        recent = [it.path for it in self.view.recent if not self._library.is_sample(it)]
        self.ask(OpenPathScreen(recent), lambda path: self._change_library(partial(work.add_path, path=path)))

    def action_expert(self) -> None:
        self.show_expert(not self.view.expert)

    def show_expert(self, expert: bool) -> None:
        super().show_expert(expert)
        self._show_parts()

    def _show_parts(self) -> None:
        self._estimate.show_more(self.view.expert)
        self._headline.refresh()

    def action_show_settings(self) -> None:
        self.show_expert(True)
        self.go_to(self._estimate)
        self._estimate.go_to_settings()

    def _ask_for_inputs(self, source: ModelSource, inputs: Inputs, reason: str = "") -> None:
        known = {} if reason else self._library.shapes_of(source)
        asked = {name: it._replace(known=known.get(name, it.known)) for name, it in inputs.items()}
        self._show_shapes(source, asked, reason)

    def _show_shapes(self, source: ModelSource, inputs: Inputs | Callable[[], Inputs], reason: str = "") -> None:
        from dlbricks_tui.tui.workbench.boxes import InputShapesScreen

        def take(given: GivenInputs) -> None:
            self._library.take(source, given)
            if given.shapes:
                self.open(source)
            else:
                forget = partial(self.session.reader.forget_inputs, source)
                self.run_in_thread(forget, "inputs", lambda _: self.open(source))

        self.ask(InputShapesScreen(source.name, inputs, reason), take)
