"""The output of commands: data on standard output, narration on standard error."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TextIO

from dlbricks_tui.errors import UserError
from dlbricks_tui.printable import printable, printable_lines
from dlbricks_tui.wording.commands import completed

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dlbricks_tui.documents.parts import Part

# A name in a file may be a megabyte long. The line keeps its beginning and its end.
_LONGEST_NARRATION = 4000
# The remarks of this command.
_remarks: set[str] = set()
# CSV rows and JSON lines per write: each write goes to the reader by itself.
_LINES_PER_WRITE = 1000


class ReaderGoneError(Exception):
    """The reader of standard output has closed it, as `head` does after ten lines."""


class OutputError(UserError):
    """Standard output could not be written."""


def write(text: str) -> None:
    """Write data to standard output at once, with control codes in it spelled out."""
    _write_raw(printable_lines(text))


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output, many at once."""
    remaining = iter(lines)
    while some := list(islice(remaining, _LINES_PER_WRITE)):
        write("".join(f"{line}\n" for line in some))


def write_json(document: object) -> None:
    """Write one JSON document on one line; dataclasses, enumerations and paths are made part of it."""
    write_json_lines([document])


def write_json_lines(documents: Iterable[object]) -> None:
    """Write a JSON document per line."""
    write_lines(map(_json_text, documents))


def write_csv(rows: Iterable[Sequence[object]]) -> None:
    """Write comma-separated values; line breaks and control codes in a cell are spelled out."""
    import csv

    remaining = iter(rows)
    while some := list(islice(remaining, _LINES_PER_WRITE)):
        text = io.StringIO()
        cells = ([printable(cell) if isinstance(cell, str) else cell for cell in row] for row in some)
        csv.writer(text, lineterminator="\n").writerows(cells)
        write(text.getvalue())


def show(*renderables: RenderableType, soft_wrap: bool = False) -> None:
    """Write tables, trees and texts, in colour where the terminal has any; it may wrap lines that are too long."""
    if not renderables:
        return
    console = data_console()
    # At the end of a capture rich writes an empty text, which fails where the disk is full.
    with _failures_raised(sys.stdout), console.capture() as rendered:
        console.print(*renderables, sep="\n", soft_wrap=soft_wrap)
    text = completed(rendered.get())
    if not console.is_terminal:
        # Tables fill their last column with blanks, which are in the way in a file.
        text = "\n".join(line.rstrip(" ") for line in text.split("\n"))
    # The console has spelled out the control codes in names; the codes left are its own colours.
    _write_raw(text)


def show_parts(parts: Iterable[Part], widest: int | None = None) -> None:
    """Write a document to standard output, in at most so many columns."""
    # Loaded here, as above: other output needs no tables.
    from dlbricks_tui.cli.rendering import texts_of

    console = data_console()
    # A command may be longer than a line, and is copied whole.
    show(*texts_of(parts, console, min(console.width, widest or console.width)), soft_wrap=True)


def data_console() -> Console:
    """Return the console of standard output; `show` writes to it."""
    from dlbricks_tui.cli.rendering import console_on

    return console_on(sys.stdout)


def narration_console() -> Console:
    """Return the console of standard error, for progress."""
    from dlbricks_tui.cli.rendering import console_on

    return console_on(sys.stderr)


def narrate(*lines: str) -> None:
    """Write lines to standard error, with control codes in them spelled out."""
    stream: TextIO | None = sys.stderr
    if stream is None:
        return
    for line in map(printable, map(completed, lines)):
        if len(line) > _LONGEST_NARRATION:
            line = f"{line[: _LONGEST_NARRATION // 2]} ... {line[-_LONGEST_NARRATION // 2 :]}"
        # A closed standard error must not end the command.
        with contextlib.suppress(OSError):
            _put(stream, f"{line}\n")


def narrate_once(*remarks: str) -> None:
    """Write lines to standard error that this command has not written before: several models are read often."""
    for remark in remarks:
        if remark not in _remarks:
            _remarks.add(remark)
            narrate(remark)


def forget_remarks() -> None:
    """Let a new command write all remarks."""
    _remarks.clear()


def narrate_waiting(ahead: str) -> None:
    """Tell what a command waits for: the work before it in the line of this host."""
    narrate(f"waiting for {ahead}")


def narrate_some(lines: Sequence[str], others: str, most: int = 20) -> None:
    """Write the first lines to standard error, and how many others `--json` lists."""
    narrate(*lines[:most])
    if len(lines) > most:
        narrate(f"and {len(lines) - most} more {others}, which --json lists")


def _json_text(value: object) -> str:
    import json

    from dlbricks_tui.api.documents import document

    text = json.dumps(value, allow_nan=False, default=document)
    # JSON escapes every control code but DEL.
    return completed(text, lambda words: json.dumps(words)[1:-1]).replace("\x7f", "\\u007f")


def _write_raw(text: str) -> None:
    stream: TextIO | None = sys.stdout
    if stream is not None:
        with _failures_raised(stream):
            _put(stream, text)


@contextlib.contextmanager
def _failures_raised(stream: TextIO) -> Iterator[None]:
    """Turn a failure to write to standard output into ReaderGoneError or OutputError."""
    try:
        yield
    except BrokenPipeError:
        _discard_rest(stream)
        raise ReaderGoneError from None
    except OSError as error:
        _discard_rest(stream)
        raise OutputError(f"standard output cannot be written: {error.strerror}; the output is cut off") from error


def _put(stream: TextIO, text: str) -> None:
    # A layer name must not fail a command on a terminal that lacks its characters.
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _discard_rest(stream: TextIO) -> None:
    # The interpreter flushes once more when it ends, and would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
