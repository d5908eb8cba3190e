"""Copies text and saves pictures of the screen."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.errors import UserError
from dlbricks_tui.printable import printable
from dlbricks_tui.tui.lines import cut

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import App

    from dlbricks_tui.folders import DataFolder

_END = "\a"


def clipboard_sequence(text: str, environment: Mapping[str, str]) -> str:
    """Return the sequence that copies the text to the clipboard of a terminal that allows it (OSC 52).

    tmux handles it with `set-clipboard on`, and passes on a wrapped sequence with `allow-passthrough on`. Which of them
    is on cannot be queried, so both are sent.
    """
    sequence = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}{_END}"
    if not environment.get("TMUX"):
        return sequence
    doubled = sequence.replace("\x1b", "\x1b\x1b")
    return f"{sequence}\x1bPtmux;{doubled}\x1b\\"


# Enough to recognise a key.
_MOST_SHOWN = 64
_SECONDS, _SECONDS_OF_A_WARNING = 8.0, 20.0


class SavingError(UserError):
    """A file could not be saved."""


def save_copied(text: str, data: DataFolder) -> str:
    """Save the copied text to a file and return a message: the terminal may not support the clipboard."""
    shown = cut(printable(text), _MOST_SHOWN)
    try:
        write_atomically(data.copied, text)
    except OSError as error:
        return (
            f"Copied: {shown}. Some terminals do not allow that, and {data.copied} cannot be written: {error.strerror}"
        )
    return f"Copied: {shown}. Some terminals do not allow that: the text is also in {data.copied}"


def save_picture_file(svg: str, data: DataFolder) -> Path:
    """Save a picture under a new name and return its path."""
    taken = datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    path = data.pictures / f"dlbricks-{taken}.svg"
    try:
        write_atomically(path, svg)
    except OSError as error:
        raise SavingError(f"{path} cannot be written: {error.strerror}") from None
    return path


def show_message(app: App[None], text: str, *, warning: bool = False) -> None:
    """Show a message long enough to read the paths in it, without markup."""
    app.notify(
        text,
        severity="warning" if warning else "information",
        timeout=_SECONDS_OF_A_WARNING if warning else _SECONDS,
        markup=False,
    )
