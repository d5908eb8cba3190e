"""The base of the workbench screen that opens other views of the open model, of the library and of the store."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.api.open_models import LayerPlace, change_setting, index_of, setting_named
from dlbricks_tui.api.session import Asked
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.run.host import RunHostScreen
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.view_state import STEP, STEP_UPPER, USUAL, fitted, taller, usual_sizes, wider
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.screens import layout_of, no_other_value
from dlbricks_tui.tui.workbench import work
from dlbricks_tui.tui.workbench.model_columns import FIRST_COLUMNS, ModelGroup, ModelOrder
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.tree import TreePanel
from dlbricks_tui.wording.numbers import names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from dlbricks_tui.api.open_models import Choices, ModelSpec
    from dlbricks_tui.api.session import WorkbenchSession
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.estimate.ranking import Ranking
    from dlbricks_tui.jobs.folder import JobFolder
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.view_state import PanelSizes

# The screen of results keeps its state.
_RESULTS = "results"
_SUITE = "suite"


class ViewsScreen(RunHostScreen):
    """Opens the boxes and screens that show more of the open model, of the library and of the store.

    It keeps the look of the list of models and the sizes of all panels in a file.
    """

    def __init__(self, session: WorkbenchSession, choices: Choices, config: Callable[[], Config]) -> None:
        super().__init__(session, choices, config)
        view, orders = self.view, {order.value: order for order in ModelOrder}
        unfolded = None if view.unfolded is None else [it for it in ModelGroup if it.name in view.unfolded]
        # Models that are opened now stay where they are until the next start.
        self._models = ModelsPanel(view.columns, orders.get(view.order, ModelOrder.LIBRARY), view.recent, unfolded)
        # The open model.
        self._spec: ModelSpec | None = None
        self._opened: work.OpenModel | None = None
        # The layer of a trace to select, once the model is read at its level.
        self._wanted_layer: LayerPlace | None = None
        self._tree = TreePanel()
        # The export of a suite in progress, one at a time.
        self._exporting: JobFolder | None = None

    # The look

    def on_mount(self) -> None:
        self.apply_sizes()

    on_resize = on_mount

    @on(ModelsPanel.ViewChanged)
    def _view_changed(self) -> None:
        shown = tuple(each.name for each in self._models.columns)
        columns = None if shown == FIRST_COLUMNS else shown
        unfolded = None if (found := self._models.unfolded) is None else tuple(sorted(it.name for it in found))
        self.view = replace(self.view, columns=columns, order=self._models.sorted_by.value, unfolded=unfolded)
        self.apply_sizes()
        self.keep_view()

    def action_widen(self, step: int) -> None:
        self._resize(lambda sizes, panel: wider(sizes, panel, step * STEP))

    def action_heighten(self, step: int) -> None:
        self._resize(lambda sizes, panel: taller(sizes, panel, step * STEP_UPPER))

    def _resize(self, change: Callable[[PanelSizes, str], PanelSizes]) -> None:
        layout = layout_of(self.size.width)
        panel = next((each for each in self.query(Panel) if each.has_class("-current")), None)
        if layout not in USUAL or panel is None or panel.scope is None or self.shows_one_panel:
            self.notify("A panel that is shown alone has the size of the screen.")
            return
        before = self._sizes_in(layout)
        sizes = fitted(change(before, panel.scope.name), self.size.width)
        if sizes == before:
            self.notify("This panel cannot be resized further that way.")
            return
        self.view = replace(self.view, sizes={**self.view.sizes, layout: sizes})
        self.apply_sizes()
        self.keep_view()

    def _sizes_in(self, layout: str) -> PanelSizes:
        width, kept = self.size.width, self.view.sizes.get(layout)
        return fitted(kept or usual_sizes(layout, width, self._models.needed_width(width)), width)

    def apply_sizes(self) -> None:
        """Give the panels their sizes; the list of models may need others than before."""
        layout, styles = layout_of(self.size.width), self.query_one(".panels").styles
        # Other layouts show one panel.
        if layout in USUAL:
            sizes = self._sizes_in(layout)
            styles.grid_columns = f"{sizes.left} 1fr {sizes.right}"
            styles.grid_rows = f"{sizes.upper}fr {100 - sizes.upper}fr"

    # Other views

    def open_selected(self, otherwise: str) -> ModelSpec | None:
        """Return the open model, or open the one under the cursor of the list; say `otherwise` if the list has none.

        The keys of the answers stand below the list, so that they mean the selected model.
        """
        if self._spec is None and self._models.selected is not None:
            self.open(self._library.listed(self._models.selected))
        elif self._spec is None:
            self.notify(otherwise)
        return self._spec

    def _asking_about(self, source: ModelSource) -> Callable[[], Asked]:
        """Return what a screen asks that answers about a model, under the choices and the config of the moment."""
        listed = self._library.listed(source)
        return lambda: Asked(self._library.spec(listed, self.choices), self.choices, self._config())

    def open(self, source: ModelSource) -> None:
        raise NotImplementedError

    def follow_job(self, kind: str, model: str) -> None:
        if kind == "language model":
            # Its models are in no library of files.
            self.action_show_language()
            return
        source = self._library.named(model)
        if source is None:
            self.notify(f"{model} is not in the list of models: add its file with {key('workbench.open_path')}.")
            return
        self.open(source)
        # Each screen follows what was begun before.
        {"proof": self.action_show_analysis, "load test": self.action_show_scenario, "trace": self.action_show_trace}[
            kind
        ]()

    def action_show_variants(self) -> None:
        from dlbricks_tui.api.combinations import compare_in_steps
        from dlbricks_tui.tui.variants import VariantsScreen

        if spec := self.open_selected("Open a model to compare its runtimes, threads and batch sizes."):
            asked = self._asking_about(spec.source)

            def read() -> Iterator[Ranking]:
                now = asked()
                return compare_in_steps(now.spec, now.choices, self.session.data, work.is_wanted)

            self.app.push_screen(VariantsScreen(spec.source.name, read, partial(self.start_run, (spec.source,))))

    def action_show_analysis(self) -> None:
        from dlbricks_tui.tui.analysis import AnalysisScreen

        if spec := self.open_selected("Open a model to analyse how fast it could be."):
            self.app.push_screen(AnalysisScreen(self.session, self._asking_about(spec.source)))

    def action_show_scenario(self) -> None:
        from dlbricks_tui.tui.scenario import ScenarioScreen

        if spec := self.open_selected("Open a model to see how much load it can serve."):
            self.app.push_screen(ScenarioScreen(self.session, self._asking_about(spec.source)))

    def action_show_trace(self) -> None:
        from dlbricks_tui.tui.trace import TraceScreen

        if spec := self.open_selected("Open a model to see where its time goes."):
            layer, graph = self._tree.selected_layer, None if self._opened is None else self._opened.graph
            place = None if layer is None or graph is None else LayerPlace(layer, graph.layers[layer].name, graph.level)
            self.ask(TraceScreen(self.session, self._asking_about(spec.source), place), self._show_layer)

    def _show_layer(self, place: LayerPlace) -> None:
        self._wanted_layer = place
        self.go_to(self._tree)
        if self.choices.level is not place.level:
            self.choose(replace(self.choices, level=place.level))
        else:
            self.show_wanted_layer()

    def show_wanted_layer(self) -> None:
        """Select the layer of a trace in the decomposition, once the model is read at its level."""
        wanted, opened = self._wanted_layer, self._opened
        if wanted is None or opened is None or opened.graph.level is not wanted.level:
            return
        self._wanted_layer = None
        layer = index_of(wanted, [it.name for it in opened.graph.layers])
        if layer is None:
            self.notify(f"The decomposition has no layer {wanted.name}: the trace is of another runtime or file.")
        else:
            self._tree.show_layer(layer)

    def choose(self, choices: Choices) -> None:
        """Take other choices, and read the open model anew where they change it."""
        raise NotImplementedError

    def action_change(self, setting: str, step: int) -> None:
        changed = change_setting(setting_named(setting), self.choices, step)
        if changed == self.choices:
            self.notify(no_other_value(setting))
        self.choose(changed)

    def action_show_scores(self) -> None:
        from dlbricks_tui.tui.workbench.boxes import ScoresScreen

        specs, choices = self._library.specs(self.choices), self.choices
        self.app.push_screen(ScoresScreen(partial(self.session.scores, specs, choices)))

    def action_show_results(self) -> None:
        from dlbricks_tui.tui.results import ResultsScreen

        if not self.app.is_screen_installed(_RESULTS):
            self.app.install_screen(ResultsScreen(self.session), _RESULTS)
        self.app.push_screen(_RESULTS)

    def action_show_corpus(self) -> None:
        if self._models.marked:
            self._ask_which_marked(self._show_corpus_of)
        else:
            self._show_corpus_of(self._library.sources)

    def _show_corpus_of(self, sources: tuple[ModelSource, ...]) -> None:
        from dlbricks_tui.tui.corpus import CorpusScreen

        def specs(choices: Choices) -> list[ModelSpec]:
            return [self._library.spec(source, choices) for source in sources]

        self.app.push_screen(CorpusScreen(self.session, specs, self.choices, measuring=self.measuring))

    def action_export_suite(self) -> None:
        if self._models.marked:
            self._ask_which_marked(self._ask_for_suite)
        else:
            if spec := self.open_selected(f"Mark the models to export with {key('app.mark')}, or open one."):
                self._ask_for_suite((spec.source,))

    def _ask_for_suite(self, sources: tuple[ModelSource, ...]) -> None:
        from dlbricks_tui.tui.workbench.boxes import ExportSuiteScreen

        if self.measuring:
            self.notify("A run measures now, and an export would disturb it: export the suite when it has ended.")
        elif self._exporting is not None:
            self._show_export(self._exporting)
        else:
            specs = [self._library.spec(source, self.choices) for source in sources]
            box = ExportSuiteScreen(f"Export the bricks of {names_of([source.name for source in sources])}")
            self.ask(box, partial(self._export_suite, specs, self.choices))

    def _export_suite(self, specs: Sequence[ModelSpec], choices: Choices, path: Path) -> None:
        def start() -> JobFolder:
            # Loaded here, in a thread: exports are rare.
            from dlbricks_tui.api.suites import start_export

            return start_export(specs, choices, path, self.session.data)

        def follow(job: JobFolder) -> None:
            self._exporting = job
            self._show_export(job)
            self.run_worker(self._await_export(job), group=_SUITE, exit_on_error=False)

        self.run_in_thread(start, _SUITE, follow)

    def _show_export(self, job: JobFolder) -> None:
        from dlbricks_tui.api.jobs import ToldJob
        from dlbricks_tui.tui.run.boxes import JobScreen

        self.app.push_screen(JobScreen(ToldJob(job), self.session.data))

    async def _await_export(self, job: JobFolder) -> None:
        from dlbricks_tui.api.suites import written_suite
        from dlbricks_tui.tui.run.boxes import JobScreen
        from dlbricks_tui.tui.workbench.boxes import SuiteWrittenScreen

        try:
            written = await written_suite(job, self.session.data)
        finally:
            self._exporting = None
        if written is None:
            show_message(self.app, "The export is cancelled; nothing was written.")
            return
        if isinstance(self.app.screen, JobScreen):
            self.app.pop_screen()
        self.app.push_screen(SuiteWrittenScreen(written))

    def action_show_systems(self) -> None:
        from dlbricks_tui.tui.systems import SystemsScreen

        asked = None if self._spec is None else self._asking_about(self._spec.source)
        self.ask(SystemsScreen(self.session, asked), self._system_taken)

    @on(ModelsPanel.LanguageAsked)
    def action_show_language(self) -> None:
        from dlbricks_tui.tui.language import LanguageScreen

        self.app.push_screen(LanguageScreen(self.session, self._config))

    def action_show_fleet(self, run: str = "") -> None:
        """Show a fleet run, or the newest one."""
        from dlbricks_tui.tui.fleet import FleetScreen

        sources = self._models.marked or ((self._spec.source,) if self._spec is not None else ())
        self.app.push_screen(FleetScreen(self.session, sources, self._config, run))

    def _system_taken(self, taken: tuple[str, Level]) -> None:
        system, level = taken
        self.choose(replace(self.choices, system=system, runtime=None, format=None, level=level))

    def _ask_which_marked(self, then: Callable[[tuple[ModelSource, ...]], None]) -> None:
        from dlbricks_tui.tui.dialogs.notices import ask_which_marked

        ask_which_marked(self.app, "model", self._models.marked_in_view, self._models.marked, then)
