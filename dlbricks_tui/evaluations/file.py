"""Files of evaluations: read with limits, and written completely or not at all."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

from dlbricks_tui.atomic_write import write_named
from dlbricks_tui.evaluations.evaluation import Evaluation, EvaluationError
from dlbricks_tui.evaluations.faults import Position
from dlbricks_tui.evaluations.reading import evaluation_of
from dlbricks_tui.evaluations.writing import text_of
from dlbricks_tui.printable import printable
from dlbricks_tui.regular_files import NotRegularError, open_regular

# About 1,500 results with a hundred samples each.
MOST_BYTES = 4 * 2**20
_LONGEST_PATH = 300
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_evaluation(path: Path) -> Evaluation:
    """Return the evaluation in a file; raise EvaluationError, one line with line and column, for the first fault."""
    file = shown_path(path)
    content = content_of(
        path,
        missing="`dlbricks evaluate --from RUN -o FILE` writes one",
        wanted="an evaluation, a TOML file",
        too_large="leave samples out, or split it",
    )
    return evaluation_of(text_in(content, file), hashlib.sha256(content).hexdigest(), file)


def write_evaluation(evaluation: Evaluation, path: Path) -> Evaluation:
    """Write an evaluation to a file, and return it with the hash of the file.

    Raise EvaluationError if that fails, or if `read_evaluation` would refuse the file.
    """
    file, text = shown_path(path), text_of(evaluation)
    content = text.encode()
    try:
        if len(content) > MOST_BYTES:
            raise EvaluationError(f"it has more than {MOST_BYTES // 2**20} MiB; leave samples out, or split it")
        evaluation_of(text, "", "its text")
    except EvaluationError as error:
        raise EvaluationError(f"{file} is not written, because it could not be read again: {error}") from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_named(path, lambda stream: stream.write(content))
    except OSError as error:
        raise EvaluationError(f"{file} cannot be written: {error.strerror}; choose another file") from None
    except ValueError as error:
        raise EvaluationError(f"{file} is not a path: {error}") from None
    return replace(evaluation, sha256=hashlib.sha256(content).hexdigest())


def shown_path(path: Path) -> str:
    """Return a path as messages show it."""
    text = printable(str(path))
    return text if len(text) <= _LONGEST_PATH else f"...{text[-_LONGEST_PATH:]}"


def content_of(path: Path, *, missing: str, wanted: str, too_large: str) -> bytes:
    """Return the bytes of a regular file.

    The texts say what to do if there is none, what the path has to name, and what to do about a file that is too large.
    """
    file = shown_path(path)
    try:
        with open_regular(path) as stream:
            # A large file is refused unread: a sparse file could fill the memory.
            size = os.fstat(stream.fileno()).st_size
            content = stream.read(MOST_BYTES + 1) if size <= MOST_BYTES else b""
    except FileNotFoundError:
        raise EvaluationError(f"{file} does not exist; {missing}") from None
    except NotRegularError as error:
        raise EvaluationError(f"{file} is {error.what}; give the path of {wanted}") from None
    except OSError as error:
        raise EvaluationError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise EvaluationError(f"{file} is not a path: {error}") from None
    if max(size, len(content)) > MOST_BYTES:
        raise EvaluationError(f"{file} has more than {MOST_BYTES // 2**20} MiB; {too_large}")
    return content


def text_in(content: bytes, file: str) -> str:
    """Return the text of a file; a byte order mark of UTF-8 is left out."""
    if content.startswith(_OF_UTF16):
        raise EvaluationError(f"{file}, line 1, column 1: this is UTF-16 text; save the file as UTF-8")
    content = content.removeprefix(_BYTE_ORDER_MARK)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = len(before.rpartition(b"\n")[2].decode(errors="replace")) + 1
        where = Position(before.count(b"\n") + 1, column)
        raise EvaluationError(f"{file}, {where.in_words}: this is not UTF-8 text; save the file as UTF-8") from None
