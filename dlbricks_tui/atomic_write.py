"""Files that are written whole or not at all."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# What a writer that was killed leaves behind ends so.
DRAFT_SUFFIX = ".new"


def write_atomically(path: Path, text: str) -> None:
    """Replaces the file at once by a text; folders on the way to it are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, lambda file: file.write(text.encode()))


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """For who reads a file and writes it again: others who do so wait, so that no change undoes another."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file of its own, as the other one is replaced while the lock is held.
    with path.with_name(f"{path.name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Put a whole file in the place of another, durably, or change nothing: nobody ever sees half of it.

    A device or a pipe is written to as it stands. A link keeps leading to the file that is replaced.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as stream:
            write(stream)
        return
    if path.is_symlink():
        path = path.resolve()
    # A name of its own for every writer: threads and processes may be at the same file.
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


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder as durable as what the files hold."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
