"""Write files completely or not at all."""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from dlbricks_tui.regular_files import open_log

# The ending of drafts; a killed writer leaves one behind.
DRAFT_SUFFIX = ".new"


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


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace a file durably in one step, or change nothing.

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
    # Each writer has a separate name: several threads or processes may write the same file.
    draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}{DRAFT_SUFFIX}")
    try:
        with draft.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
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
    finally:
        os.close(handle)
