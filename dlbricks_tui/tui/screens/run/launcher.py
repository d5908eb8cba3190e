"""From marked models to a run: asks how it is to measure, and has it started."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dlbricks_tui.errors import UserError
from dlbricks_tui.tui.messages import Failed, RunBegun
from dlbricks_tui.tui.opened import Wish, id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.models.graph import Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.runs.request import RunRequest
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.live.prospect import Prospect
    from dlbricks_tui.tui.live.run_settings import RunSettings
    from dlbricks_tui.tui.opened import ModelId
    from dlbricks_tui.tui.screens.asking import AskingScreen
    from dlbricks_tui.tui.session import Session

_Told = tuple[str | None, int | None, float, float | None]


class Launcher:
    """For one screen, which asks for runs."""

    def __init__(self, session: Session, screen: AskingScreen[None], config: Callable[[], Config]) -> None:
        self._session = session
        self._screen = screen
        self._config = config
        self._shapes: Mapping[ModelId, Mapping[str, Shape]] = {}
        self._last: RunSettings | None = None
        # What the config said then.
        self._told: _Told | None = None

    def ask_how(
        self,
        sources: Sequence[ModelSource],
        shapes: Mapping[ModelId, Mapping[str, Shape]],
        choices: Choices,
        follow: Callable[[Choices], None],
    ) -> None:
        """Shows the settings and what a run will take; `follow` is told by which choices its results are found."""
        from dlbricks_tui.tui.screens.run.start import StartRunScreen

        self._shapes = shapes
        try:
            settings = self._settings(sources, choices)
        except UserError as error:
            self._screen.app.post_message(Failed(error))
            return
        names = tuple(source.name for source in sources)
        screen = StartRunScreen(names, settings, partial(self._foresee, sources))
        self._screen.app.push_screen(screen, partial(self._begin, sources, follow))

    def begin(
        self,
        sources: Sequence[ModelSource],
        shapes: Mapping[ModelId, Mapping[str, Shape]],
        choices: Choices,
    ) -> None:
        """Has a run started with the settings that would have been offered."""
        self._shapes = shapes
        self._screen.ask(lambda: self._start(sources, self._settings(sources, choices)), "start run")

    def _begin(
        self, sources: Sequence[ModelSource], follow: Callable[[Choices], None], settings: RunSettings | None
    ) -> None:
        if settings is not None:
            self._last, self._told = settings, _told_by(self._config())
            follow(settings.choices)
            self._screen.ask(partial(self._start, sources, settings), "start run")

    def _settings(self, sources: Sequence[ModelSource], choices: Choices) -> RunSettings:
        from dlbricks_tui.tui.live.run_settings import settings_for

        config = self._config()
        # What is said in the config since counts over what was chosen before.
        last = self._last if self._told == _told_by(config) else None
        return settings_for(choices, sources, self._session.data.path, config, last)

    def _start(self, sources: Sequence[ModelSource], settings: RunSettings) -> None:
        run = self._session.runs.start(self._request(sources, settings))
        self._screen.post_message(RunBegun(run))

    def _foresee(self, sources: Sequence[ModelSource], settings: RunSettings) -> Prospect:
        from dlbricks_tui.tui.live.prospect import foresee

        choices = settings.choices
        wishes = [Wish(it, choices.level, choices.cutting, self._shapes.get(id_of(it), {})) for it in sources]
        return foresee(self._session, wishes, self._request(sources, settings))

    def _request(self, sources: Sequence[ModelSource], settings: RunSettings) -> RunRequest:
        from dlbricks_tui.tui.live.run_settings import request_for

        return request_for(sources, self._shapes, settings, self._session.data.path)


def _told_by(config: Config) -> _Told:
    return config.runtime, config.threads, config.target_ci, config.time_budget
