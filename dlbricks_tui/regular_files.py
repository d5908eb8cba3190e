"""Read regular files only: a pipe would block the command, and a device would never end.

Whatever stands at a path of the data folder, or is named on the command line, is opened by these functions.
"""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, Literal


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
    """Return the text of a file in UTF-8, with the line breaks of Unix."""
    return read_bytes(path).decode().replace("\r\n", "\n")


def read_json(path: Path) -> Any:
    """Return the JSON value in a file; raise ValueError if it is none, or nests too deep."""
    try:
        return json.loads(read_bytes(path))
    except UnicodeDecodeError as error:
        # Its own message may quote the whole file.
        raise ValueError(f"it is not UTF-8 text: {error.reason} at byte {error.start}") from None
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


# A socket, a pipe that nobody reads, and a directory that is opened to write.
_OF_ANOTHER_KIND = frozenset({errno.ENXIO, errno.EISDIR})
