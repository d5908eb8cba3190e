"""What the person has in the config file and among the themes, read anew whenever it has changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.config.config import Config, ConfigError
from dlbricks_tui.settings import THEMES
from dlbricks_tui.tui.keymap import Keymap, KeymapError, keymap_of
from dlbricks_tui.tui.themes import read_themes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.theme import Theme

    from dlbricks_tui.config.reading import Sources
    from dlbricks_tui.errors import UserError

# When a file was changed, and how long it is; None where there is none.
_Stamp = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Taste:
    """All of it at one moment."""

    config: Config
    keymap: Keymap
    themes: Mapping[str, Theme]


class Preferences:
    """Keeps what counted before in place of what is broken now."""

    def __init__(self, sources: Sources, themes: Path) -> None:
        self._sources = sources
        self._themes = themes
        self._stamps: dict[Path, _Stamp] = {}
        self.taste = Taste(Config(), Keymap(), {})

    def changed(self) -> bool:
        """Whether a file was changed, added or taken away since the last reading."""
        return self._found() != self._stamps

    def read(self) -> list[UserError]:
        """Reads all of it, and returns what is wrong and was not taken over."""
        # Looked at before: what changes while it is read is read again.
        self._stamps = self._found()
        refused: list[UserError] = []
        config, keymap = self.taste.config, self.taste.keymap
        try:
            config = self._sources.read()
            keymap = keymap_of(config.keys)
        except (ConfigError, KeymapError) as error:
            refused.append(error)
        themes, broken = read_themes(THEMES, self._themes, before=self.taste.themes)
        self.taste = Taste(config, keymap, themes)
        return [*refused, *broken]

    def _found(self) -> dict[Path, _Stamp]:
        return {path: _stamp(path) for path in (self._sources.file, *sorted(self._themes.glob("*.toml")))}


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
