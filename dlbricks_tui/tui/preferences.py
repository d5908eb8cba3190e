"""The config file, the keys and the themes: read, applied, and read again when a file changes."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from textual.app import App
from textual.color import Color, ColorParseError
from textual.theme import Theme

from dlbricks_tui.config.config import Config, ConfigError, Sources, unknown_theme
from dlbricks_tui.documents.pictures import STYLES
from dlbricks_tui.errors import UserError
from dlbricks_tui.files import parsed_toml, read_text
from dlbricks_tui.folders import THEMES
from dlbricks_tui.settings.setting import next_of
from dlbricks_tui.tui.keys import keymap
from dlbricks_tui.tui.keys.keymap import Keymap, KeymapError, keymap_of, wrong_keys
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.widgets.screens import ThreadedScreen
from dlbricks_tui.tui.widgets.text import LineWidget, NamesKeys

# Colours other than those of text: backgrounds, frames and the cursor line.
_SURFACES = ("background", "panel", "frame", "frame-focused", "cursor", "cursor-text", "cursor-elsewhere")
COLOURS = (*STYLES, *_SURFACES)


class ThemeError(UserError):
    """A theme file is invalid."""


def read_themes(
    *folders: Path, before: Mapping[str, Theme] = MappingProxyType({})
) -> tuple[dict[str, Theme], list[ThemeError]]:
    """Return the themes of all folders by name, and the problems with others. Later folders win.

    A theme that has become invalid keeps its previous state.
    """
    themes: dict[str, Theme] = {}
    refused: list[ThemeError] = []
    for path in (path for folder in folders for path in sorted(folder.glob("*.toml"))):
        try:
            themes[path.stem] = read_theme(path)
        except ThemeError as error:
            refused.append(error)
            if path.stem in before:
                themes[path.stem] = before[path.stem]
    return themes, refused


def faults(config: Config, folder: Path) -> list[str]:
    """Return what is wrong with the themes in a folder, and with the keys of the config file."""
    return [*map(str, read_themes(folder)[1]), *filter(None, [wrong_keys(config.keys)])]


def read_theme(path: Path) -> Theme:
    """Return the theme in a file; the file gives it its name."""
    try:
        document = parsed_toml(read_text(path))
    except OSError as error:
        raise ThemeError(f"theme {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ThemeError(f"theme {path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except ValueError as error:
        raise ThemeError(f"theme {path} is not TOML: {error}") from None
    dark, colours = document.pop("dark", None), document.pop("colours", None)
    if not isinstance(dark, bool):
        raise ThemeError(f"theme {path}: it needs `dark = true` or `dark = false`")
    if not isinstance(colours, dict):
        raise ThemeError(f"theme {path}: the section [colours] is missing")
    for name in document:
        raise ThemeError(f"theme {path}: unknown setting {name!r}; valid are `dark` and [colours]")
    return _theme(path.stem, dark, _checked(colours, path))


def _theme(name: str, dark: bool, colours: Mapping[str, str]) -> Theme:
    return Theme(
        name=name,
        dark=dark,
        primary=colours["accent"],
        secondary=colours["accent"],
        accent=colours["accent"],
        success=colours["good"],
        warning=colours["warn"],
        error=colours["bad"],
        foreground=colours["text"],
        background=colours["background"],
        surface=colours["panel"],
        panel=colours["panel"],
        # Only the terminal knows its own colours.
        ansi=any(value.startswith("ansi_") for value in colours.values()),
        variables={
            **{f"ink-{colour}": value for colour, value in colours.items()},
            # Textual's style sheets need these for themes with terminal colours.
            "ansi-background": colours["background"],
            "ansi-foreground": colours["text"],
        },
    )


def _checked(colours: Mapping[str, object], path: Path) -> dict[str, str]:
    unknown, lacking = set(colours) - set(COLOURS), set(COLOURS) - set(colours)
    if unknown or lacking:
        named = min(unknown or lacking)
        wrong = f"unknown colour {named!r}" if unknown else f"the colour {named!r} is missing"
        raise ThemeError(f"theme {path}: {wrong}; valid are: {', '.join(COLOURS)}")
    for name, value in colours.items():
        try:
            Color.parse(value if isinstance(value, str) else "")
        except ColorParseError:
            raise ThemeError(
                f"theme {path}: {name} = {value!r} is not a colour; write it like '#7aa2f7' or 'ansi_blue'"
            ) from None
    return {name: str(value) for name, value in colours.items()}


FIRST_THEME = "dark"
SECONDS_BETWEEN_CHECKS = 2.0


class UnknownThemeError(UserError):
    """The config names a theme that does not exist."""


def _answering(config: Config) -> dict[str, object]:
    """Return the settings on which answers depend."""
    return {name: it.value for name, it in config.given.items() if not name.startswith("workbench.")}


class LivePreferences:
    """Config, keymap and themes as their files state them, applied to the application again whenever a file changes.

    An invalid file keeps its previous content.
    """

    def __init__(self, app: App[None], sources: Sources, themes: Path) -> None:
        self._app = app
        self._sources = sources
        self._folder = themes
        # The time of change and the size of each file; None for one that does not exist.
        self._stamps: dict[Path, tuple[int, int] | None] = {}
        self.config = Config()
        self._keymap = Keymap()
        self.themes: Mapping[str, Theme] = {}
        self._unreported: list[UserError] = []
        # The last theme that the config has set, and one that it names but that does not exist.
        self._theme_of_config = ""
        self._missing_theme = ""
        self._take()

    def open(self) -> None:
        """Report the first problems and start to watch the files."""
        self._report()
        self._app.set_interval(SECONDS_BETWEEN_CHECKS, self.reload)

    def reload(self) -> None:
        """Apply the changes since the last look."""
        if self._found() == self._stamps:
            return
        before, answering = self._keymap, _answering(self.config)
        self._take()
        if _answering(self.config) != answering:
            # The workbench comes first: the screens in front of it ask for its choices.
            for screen in self._app.screen_stack:
                if isinstance(screen, ThreadedScreen):
                    screen.config_changed()
        if self._keymap != before:
            for node in (it for screen in self._app.screen_stack for it in screen.walk_children()):
                if isinstance(node, NamesKeys):
                    node.keys_changed()
        self._report()

    def use_next_theme(self) -> None:
        self._app.theme = next_of(tuple(self.themes), self._app.theme, 1)

    def _found(self) -> dict[Path, tuple[int, int] | None]:
        found: dict[Path, tuple[int, int] | None] = {}
        for path in (self._sources.file, *sorted(self._folder.glob("*.toml"))):
            found[path] = None
            with suppress(OSError):
                known = path.stat()
                found[path] = known.st_mtime_ns, known.st_size
        return found

    def _take(self) -> None:
        """Read all files, and apply them; keep the problems with those that were not used."""
        # Before reading: a change during the reading is then read again.
        self._stamps = self._found()
        self.themes, refused = read_themes(THEMES, self._folder, before=self.themes)
        try:
            self.config = self._sources.read()
            self._keymap = keymap_of(self.config.keys)
        except (ConfigError, KeymapError) as error:
            self._unreported.append(error)
        self._unreported += refused
        for theme in self.themes.values():
            self._app.register_theme(theme)
        keymap.use(self._keymap)
        self._app.set_keymap(self._keymap.for_textual())
        self._use_theme(self.config.theme)

    def _use_theme(self, wanted: str) -> None:
        themes = self.themes
        if wanted not in themes and wanted != self._missing_theme:
            self._unreported.append(UnknownThemeError(unknown_theme(self.config, themes)))
        self._missing_theme = wanted if wanted not in themes else ""
        if wanted in themes and wanted != self._theme_of_config:
            self._app.theme = self._theme_of_config = wanted
        elif self._app.theme not in themes:
            self._app.theme = FIRST_THEME
        else:
            # The colours of a theme may have changed under the same name.
            self._app.refresh_css(animate=False)
            for screen in self._app.screen_stack:
                for inked in screen.query(LineWidget):
                    inked.notify_style_update()
                    inked.refresh()

    def _report(self) -> None:
        for error in self._unreported:
            show_message(self._app, str(error), warning=True)
        self._unreported.clear()
