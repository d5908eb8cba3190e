"""The base of the screen that runs are started from and followed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.screens.panelled import PanelledScreen
from dlbricks_tui.tui.screens.run.launcher import Launcher
from dlbricks_tui.tui.widgets.run_bar.bar import RunBar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.models.graph import Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.live.snapshot import RunSnapshot
    from dlbricks_tui.tui.opened import ModelId
    from dlbricks_tui.tui.session import Session


class RunHostScreen(PanelledScreen[None]):
    """Has the bar of the current run and leads to the screens of runs; subclasses compose `run_bar`."""

    def __init__(self, session: Session, config: Callable[[], Config]) -> None:
        super().__init__()
        self.session = session
        self.run_bar = RunBar()
        self._run: RunSnapshot | None = None
        # The run of which the user has seen how it ended.
        self._seen: str | None = None
        self._launcher = Launcher(session, self, config)

    @property
    def measuring(self) -> bool:
        """Whether a run measures now: what can wait is not to be computed then."""
        return self._run is not None and self._run.active and self._run.state is not State.PAUSED

    def run_rests(self) -> None:
        """What could wait can be done, as the run stands still or has ended."""

    def choose(self, choices: Choices) -> None:
        """Lets everything follow other settings: those by which the results of a run are found."""
        raise NotImplementedError

    def start_run(
        self, sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]], choices: Choices
    ) -> None:
        """Asks how some models are to be run, and has the run started."""

        def follow(chosen: Choices) -> None:
            if chosen != choices:
                self.choose(chosen)

        self._launcher.ask_how(sources, shapes, choices, follow)

    def start_usual_run(
        self, sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]], choices: Choices
    ) -> None:
        """Has a run of some models started without asking how."""
        self._launcher.begin(sources, shapes, choices)

    def show_run(self, run: RunSnapshot) -> None:
        """Says how the run stands now."""
        measured = self.measuring
        self._run = run
        if run.active:
            self._seen = None
        if run.run == self._seen:
            self.run_bar.hide()
        else:
            self.run_bar.show(run)
        self.refresh_bindings()
        if measured and not self.measuring:
            self.run_rests()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "close_run_bar":
            return self.run_bar.display and self._run is not None and not self._run.active
        return super().check_action(action, parameters)

    def action_close_run_bar(self) -> None:
        self._end_seen(self._run)

    def _end_seen(self, run: RunSnapshot | None) -> None:
        """Hides the bar of a run that has ended; a new run, or this one taken up again, brings it back."""
        if run is not None and not run.active:
            self._seen = run.run
            self.show_run(run)

    def on_screen_resume(self) -> None:
        self.post_message(messages.RunWanted())

    def on_run_bar_opened(self) -> None:
        self.action_go_to_run()

    def action_go_to_run(self) -> None:
        from dlbricks_tui.tui.screens.run.screen import RunScreen

        if self._run is None:
            self.action_show_runs()
        else:
            self.app.push_screen(RunScreen(self.session.runs, self._run), self._end_seen)

    def action_show_runs(self) -> None:
        from dlbricks_tui.tui.screens.run.all_runs import AllRunsScreen

        self.app.push_screen(AllRunsScreen(self.session.runs), self._run_chosen)

    def _run_chosen(self, run: str | None) -> None:
        from dlbricks_tui.tui.screens.run.screen import RunScreen

        if run is not None:
            self.post_message(messages.RunBegun(run))
            self.app.push_screen(RunScreen(self.session.runs, None), self._end_seen)
