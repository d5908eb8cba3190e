"""The keys of all actions (defaults, changes by the config file, labels), and the places where they apply."""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from textual.app import App
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.keys import _character_to_key, key_to_character
from textual.screen import Screen

from dlbricks_tui.config.config import Given
from dlbricks_tui.documents.lines import Line, Span
from dlbricks_tui.errors import UserError
from dlbricks_tui.tui.keys.scopes import (
    ACTIONS,
    BOX,
    BY_ID,
    CHAINS,
    DIALOG,
    FORM,
    LIST,
    PALETTE,
    PATH,
    SEARCH,
    Action,
    Scope,
)

# Textual's names of keys with a sign.
_SIGNS = {"plus": "+", "minus": "-", "slash": "/", "backslash": "\\", "at": "@", "underscore": "_"}
_SHOWN = {
    **_SIGNS,
    "escape": "esc",
    "enter": "enter",
    "space": "space",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
}
_NAMED = {sign: name for name, sign in _SHOWN.items()}
_MODIFIERS = {"c": "ctrl", "control": "ctrl", "s": "shift", "a": "alt"}
_WORDS = r"enter|tab|space|escape|backspace|delete|insert|home|end|pageup|pagedown|up|down|left|right|f[1-9]|f1[0-2]"
_KEY = re.compile(rf"(?:alt\+)?(?:ctrl\+[a-z]|(?:ctrl\+)?(?:shift\+)?(?:{_WORDS}))|alt\+[^\W_]")


class UnknownKeyError(ValueError):
    """The text names no key of a terminal."""


def shown(key: str) -> str:
    """Return the label of a key: `^d` for `ctrl+d`."""
    if key.startswith("ctrl+"):
        return f"^{shown(key.removeprefix('ctrl+'))}"
    if key.startswith(("shift+", "alt+")):
        modifier, _, rest = key.partition("+")
        return f"{modifier}-{shown(rest)}"
    if key in _SHOWN:
        return _SHOWN[key]
    sign = key_to_character(key)
    return sign if sign is not None and sign.isprintable() else key


def key_labels(keys: tuple[str, ...]) -> str:
    return " ".join(map(shown, keys))


def parse_key(written: str) -> str:
    """Return Textual's name of a key that was written as a label or in Textual's way."""
    key = written.strip()
    if len(key) == 1 and key.isprintable():
        return _NAMED.get(key) or _character_to_key(key)
    if key.startswith("^"):
        key = f"ctrl+{key[1:]}"
    *modifiers, base = re.split(r"(?<=\w)[+-](?=.)", key)
    modifiers = [_MODIFIERS.get(each.lower(), each.lower()) for each in modifiers]
    if len(base) > 1 or "ctrl" in modifiers:
        base = base.lower()
    base = _NAMED.get(base, base)
    key = "+".join([*modifiers, base])
    if not types_text(key) and not _KEY.fullmatch(key):
        raise UnknownKeyError(written)
    return key


def types_text(key: str) -> bool:
    """Return whether the key types a letter or a sign."""
    typed = key_to_character(key)
    # Textual's own names of some signs do not lead back to the sign.
    return key in _SIGNS or (typed is not None and typed.isprintable())


_SAME_AS = "terminals send the same for"
RESERVED_KEYS = {
    "ctrl+b": "tmux uses it",
    "ctrl+a": "screen uses it",
    "ctrl+h": f"{_SAME_AS} backspace",
    "ctrl+i": f"{_SAME_AS} tab",
    "ctrl+j": f"{_SAME_AS} enter",
    "ctrl+m": f"{_SAME_AS} enter",
    "ctrl+s": "terminals may stop the output",
    "ctrl+q": "terminals may resume the output",
}
# These actions keep these keys in addition to any others, so that the user can always leave.
FIXED_KEYS = {"app.quit": "ctrl+c", "dialog.leave": "ctrl+c", "dialog.close": "escape", "find.clear": "escape"}


class KeymapError(UserError):
    """The keys in the config file are invalid."""


@dataclass(frozen=True, slots=True)
class Keymap:
    """The keys of every action, by Textual's names."""

    changed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def keys_of(self, action: Action) -> tuple[str, ...]:
        return self.changed.get(action.id, action.keys)

    def for_textual(self) -> dict[str, str]:
        """Return the changed keys in Textual's format."""
        return {action: ",".join(keys) for action, keys in self.changed.items()}


# One keymap per process: many places show the names of keys.
_in_use = Keymap()


def use(keymap: Keymap) -> None:
    global _in_use
    _in_use = keymap


def keys_of(action: Action) -> tuple[str, ...]:
    return _in_use.keys_of(action)


def key(action: str) -> str:
    """Return the label of the current key of the action with that id."""
    return shown(keys_of(BY_ID[action])[0])


def keymap_of(wanted: Mapping[str, Given]) -> Keymap:
    """Return the keymap of the config file; raise the first problem with it."""
    keymap = Keymap({action: _checked(action, given) for action, given in wanted.items()})
    for action, given in wanted.items():
        for key_, other in _clashes(BY_ID[action], keymap):
            raise KeymapError(
                f"{given.where}: keys.{action}: {shown(key_)} already runs {other.id} in the same place "
                f"({other.help.rstrip('.')}): give one of them another key"
            )
    return keymap


