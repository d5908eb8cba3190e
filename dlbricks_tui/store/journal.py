"""Appending to a file so that what was acknowledged stays, whatever happens next."""

import fcntl
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dlbricks_tui.atomic_write import sync_folder
from dlbricks_tui.store.errors import cannot_write
from dlbricks_tui.store.files import head


def append(journal: Path, texts: Iterable[bytes]) -> None:
    """Adds documents, durably when it returns and not at all when it raises; the caller holds the store's lock."""
    try:
        file = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise cannot_write(journal, error) from error
    try:
        _append(file, journal, b"".join(text + b"\n" for text in texts))
    finally:
        os.close(file)


def _append(file: int, journal: Path, lines: bytes) -> None:
    size = os.fstat(file).st_size
    try:
        _write(file, _before(file, size) + lines)
        _sync(file)
        if not size:
            sync_folder(journal.parent)
    except OSError as error:
        # On a full disk a part may have been written; truncating needs no room.
        with suppress(OSError):
            os.ftruncate(file, size)
        raise cannot_write(journal, error) from error


def _before(file: int, size: int) -> bytes:
    if not size:
        return head() + b"\n"
    # A writer that died in mid-line leaves a line that no one acknowledged: it must not swallow the next one.
    return b"" if os.pread(file, 1, size - 1) == b"\n" else b"\n"


def _write(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _sync(file: int) -> None:
    if sys.platform == "darwin":
        # There fsync leaves the data in the cache of the drive.
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fsync(file)
