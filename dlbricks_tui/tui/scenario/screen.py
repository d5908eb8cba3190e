"""The screen of how much load a model can serve: the prediction, and MLPerf LoadGen's measurement of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.documents.lines import BLANK, Line, Span, line
from dlbricks_tui.documents.scenario import load_question
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.scenario import actions, work
from dlbricks_tui.tui.scenario.form import ScenarioSettings, SettingsPanel
from dlbricks_tui.tui.scenario.panels import LatenciesPanel, LoadPanel, LoadTestsPanel, answer_line, state_line
from dlbricks_tui.tui.widgets.answering import AnsweringScreen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.scenarios.scenario import PredictedLoad
    from dlbricks_tui.store.records import LoadTest
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.scenario.work import LoadMeasuring, LoadStanding
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.widgets.panel import Panel


class ScenarioScreen(AnsweringScreen[None]):
    """Predicts scenarios of the open model in threads, and measures them in a process."""

    scope = actions.SCENARIO
    CSS_PATH = "scenario.tcss"
    WRAPS_STATE = True
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "How much load the open model can serve. The prediction comes from stored results and a simulated queue; "
        "{scenario.measure} measures the same scenario with MLPerf LoadGen. {scenario.pause} pauses so that others can "
        "measure: the test in progress is repeated. {scenario.cancel} cancels. It goes on when you leave."
    )

    def __init__(self, session: Session, spec: ModelSpec, choices: Choices, config: Config) -> None:
        super().__init__()
        self._session = session
        self._spec = spec
        self._predict = partial(work.predict_scenario, session, spec, choices, config)
        self._settings = _first_settings(session, spec, choices)
        self._view: work.ScenarioView | None = None
        # Why nothing is predicted.
        self._refusal = ""
        # True while the view is that of earlier settings or results.
        self._is_looking = False
        self._measuring: LoadMeasuring | None = None
        # The tests of the last measurement, until the settings change.
        self._last: LoadStanding | None = None
        # Why the last measurement failed.
        self._failure = ""
        # The load test that was measured here last, what its measurement warned about, and what was predicted before.
        self._measured = ""
        self._warnings: tuple[str, ...] = ()
        self._predicted_before: PredictedLoad | None = None
        self._is_outdated = False
        self._load = LoadPanel()
        self._form = SettingsPanel(self._settings, id="load-settings")
        self._latencies = LatenciesPanel()
        self._tests = LoadTestsPanel()

    def panels(self) -> Iterable[Panel]:
        return (self._load, self._form, self._latencies, self._tests)

    def on_mount(self) -> None:
        self._load.show_placeholder(line(Span("Looking up what a request takes.", "muted")))
        self._look()
        begun = partial(work.LoadMeasuring.begun, self._spec.source.name, self._session.data)
        self.run_in_thread(begun, "begun", self._go_on)

    # The prediction

    @on(messages.NewResults)
    def _new_results(self) -> None:
        if self._measuring is None:
            self._look()
        else:
            self._is_outdated = True

    def action_look_again(self) -> None:
        if self._measuring is not None:
            self._say_measuring()
        else:
            self._look()

    @on(SettingsPanel.Chosen)
    def _chosen(self, event: SettingsPanel.Chosen) -> None:
        self._take(event.settings)

    @on(LoadTestsPanel.Taken)
    def _test_taken(self) -> None:
        if self._tests.selected is not None:
            self._take(work.settings_of(self._tests.selected, self._settings))

    def _take(self, settings: ScenarioSettings) -> None:
        if self._measuring is not None:
            self._say_measuring()
        elif settings != self._settings:
            self._settings = settings
            self._form.show(settings)
            self._failure, self._last = "", None
            self._look()

    def _look(self) -> None:
        self._is_outdated, self._is_looking = False, True
        self.run_in_thread(partial(self._predict, self._settings), "prediction", self._predicted)

    def _predicted(self, found: work.ScenarioView | str) -> None:
        self._is_looking = False
        self._refusal = found if isinstance(found, str) else found.answer.refusal
        self._view = None if isinstance(found, str) else found
        self._form.show_bound(self._settings, None if self._view is None else self._view.answer.scenario.bound_ms)
        self._load.show_placeholder(line(Span(self._refusal, "warn")))
        if self._view is not None:
            self._tests.show(self._view.tests)
            if self._measured:
                self._tests.select(self._measured)
        self._show_all()

    # What is shown

    @on(LoadTestsPanel.Selected)
    def _test_selected(self) -> None:
        if self._measuring is None:
            self._show_all()

    def _show_all(self) -> None:
        measuring = self._measuring
        if measuring is not None:
            self._load.show(self._view, measuring.progress, None)
            self._latencies.show_measuring(measuring)
        else:
            test = self._tests.selected
            self._load.show(self._view, self._last, test if self._is_of_scenario(test) else None)
            self._latencies.show_test(
                self._view,
                test,
                self._prediction_of(test),
                self._logs_of(test),
                self._warnings if test is not None and test.uuid == self._measured else (),
            )
        self.head_changed()
        self.refresh_bindings()

    def _is_of_scenario(self, test: LoadTest | None) -> bool:
        return test is not None and self._view is not None and self._view.is_of(test)

    def _prediction_of(self, test: LoadTest | None) -> PredictedLoad | None:
        """Return what is predicted of the scenario of a load test.

        The test that was measured last is already known to the prediction of now, so that of before counts.
        """
        if test is not None and test.uuid == self._measured:
            return self._predicted_before
        return self._view.answer.prediction if self._view is not None and self._is_of_scenario(test) else None

    def _logs_of(self, test: LoadTest | None) -> str:
        folder = self._session.data.scenarios / test.uuid if test is not None else None
        return str(folder) if folder is not None and folder.is_dir() else ""

    def question(self) -> str:
        return load_question(self._spec.source.name)

    def answer(self) -> Iterable[Line]:
        if self._view is not None or self._refusal:
            yield answer_line(self._spec.source.name, self._view, self._refusal)
        # How far a measurement is must not be cut off.
        if self._measuring is not None or self._failure:
            yield state_line(self._view, self._measuring, self._failure)

    def state(self) -> Line:
        # The scenario is the same as in its panel.
        return () if self._measuring is not None or self._failure else state_line(self._view, None, "")

    # The measurement

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("pause", "cancel"):
            return self._measuring is not None
        return super().check_action(action, parameters)

    def action_measure(self) -> None:
        order = None if self._view is None else self._view.answer.order
        if self._measuring is not None:
            self._say_measuring()
        elif self._is_looking:
            self.notify("The scenario is still being looked up.")
        elif self._view is None:
            self.notify(self._refusal)
        elif order is None:
            self.notify("The scenario cannot be measured here: it was looked up for another system or runtime.")
        else:
            from dlbricks_tui.tui.scenario.work import LoadMeasuring

            self._failure, self._last = "", None
            self._go_on(LoadMeasuring(order, self._session.data))

    def _go_on(self, measuring: LoadMeasuring | None) -> None:
        if measuring is not None and self._measuring is None:
            self._measuring = measuring
            self._show_all()
            self.run_worker(self._follow(measuring), group="measurement", exit_on_error=False)

    async def _follow(self, measuring: LoadMeasuring) -> None:
        try:
            await measuring.follow(self._show_all)
        finally:
            self._measuring = None
            self._failure, self._last = measuring.progress.failure, measuring.progress
            if measuring.progress.done is not None:
                self._measured, self._warnings = measuring.progress.done.uuid, measuring.progress.done.warnings
                before = None if self._view is None or measuring.was_begun_before else self._view.answer.prediction
                self._predicted_before = before
            if measuring.cancelled:
                self.notify(f"The measurement is cancelled; stored tests of it: {measuring.progress.kept}.")
            self._show_all()
            if measuring.progress.done is not None or measuring.progress.kept or self._is_outdated:
                self._look()

    def _say_measuring(self) -> None:
        self.notify(f"The scenario is being measured: {key('scenario.cancel')} cancels it.")

    def action_pause(self) -> None:
        if self._measuring is not None:
            (self._measuring.resume if self._measuring.paused else self._measuring.pause)()
            self._show_all()

    def action_cancel(self) -> None:
        def cancel(_: bool) -> None:
            if self._measuring is not None:
                self._measuring.cancel()

        self.ask(CancelLoadScreen("LoadGen measures the scenario."), cancel)

    def action_leave(self) -> None:
        if self._measuring is not None and self._measuring.paused:
            show_message(self.app, "The paused load test ends here; its tests that have ended are stored.")
        elif self._measuring is not None:
            show_message(self.app, "The load test goes on in the background; this screen shows it again.")
        super().action_leave()


def _first_settings(session: Session, spec: ModelSpec, choices: Choices) -> ScenarioSettings:
    batch_sizes = () if choices.batch is None else (choices.batch,)
    return ScenarioSettings(runtimes=work.runtimes_of(session, spec), batch_sizes=batch_sizes)


class CancelLoadScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    HEADING = "Cancel the measurement?"
    scope = actions.CANCEL
    ABOUT = (
        "The result of a scenario is stored once all of its tests have ended. If it is cancelled, the tests that have "
        "ended are stored as load tests at their rates or batch sizes; the test in progress is lost."
    )

    def __init__(self, told: str) -> None:
        super().__init__()
        self._told = told

    def paragraphs(self) -> Iterable[Line]:
        yield line(self._told)
        yield BLANK
        yield line("The test in progress is lost; the tests that have ended are stored.")
