"""Keys as they arrive from the terminal: parsed, and handled one after another."""

import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeAlias

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.dom import DOMNode
from textual.drivers import linux_driver
from textual.keys import Keys
from textual.message import Message

Typed: TypeAlias = events.Key | events.Paste

_ESCAPE = "\x1b"
# Escape and one more character, unless they begin the sequence of a special key.
_WITH_ALT = re.compile(r"\x1b[^\x1b\[O]", re.DOTALL)
# A complete sequence of a special key or an answer of the terminal. Textual handles reports of the mouse and of modes,
# and the function keys of the Linux console.
_SEQUENCE = re.compile(r"\x1b(?:\[(?![\[<?M])[0-?]*[ -/]*[@-~]|\[\?[\d;]*[@-~]|O[@-~])")
# The number is the code of a letter only before a final `u`.
_NUMBERED = re.compile(r"\x1b\[(?P<number>\d*)[\d:;]*(?P<end>[~A-LN-Z])")
# A widget that was removed with its message queue must not block the keys.
_MOST_SECONDS = 2.0
# Rounds of empty messages to wait after a key, so that the messages that the key caused are handled.
_QUIET_ROUNDS = 2


class KeyParser(XTermParser):
    """Keeps Alt with a letter, and special keys unknown to Textual, apart from text.

    Textual waits a moment after Escape and a letter. It took a special key in that moment as a plain letter: Alt+x and
    F5 asked to cancel a run. It also took the characters of unknown sequences as keys, and the number of a special key
    as the code of a letter.
    """

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        numbered = _NUMBERED.fullmatch(sequence)
        if numbered and f"{numbered['number'] or 1}{numbered['end']}" not in FUNCTIONAL_KEYS:
            known = ANSI_SEQUENCES_KEYS.get(sequence)
            return [events.Key(key.value, None) for key in known] if isinstance(known, tuple) else [_ignored(sequence)]
        found = list(super()._sequence_to_key_events(sequence, alt))
        if not found and _WITH_ALT.fullmatch(sequence):
            pressed = super()._sequence_to_key_events(sequence.removeprefix(_ESCAPE), True)
            # Without a character: Alt with a letter types nothing.
            return [events.Key(f"alt+{key.key.removeprefix('alt+')}", None) for key in pressed]
        return found or ([_ignored(sequence)] if _SEQUENCE.fullmatch(sequence) else [])


def _ignored(sequence: str) -> events.Key:
    return events.Key(Keys.Ignore, sequence)


def use_key_parser() -> None:
    """Make Textual parse keys with `KeyParser`; its driver has no option for that."""
    vars(linux_driver)["XTermParser"] = KeyParser


class KeyDone(Message):
    """Follows a key through the message queues, behind everything that the key has caused."""

    def __init__(self, number: int, begins_at: DOMNode, round_: int) -> None:
        super().__init__()
        self.number = number
        self.begins_at = begins_at
        self.round = round_


class KeyQueue:
    """Handles a key only after the effects of the previous key.

    Textual sends each key at once to the focused widget. Letters typed quickly after `/` reached the list and ran as
    commands, and so did letters typed before a box had opened.
    """

    def __init__(self, app: App[None], hand_on: Callable[[Typed], Awaitable[None]]) -> None:
        self._app = app
        self._hand_on = hand_on
        self._waiting: deque[Typed] = deque()
        # The number of keys that were handled, and whether the last one is still being handled.
        self._count = 0
        self._busy = False

    async def take(self, typed: Typed) -> None:
        """Handle a key now or when its turn comes."""
        self._waiting.append(typed)
        if self._busy:
            self._app.set_timer(_MOST_SECONDS, partial(self._give_up, self._count))
        else:
            await self._next()

    async def arrived(self, done: KeyDone) -> None:
        """End the turn of a key when its messages are handled and the focus does not move."""
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
        """The widget or screen that gets the next key."""
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
