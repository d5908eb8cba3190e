"""Themes: TOML files that say the colours of everything by what it means."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from textual.color import Color, ColorParseError
from textual.theme import Theme

from dlbricks_tui.errors import UserError
from dlbricks_tui.tui.lines import STYLES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What there is beside the styles of text: grounds, frames, and the line that the cursor is on.
_SURFACES = ("background", "panel", "frame", "frame-focused", "cursor", "cursor-text", "cursor-elsewhere")
COLOURS = (*STYLES, *_SURFACES)


class ThemeError(UserError):
    """A theme does not say what it should."""


def read_themes(
    *folders: Path, before: Mapping[str, Theme] = MappingProxyType({})
) -> tuple[dict[str, Theme], list[ThemeError]]:
    """The themes of all folders by name, one of a later folder in place of its namesake; and what is wrong with others.

    One that is broken now stays as it was before.
    """
    themes: dict[str, Theme] = {}
    refused: list[ThemeError] = []
    for path in (path for folder in folders for path in _files(folder)):
        try:
            themes[path.stem] = read_theme(path)
        except ThemeError as error:
            refused.append(error)
            if path.stem in before:
                themes[path.stem] = before[path.stem]
    return themes, refused


def read_theme(path: Path) -> Theme:
    """The theme in a file, called as the file is."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ThemeError(f"theme {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ThemeError(f"theme {path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise ThemeError(f"theme {path} is not TOML: {error}") from None
    dark, colours = document.pop("dark", None), document.pop("colours", None)
    if not isinstance(dark, bool):
        raise ThemeError(f"theme {path}: say `dark = true` or `dark = false`")
    if not isinstance(colours, dict):
        raise ThemeError(f"theme {path}: the colours belong under [colours]")
    for name in document:
        raise ThemeError(f"theme {path}: {name!r} means nothing; there are `dark` and [colours]")
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
        # Colours of the terminal's own are left to it, as only it knows them.
        ansi=any(value.startswith("ansi_") for value in colours.values()),
        variables={
            **{f"ink-{colour}": value for colour, value in colours.items()},
            # Textual's own style sheets want these of themes of the terminal's colours.
            "ansi-background": colours["background"],
            "ansi-foreground": colours["text"],
        },
    )


def _checked(colours: Mapping[str, object], path: Path) -> dict[str, str]:
    unknown, lacking = set(colours) - set(COLOURS), set(COLOURS) - set(colours)
    if unknown or lacking:
        named = min(unknown or lacking)
        wrong = f"{named!r} is no colour of a theme" if unknown else f"the colour {named!r} is missing"
        raise ThemeError(f"theme {path}: {wrong}; there are: {', '.join(COLOURS)}")
    for name, value in colours.items():
        if not isinstance(value, str) or not _is_colour(value):
            raise ThemeError(f"theme {path}: {name} = {value!r} is no colour; write it like '#7aa2f7' or 'ansi_blue'")
    return {name: str(value) for name, value in colours.items()}


def _is_colour(text: str) -> bool:
    try:
        Color.parse(text)
    except ColorParseError:
        return False
    return True


def _files(folder: Path) -> Iterable[Path]:
    return sorted(folder.glob("*.toml"))
