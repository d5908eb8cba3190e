"""The tasks that this host was given, each with the run that carries it out, which may outlive the call for it."""

import re
from contextlib import suppress
from pathlib import Path

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.fleet.errors import HostError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.cache import remove_oldest
from dlbricks_tui.regular_files import read_text
from dlbricks_tui.runs.run_folder import RunFolder

_ID = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
# Each is about 30 bytes long: the newest thousands stay.
_MOST_BYTES = 1 << 17


def run_of(data: DataFolder, task: str) -> RunFolder | None:
    """Return the run of a task; None if it has none yet, or has none any more."""
    with suppress(OSError, ValueError):
        folder = RunFolder(data.runs / read_text(data.tasks / _checked(task)).strip())
        return folder if folder.request_file.is_file() else None
    return None


def keep_run(data: DataFolder, task: str, folder: RunFolder) -> None:
    """Note the run of a task."""
    path = data.tasks / _checked(task)
    try:
        write_atomically(path, f"{folder.run}\n")
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}; free some space, or make it writable") from error
    remove_oldest([data.tasks], _MOST_BYTES)


def _checked(task: str) -> str:
    if not _ID.fullmatch(task):
        raise HostError(f"{task[:80]!r} is no id of a task")
    return task


def note_cancelled(data: DataFolder, task: str) -> None:
    """Note that a task is cancelled before it has a run."""
    path = _cancelled(data, task)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}; free some space, or make it writable") from error


def was_cancelled(data: DataFolder, task: str) -> bool:
    """Return true if a task was cancelled before it had a run."""
    return _cancelled(data, task).exists()


def _cancelled(data: DataFolder, task: str) -> Path:
    return data.tasks / f"{_checked(task)}.cancelled"
