"""What the person takes along from the screen: text that was copied, and pictures."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.errors import UserError
from dlbricks_tui.printable import printable
from dlbricks_tui.tui.lines import cut

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import App

    from dlbricks_tui.settings import DataFolder

# A key fits: enough to see that the right thing was copied.
_MOST_SHOWN = 64
_SECONDS, _SECONDS_OF_A_WARNING = 8.0, 20.0


class KeepingError(UserError):
    """Something could not be kept."""


def keep_copied(text: str, data: DataFolder) -> str:
    """Keeps the text in a file, as nobody can ask a terminal whether it took it; says what became of it."""
    shown = cut(printable(text), _MOST_SHOWN)
    try:
        write_atomically(data.copied, text)
    except OSError as error:
        return f"Copied: {shown}. Not every terminal allows that, and {data.copied} cannot be written: {error.strerror}"
    return f"Copied: {shown}. Not every terminal allows that: the text is in {data.copied} too."


def keep_picture(svg: str, data: DataFolder) -> Path:
    """Keeps the picture under a name of its own, and returns where."""
    taken = datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    path = data.pictures / f"dlbricks-{taken}.svg"
    try:
        write_atomically(path, svg)
    except OSError as error:
        raise KeepingError(f"{path} cannot be written: {error.strerror}") from None
    return path


def tell(app: App[None], text: str, *, warning: bool = False) -> None:
    """Shows the text for a while: paths in it are no markup, and want to be read in full."""
    app.notify(
        text,
        severity="warning" if warning else "information",
        timeout=_SECONDS_OF_A_WARNING if warning else _SECONDS,
        markup=False,
    )
