"""What commands write: data to standard output, narration to standard error."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TextIO

from dlbricks_tui.errors import UserError
from dlbricks_tui.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

# A name in a file may be a megabyte long. The line keeps its beginning and its end.
_LONGEST_NARRATION = 4000
# CSV rows and JSON lines per write: each write goes to the reader by itself.
_LINES_PER_WRITE = 1000


class ReaderGoneError(Exception):
    """Whoever read our standard output has seen enough, as `head` has after ten lines."""


class OutputError(UserError):
    """What was asked for could not be written out."""


def write(text: str) -> None:
    """Write data to standard output at once, with control codes in it spelled out."""
    _write_as_it_is(printable_lines(text))


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output, many at once."""
    remaining = iter(lines)
    while some := list(islice(remaining, _LINES_PER_WRITE)):
        write("".join(f"{line}\n" for line in some))


def write_json(document: Json) -> None:
    """Write one JSON document on one line."""
    write_lines([_json_text(document)])


def write_json_lines(documents: Iterable[Json]) -> None:
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


def show(*renderables: RenderableType) -> None:
    """Write tables, trees and texts, in colour where the terminal has any."""
    console = data_console()
    # At the end of a capture rich writes an empty text, which fails where the disk is full.
    with _failures_told(sys.stdout), console.capture() as rendered:
        console.print(*renderables, sep="\n")
    text = rendered.get()
    if not console.is_terminal:
        # Tables fill their last column with blanks: nobody sees them on a terminal, in a file they are in the way.
        text = "\n".join(line.rstrip(" ") for line in text.split("\n"))
    # The console has spelled out the control codes in names; what is left are its own colours.
    _write_as_it_is(text)


def data_console() -> Console:
    """Return the console of standard output, to ask for width and colours; `show` writes to it."""
    from dlbricks_tui.cli.console import console_on

    return console_on(sys.stdout)


def narration_console() -> Console:
    """Return the console of standard error, for progress."""
    from dlbricks_tui.cli.console import console_on

    return console_on(sys.stderr)


def narrate(text: str) -> None:
    """Write one line to standard error, with control codes in it spelled out."""
    stream: TextIO | None = sys.stderr
    if stream is None:
        return
    line = printable(text)
    if len(line) > _LONGEST_NARRATION:
        line = f"{line[: _LONGEST_NARRATION // 2]} ... {line[-_LONGEST_NARRATION // 2 :]}"
    # When nobody listens any more there is nobody to tell either.
    with contextlib.suppress(OSError):
        _put(stream, line + "\n")


def _json_text(document: Json) -> str:
    import json

    # JSON escapes every control code but DEL.
    return json.dumps(document, allow_nan=False).replace("\x7f", "\\u007f")


def _write_as_it_is(text: str) -> None:
    stream: TextIO | None = sys.stdout
    if stream is not None:
        with _failures_told(stream):
            _put(stream, text)


@contextlib.contextmanager
def _failures_told(stream: TextIO) -> Iterator[None]:
    """Turn a failure to write to standard output into ReaderGoneError or OutputError."""
    try:
        yield
    except BrokenPipeError:
        _discard_what_is_left(stream)
        raise ReaderGoneError from None
    except OSError as error:
        _discard_what_is_left(stream)
        raise OutputError(f"standard output cannot be written: {error.strerror}; what came out is cut off") from error


def worded(error: UserError) -> str:
    """An error with what to do about it on the command line."""
    from dlbricks_tui.models.errors import MissingShapeError

    if not isinstance(error, MissingShapeError):
        return str(error)
    from dlbricks_tui.models.input_shapes import MOST_LISTED, spelled

    options = [f"--input {shlex.quote(spelled({name: shape}))}" for name, shape in error.examples.items()]
    more = " ..." if len(options) > MOST_LISTED else ""
    return f"{error}; give each, such as {' '.join(options[:MOST_LISTED])}{more}"


def _put(stream: TextIO, text: str) -> None:
    # A layer name must not fail a command on a terminal that cannot spell it.
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _discard_what_is_left(stream: TextIO) -> None:
    # The interpreter flushes once more when it ends, and would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
