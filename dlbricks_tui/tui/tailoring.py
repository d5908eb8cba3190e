"""Fits the application to what the person has in the config file and among the themes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.errors import UserError
from dlbricks_tui.tui import keymap
from dlbricks_tui.tui.choices import next_of
from dlbricks_tui.tui.keeping import tell
from dlbricks_tui.tui.widgets.ink import Inked
from dlbricks_tui.tui.widgets.keyed import Keyed

if TYPE_CHECKING:
    from textual.app import App

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.tui.preferences import Preferences

FIRST_THEME = "dark"
SECONDS_BETWEEN_LOOKS = 2.0


class UnknownThemeError(UserError):
    """The settings name a theme that is not there."""


class Tailor:
    """For one application; what is broken is told of, and stays as it was before."""

    def __init__(self, app: App[None], preferences: Preferences) -> None:
        self.preferences = preferences
        self._app = app
        self._untold: list[UserError] = []
        # The theme that the settings had put on last, and one that they want but that is not there.
        self._put_on_by_settings = ""
        self._missed = ""
        self._take(preferences.read())

    @property
    def config(self) -> Config:
        """The settings that count."""
        return self.preferences.taste.config

    def open(self) -> None:
        """Begins to look at the files, now that there is somebody to tell."""
        self._tell()
        self._app.set_interval(SECONDS_BETWEEN_LOOKS, self.look)

    def look(self) -> None:
        """Takes over what was changed since the last look."""
        if self.preferences.changed():
            before = self.preferences.taste.keymap
            self._take(self.preferences.read())
            if self.preferences.taste.keymap != before:
                self._name_keys_anew()
            self._tell()

    def put_on_next_theme(self) -> None:
        """Changes the theme for this session."""
        self._app.theme = next_of(tuple(self.preferences.taste.themes), self._app.theme, 1)

    def _take(self, refused: list[UserError]) -> None:
        taste = self.preferences.taste
        self._untold += refused
        for theme in taste.themes.values():
            self._app.register_theme(theme)
        keymap.use(taste.keymap)
        self._app.set_keymap(taste.keymap.for_textual())
        self._put_on(taste.config.theme)

    def _put_on(self, wanted: str) -> None:
        themes = self.preferences.taste.themes
        if wanted not in themes and wanted != self._missed:
            where = self.config.given["workbench.theme"].where
            self._untold.append(
                UnknownThemeError(f"{where}: there is no theme {wanted}; there are {', '.join(themes)}")
            )
        self._missed = wanted if wanted not in themes else ""
        if wanted in themes and wanted != self._put_on_by_settings:
            self._app.theme = self._put_on_by_settings = wanted
        elif self._app.theme not in themes:
            self._app.theme = FIRST_THEME
        else:
            self._colour_anew()

    def _colour_anew(self) -> None:
        """The theme is called as before, but may have other colours."""
        self._app.refresh_css(animate=False)
        for screen in self._app.screen_stack:
            for inked in screen.query(Inked):
                inked.notify_style_update()
                inked.refresh()

    def _name_keys_anew(self) -> None:
        for screen in self._app.screen_stack:
            for node in screen.walk_children():
                if isinstance(node, Keyed):
                    node.keys_changed()

    def _tell(self) -> None:
        for error in self._untold:
            tell(self._app, str(error), warning=True)
        self._untold.clear()