def wrong_keys(wanted: Mapping[str, Given]) -> str:
    """Return the first problem with the keys of the config file; empty if there is none."""
    try:
        keymap_of(wanted)
    except KeymapError as error:
        return str(error)
    return ""


def _checked(action: str, given: Given) -> tuple[str, ...]:
    found = BY_ID.get(action)
    where = f"{given.where}: keys.{action}"
    if found is None:
        close = difflib.get_close_matches(action, BY_ID, 1)
        perhaps = f"did you mean {close[0]}?" if close else "docs/reference/keys.md lists all names"
        raise KeymapError(f"{where}: no such action; {perhaps}")
    keys = tuple(_parsed(each, where) for each in given.value)
    for each in keys:
        if each in RESERVED_KEYS:
            raise KeymapError(f"{where}: {shown(each)} never arrives ({RESERVED_KEYS[each]}): choose another key")
        if types_text(each) and (found.always or found.scope.typing):
            raise KeymapError(f"{where}: {shown(each)} types text here: choose a key like f5 or ctrl+x")
    kept = FIXED_KEYS.get(action)
    return tuple(dict.fromkeys((*keys, kept) if kept else keys))


def _parsed(written: str, where: str) -> str:
    try:
        return parse_key(written)
    except UnknownKeyError:
        raise KeymapError(
            f"{where}: {written!r} is not a key; write it like 'x', 'X', 'ctrl+x', 'f5', 'space' or 'shift+tab'"
        ) from None


def _clashes(action: Action, keymap: Keymap) -> Iterator[tuple[str, Action]]:
    """Yield the actions that have the same key in the same place, unless they share it by default."""
    for other in _beside(action):
        both = _names(keymap.keys_of(action)) & _names(keymap.keys_of(other))
        meant = _names(action.keys) & _names(other.keys)
        yield from ((each, other) for each in sorted(both - meant))


def _names(keys: tuple[str, ...]) -> set[str]:
    return {parse_key(each) for each in keys}


def _beside(action: Action) -> list[Action]:
    """Return the actions whose keys work in the same places as those of this one."""
    scopes = {scope for chain in CHAINS if action.scope in chain for scope in chain}
    everywhere = (other for other in BY_ID.values() if action.always or other.always or other.scope in scopes)
    return [other for other in everywhere if other is not action]


_ACTION = re.compile(r"\{([a-z_]+\.[a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Hint:
    """A line of text in which `{models.open}` stands for the key of that action."""

    text: str
    style: str = "text"

    @property
    def line(self) -> Line:
        """The line with the current keys highlighted."""
        told = self.text.lstrip()
        parts = enumerate(_ACTION.split(told))
        spans = (Span(key(part), "accent") if at % 2 else Span(part, self.style) for at, part in parts)
        # A line that is wrapped goes on below its first span.
        return tuple(it for it in (Span(self.text[: -len(told)]), *spans) if it.text)


def with_keys(text: str) -> str:
    """Return the text with the current keys in place of the action ids."""
    return _ACTION.sub(lambda found: key(found[1]), text)


# The palette leaves out actions that only make sense while the user types or reads.
_NOT_IN_PALETTE = frozenset({LIST, SEARCH, DIALOG, BOX, FORM, PALETTE, PATH})


class HelpPlace:
    """A node with its own paragraph in the help; one with a scope has the bindings of that scope."""

    scope: ClassVar[Scope | None] = None
    ABOUT: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]]

    def __init_subclass__(cls, **options: bool) -> None:
        own = vars(cls)
        if "scope" in own and "BINDINGS" not in own:
            cls.BINDINGS = own["scope"].bindings
        super().__init_subclass__(**options)

    @property
    def about(self) -> str:
        """The help paragraph with the current keys."""
        return with_keys(self.ABOUT)


def places_around(app: App[None]) -> Iterator[HelpPlace]:
    """Return the places whose keys work now, the innermost first."""
    start = app.screen.focused or app.screen
    return (node for node in start.ancestors_with_self if isinstance(node, HelpPlace))


def actions_on(screen: Screen[object]) -> Iterator[tuple[Action, DOMNode]]:
    """Yield the actions that the palette offers on a screen, each with the node that runs it."""
    everything: tuple[DOMNode, ...] = (screen.app, screen, *screen.query("*"))
    nodes = {scope: node for node in everything if (scope := getattr(node, "scope", None)) is not None}
    for action in ACTIONS:
        node = nodes.get(action.scope)
        if node is None or action.scope in _NOT_IN_PALETTE:
            continue
        if screen.app._check_action_state(action.call, node):
            yield action, node


def actions_here(screen: Screen[object]) -> Iterator[Action]:
    """Return the actions whose keys work now: those of the screen and of the focused place on it."""
    found = {active.binding.id for active in screen.active_bindings.values() if active.enabled}
    return (action for action in ACTIONS if action.id in found or action.always)
