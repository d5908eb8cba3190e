"""The lock that writers of a store hold while they write."""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from dlbricks_tui.store.errors import StoreBusyError, cannot_write

# Longer than compacting a million results takes: a process that still holds the lock hangs.
PATIENCE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 0.02


class StoreLock:
    """An exclusive lock for writers, on a file that is never replaced. It ends with the process that holds it."""

    def __init__(self, path: Path, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._path = path
        self._patience_seconds = patience_seconds
        self._file: int | None = None

    def __enter__(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise cannot_write(self._path, error) from error
        try:
            self._wait_for(file)
            _name_holder(file)
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @property
    def held(self) -> bool:
        """True while this object holds the lock."""
        return self._file is not None

    def _wait_for(self, file: int) -> None:
        give_up = time.monotonic() + self._patience_seconds
        pause_seconds = 0.0002
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > give_up:
                    holder = os.pread(file, 32, 0).decode("ascii", "replace").strip() or "unknown"
                    raise StoreBusyError(
                        f"process {holder} has kept {self._path} locked for more than {self._patience_seconds:.0f} s; "
                        "end it if it hangs, then try again"
                    ) from None
                time.sleep(pause_seconds)
                pause_seconds = min(pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
            except OSError as error:
                raise cannot_write(self._path, error) from error


def _name_holder(file: int) -> None:
    # Padded, so that a shorter number overwrites a longer one.
    try:
        os.pwrite(file, f"{os.getpid():<31}\n".encode(), 0)
    except OSError:
        return
