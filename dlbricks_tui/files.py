"""Files: read regular ones only, JSON and TOML from others with care, and write completely or not at all.

A pipe would block the command, and a device would never end: files of the data folder, and those that are named on the
command line, are opened by these functions.
"""

import errno
import fcntl
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

# The ending of drafts; a killed writer leaves one behind.
DRAFT_SUFFIX = ".new"
# Small values take up to 30 times the memory of their text.
MOST_VALUES = 8_000_000
# A socket, a pipe that nobody reads, and a directory that is opened to write.
_OF_ANOTHER_KIND = frozenset({errno.ENXIO, errno.EISDIR})
_NAMES: Mapping[type, str] = {str: "text", int: "whole number", bool: "truth value", list: "list", dict: "object"}


class NotRegularError(OSError):
    """A directory, a pipe, a socket or a device in the place of a file."""

    def __init__(self, path: Path, mode: int) -> None:
        is_folder = stat.S_ISDIR(mode)
        # As messages continue: "it is ...".
        self.what = "a directory" if is_folder else "not a regular file"
        super().__init__(errno.EISDIR if is_folder else errno.EINVAL, f"it is {self.what}", str(path))


def open_regular(path: Path, *, follow_links: bool = True) -> BinaryIO:
    """Open a file to read; raise NotRegularError at once if it is of another kind."""
    return _opened(path, os.O_RDONLY | (0 if follow_links else os.O_NOFOLLOW), "rb")


def open_log(path: Path) -> BinaryIO:
    """Open a file to append to, and create it; raise NotRegularError at once if it is of another kind."""
    return _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, "ab")


def read_bytes(path: Path) -> bytes:
    """Return the content of a file."""
    with open_regular(path) as file:
        return file.read()


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, with the line breaks of Unix and without a byte-order mark."""
    return read_bytes(path).decode("utf-8-sig").replace("\r\n", "\n")


def read_json(path: Path) -> Any:
    """Return the JSON value in a file; raise ValueError if it is none, or nests too deep."""
    try:
        return json.loads(read_bytes(path))
    except UnicodeDecodeError as error:
        # Its own message may quote the whole file.
        raise ValueError(f"it is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise ValueError("it nests too deep") from None


def parsed_toml(text: str) -> dict[str, Any]:
    """Return the document in a TOML text; raise ValueError if it is none."""
    # Python 3.10 has no tomllib.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None


def _opened(path: Path, flags: int, mode: Literal["rb", "ab"]) -> BinaryIO:
    try:
        # Without O_NONBLOCK, opening a named pipe waits until another process opens its other end.
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in _OF_ANOTHER_KIND:
            raise NotRegularError(path, path.stat().st_mode) from None
        raise
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        raise NotRegularError(path, kind)
    return os.fdopen(descriptor, mode)


def parsed_document(
    content: bytes, format_name: str, schema: int, cure: str = "use the same version on both sides"
) -> dict[str, Any]:
    """Return the JSON object in a file without its format and schema.

    Raise ValueError, whose message completes "it ...", for anything else. `cure` says what to do about another schema.
    """
    if not content.lstrip()[:1] == b"{":
        raise ValueError(f"is not a {format_name} file: it does not begin like one")
    if sum(content.count(sign) for sign in (b",", b"[", b"{")) > MOST_VALUES:
        raise ValueError(f"holds more than {MOST_VALUES:,} values")
    try:
        document = json.loads(content, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nests too deep") from None
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(document, dict) or document.pop("format", None) != format_name:
        raise ValueError(f"is not a {format_name} file")
    found = document.pop("schema", None)
    if type(found) is not int or found != schema:
        raise ValueError(
            f"was written by another version of dlbricks (schema {str(found)[:20]}, this version reads {schema}); "
            f"{cure}"
        )
    return document


def check_fields(document: Any, fields: Mapping[str, type]) -> None:
    """Raise ValueError unless it is an object with exactly these fields and types."""
    _check_names(document, fields)
    for name, kind in fields.items():
        # Not isinstance: true is an int in Python.
        if type(document[name]) is not kind:
            raise ValueError(f"has a {name} that is not a {_NAMES[kind]}")


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _check_names(document: Any, fields: Mapping[str, Any]) -> None:
    if not isinstance(document, dict):
        raise ValueError("is not an object")
    if document.keys() != fields.keys():
        odd = ", ".join(sorted(repr(name[:20]) for name in document.keys() ^ fields.keys())[:4])
        raise ValueError(f"has missing or unexpected fields: {odd}")


def write_atomically(path: Path, text: str) -> None:
    """Replace a file by a text in one step, and create its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, lambda file: file.write(text.encode()))


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Hold a lock while a file is read and written again, so that no change is lost."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A separate file: the other one is replaced while the lock is held.
    with open_log(path.with_name(f"{path.name}.lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_named(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file that the user has named: a pipe is written to, anything else is replaced."""
    if path.is_fifo():
        _stream_to(path, write)
    else:
        replace_file(path, write)


def replace_file(path: Path, write: Callable[[BinaryIO], object], *, durable: bool = True) -> None:
    """Replace a file in one step, or change nothing; if it is durable, a loss of power does not undo that.

    A device is written to and not replaced. A link still leads to the replaced file.
    """
    if path.is_char_device() or path.is_block_device():
        _stream_to(path, write)
        return
    if path.is_dir():
        # Known before a draft is written; the folders `.` and `/` have no name for one.
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.is_symlink():
        # Links in a loop stay as they are, and this one is replaced.
        path = Path(os.path.realpath(path))
    # Each writer has a separate name: several threads or processes may write the same file. It is shorter than names
    # can be, as that of the file may not be.
    draft = path.with_name(f"{path.name[:40]}.{os.urandom(4).hex()}{DRAFT_SUFFIX}")
    try:
        with draft.open("xb") as file:
            write(file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        draft.replace(path)
        if durable:
            sync_folder(path.parent)
    finally:
        with suppress(OSError):
            draft.unlink()


def _stream_to(path: Path, write: Callable[[BinaryIO], object]) -> None:
    with path.open("wb") as stream:
        write(stream)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Network file systems such as CIFS cannot do this with a folder.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)
