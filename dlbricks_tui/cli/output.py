"""What commands write: data to standard output, narration to standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from dlbricks_tui.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

# Wide enough for a grid of fifty models: who reads through a pipe wants nothing cut off.
PIPED_WIDTH = 1000


class ReaderGoneError(Exception):
    """Whoever read our standard output has seen enough, as `head` has after ten lines."""


class OutputError(UserError):
    """What was asked for could not be written out."""


def counted(count: int, noun: str = "result") -> str:
    """So many of something, in words."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def write(text: str) -> None:
    """Writes data to standard output at once."""
    stream: TextIO | None = sys.stdout
    if stream is None:
        return
    try:
        _put(stream, text)
    except BrokenPipeError:
        _discard_what_is_left(stream)
        raise ReaderGoneError from None
    except OSError as error:
        _discard_what_is_left(stream)
        raise OutputError(f"standard output cannot be written: {error.strerror}; what came out is cut off") from error


def write_json(document: Json) -> None:
    """Writes one JSON document on one line."""
    import json

    write(json.dumps(document, allow_nan=False) + "\n")


def show(*renderables: RenderableType) -> None:
    """Writes tables, trees and texts, in colour where the terminal has any."""
    console = data_console()
    with console.capture() as rendered:
        console.print(*renderables, sep="\n")
    text = rendered.get()
    if not console.is_terminal:
        # Tables fill their last column with blanks: nobody sees them on a terminal, in a file they are in the way.
        text = "\n".join(line.rstrip(" ") for line in text.split("\n"))
    write(text)


def data_console() -> Console:
    """The console of standard output, to ask for width and colours; `show` writes to it."""
    return _console(sys.stdout)


def narration_console() -> Console:
    """The console of standard error, for progress."""
    return _console(sys.stderr)


def narrate(text: str) -> None:
    """Writes one line to standard error."""
    stream: TextIO | None = sys.stderr
    if stream is None:
        return
    # When nobody listens any more there is nobody to tell either.
    with contextlib.suppress(OSError):
        _put(stream, one_line(text) + "\n")


def one_line(text: str) -> str:
    """The text with line breaks and terminal control codes, which file names may hold, spelled out."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _put(stream: TextIO, text: str) -> None:
    # A layer name must not fail a command on a terminal that cannot spell it.
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _discard_what_is_left(stream: TextIO) -> None:
    # The interpreter flushes once more when it ends, and would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    # Names are data: brackets in them are no markup, and numbers in them are not to be coloured.
    console = Console(file=stream, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPED_WIDTH
    return console
