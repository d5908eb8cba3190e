"""Keys as they arrive from the terminal: what its bytes mean, and one key after another."""

from __future__ import annotations

import re
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.keys import Keys
from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from textual.app import App
    from textual.dom import DOMNode

Typed: TypeAlias = events.Key | events.Paste

_ESCAPE = "\x1b"
# Escape and one more character, unless they begin the sequence of a special key.
_WITH_ALT = re.compile(r"\x1b[^\x1b\[O]", re.DOTALL)
# The sequence of a special key, or an answer of the terminal, from its beginning to its end. Reports of the mouse, of
# modes, and the function keys of the Linux console are left to Textual.
_SEQUENCE = re.compile(r"\x1b(?:\[(?![\[<?M])[0-?]*[ -/]*[@-~]|\[\?[\d;]*[@-~]|O[@-~])")
# Only where it ends with `u` is the number the code of a letter.
_NUMBERED = re.compile(r"\x1b\[(?P<number>\d*)[\d:;]*(?P<end>[~A-LN-Z])")
# A widget that went away with its part of the queue must not hold back keys for ever.
_MOST_SECONDS = 2.0
# How often a message goes the way of a key again: what one widget asked of the next is done by then.
_QUIET_ROUNDS = 2


class KeyParser(XTermParser):
    """Keeps two things apart from text: a letter pressed with Alt, and special keys that Textual does not know.

    Textual waits a moment after Escape and a letter. A special key in that moment made it take the letter for a key
    of its own: Alt+x and F5 asked to cancel a run. It also took the characters of unknown sequences for keys, and the
    number of a special key for the code of a letter.
    """

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        numbered = _NUMBERED.fullmatch(sequence)
        if numbered and f"{numbered['number'] or 1}{numbered['end']}" not in FUNCTIONAL_KEYS:
            known = ANSI_SEQUENCES_KEYS.get(sequence)
            return [events.Key(key.value, None) for key in known] if isinstance(known, tuple) else [_ignored(sequence)]
        found = list(super()._sequence_to_key_events(sequence, alt))
        if not found and _WITH_ALT.fullmatch(sequence):
            pressed = super()._sequence_to_key_events(sequence.removeprefix(_ESCAPE), True)
            # Without a character: a letter with Alt types nothing.
            return [events.Key(f"alt+{key.key.removeprefix('alt+')}", None) for key in pressed]
        return found or ([_ignored(sequence)] if _SEQUENCE.fullmatch(sequence) else [])


def _ignored(sequence: str) -> events.Key:
    return events.Key(Keys.Ignore, sequence)


def use_key_parser() -> None:
    """Have Textual parse keys with `KeyParser`; its driver offers no other way to choose a parser."""
    vars(linux_driver)["XTermParser"] = KeyParser


class KeyDone(Message):
    """Goes the way of a key, behind the key and behind what the key has caused on that way so far."""

    def __init__(self, number: int, begins_at: DOMNode, round_: int) -> None:
        super().__init__()
        self.number = number
        self.begins_at = begins_at
        self.round = round_


class KeysInTurn:
    """Hands a key on when everything is done that the key before asked for.

    Textual hands every key at once to the widget that has the focus then. So letters that are typed quickly behind `/`
    went to the list and ran as commands there, and so did those that were typed before a box had opened.
    """

    def __init__(self, app: App[None], hand_on: Callable[[Typed], Awaitable[None]]) -> None:
        self._app = app
        self._hand_on = hand_on
        self._waiting: deque[Typed] = deque()
        # How many keys were handed on, and whether the last of them is still being handled.
        self._count = 0
        self._busy = False

    async def take(self, typed: Typed) -> None:
        """Hand a key on, now or when its turn has come."""
        self._waiting.append(typed)
        if self._busy:
            self._app.set_timer(_MOST_SECONDS, partial(self._give_up, self._count))
        else:
            await self._next()

    async def arrived(self, done: KeyDone) -> None:
        """End the turn of a key when its messages have gone their ways and the focus stays where it is."""
        if done.number != self._count:
            return
        if done.begins_at is not self._goes_to:
            await self._follow(0)
        elif done.round < _QUIET_ROUNDS:
            await self._follow(done.round + 1)
        else:
            await self._next()

    @property
    def _goes_to(self) -> DOMNode:
        """The widget or screen that takes the next key."""
        screens = self._app.screen_stack
        return (screens[-1].focused or screens[-1]) if screens else self._app

    async def _follow(self, round_: int) -> None:
        begins_at = self._goes_to
        if not begins_at.post_message(KeyDone(self._count, begins_at, round_)):
            await self._next()

    async def _give_up(self, number: int) -> None:
        if self._busy and number == self._count:
            await self._next()

    async def _next(self) -> None:
        self._busy = bool(self._waiting)
        if self._waiting:
            self._count += 1
            await self._hand_on(self._waiting.popleft())
            await self._follow(0)
