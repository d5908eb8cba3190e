"""Which keys do what: those of the registry, but for those that the person has given to other actions."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlbricks_tui.errors import UserError
from dlbricks_tui.tui.actions.action import Action
from dlbricks_tui.tui.actions.chains import CHAINS, TYPING
from dlbricks_tui.tui.actions.registry import BY_ID
from dlbricks_tui.tui.key_names import NoSuchKeyError, named, shown, types_text

if TYPE_CHECKING:
    from dlbricks_tui.config.config import KeysGiven

_CANNOT_TELL = "terminals cannot tell it from"
SWALLOWED = {
    "ctrl+b": "tmux keeps it to itself",
    "ctrl+a": "screen keeps it to itself",
    "ctrl+h": f"{_CANNOT_TELL} backspace",
    "ctrl+i": f"{_CANNOT_TELL} tab",
    "ctrl+j": f"{_CANNOT_TELL} enter",
    "ctrl+m": f"{_CANNOT_TELL} enter",
    "ctrl+s": "terminals may stop at it",
    "ctrl+q": "terminals may take it for going on after ctrl+s",
}
# Whatever else these do it by, they do it by these keys too: so that there is always a way out.
WAYS_OUT = {
    "app.quit": "ctrl+c",
    "dialog.leave": "ctrl+c",
    "dialog.close": "escape",
    "find.clear": "escape",
}


class KeymapError(UserError):
    """The keys of the config file cannot be had as they are wanted."""


@dataclass(frozen=True, slots=True)
class Keymap:
    """The keys of every action, by Textual's names."""

    changed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def keys_of(self, action: Action) -> tuple[str, ...]:
        """The keys that an action is done by; the first is the one that is shown."""
        return self.changed.get(action.id, action.keys)

    def for_textual(self) -> dict[str, str]:
        """The keys that differ from the registry, as Textual wants them."""
        return {action: ",".join(keys) for action, keys in self.changed.items()}


# A keyboard is one for the whole process; what stands on the screen about keys is made in many places.
_in_use = Keymap()


def use(keymap: Keymap) -> None:
    """Makes this the keymap that all words about keys go by."""
    global _in_use
    _in_use = keymap


def keys_of(action: Action) -> tuple[str, ...]:
    """The keys that an action is done by now."""
    return _in_use.keys_of(action)


def key(action: str) -> str:
    """The key of the action of that id, as people call it."""
    return shown(keys_of(BY_ID[action])[0])


def keymap_of(wanted: Mapping[str, KeysGiven]) -> Keymap:
    """The keymap that is wanted; raises the first thing that is wrong with it."""
    keymap = Keymap({action: _checked(action, given) for action, given in wanted.items()})
    for action, given in wanted.items():
        for key_, other in _clashes(BY_ID[action], keymap):
            raise KeymapError(
                f"{given.where}: keys.{action}: {shown(key_)} does {other.id} already, in the same place "
                f"({other.help.rstrip('.')}): give one of them another key"
            )
    return keymap


def wrong_keys(wanted: Mapping[str, KeysGiven]) -> str:
    """What is wrong with the keys that are wanted; nothing where all is well."""
    try:
        keymap_of(wanted)
    except KeymapError as error:
        return str(error)
    return ""


def _checked(action: str, given: KeysGiven) -> tuple[str, ...]:
    found = BY_ID.get(action)
    where = f"{given.where}: keys.{action}"
    if found is None:
        close = difflib.get_close_matches(action, BY_ID, 1)
        perhaps = f"did you mean {close[0]}?" if close else "the page of keys (docs/keys.md) has the names of all"
        raise KeymapError(f"{where}: there is no such action; {perhaps}")
    keys = tuple(_named(each, where) for each in given.keys)
    for each in keys:
        if each in SWALLOWED:
            raise KeymapError(f"{where}: {shown(each)} would never arrive, {SWALLOWED[each]}: choose another key")
        if types_text(each) and (found.always or found.scope in TYPING):
            raise KeymapError(f"{where}: {shown(each)} is text where one types: choose a key like f5 or ctrl+x")
    kept = WAYS_OUT.get(action)
    return tuple(dict.fromkeys((*keys, kept) if kept else keys))


def _named(written: str, where: str) -> str:
    try:
        return named(written)
    except NoSuchKeyError:
        raise KeymapError(
            f"{where}: {written!r} is no key; write it like 'x', 'X', 'ctrl+x', 'f5', 'space' or 'shift+tab'"
        ) from None


def _clashes(action: Action, keymap: Keymap) -> Iterator[tuple[str, Action]]:
    """Where another action has a key of this one, and has not by default."""
    for other in _beside(action):
        both = _names(keymap.keys_of(action)) & _names(keymap.keys_of(other))
        meant = _names(action.keys) & _names(other.keys)
        yield from ((each, other) for each in sorted(both - meant))


def _names(keys: tuple[str, ...]) -> set[str]:
    return {named(each) for each in keys}


def _beside(action: Action) -> list[Action]:
    """The actions whose keys are seen where those of this one are."""
    scopes = {scope for chain in CHAINS if action.scope in chain for scope in chain}
    everywhere = (other for other in BY_ID.values() if action.always or other.always or other.scope in scopes)
    return [other for other in everywhere if other is not action]
