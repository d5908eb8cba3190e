"""The traces of a data folder, a file each. The user may delete them."""

from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.traces.errors import TraceError
from dlbricks_tui.traces.file import SUFFIX, TraceHeader, read_header

_LIST = "`dlbricks trace --list` shows those there are"


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """A trace in the data folder, by its header."""

    header: TraceHeader
    path: Path
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StoredTraces:
    """The traces of a data folder, the newest last, and a line for each file that cannot be read."""

    traces: tuple[StoredTrace, ...]
    unreadable: tuple[str, ...]


def trace_path(folder: Path, trace: str) -> Path:
    """Return the file of a trace."""
    return folder / f"{trace}{SUFFIX}"


def stored_traces(folder: Path) -> StoredTraces:
    """Return the traces in a folder."""
    found: list[StoredTrace] = []
    unreadable: list[str] = []
    for path in _files(folder):
        try:
            found.append(StoredTrace(read_header(path), path, path.stat().st_size))
        except FileNotFoundError:
            # The user has deleted it meanwhile.
            continue
        except TraceError as error:
            unreadable.append(str(error))
    return StoredTraces(tuple(sorted(found, key=lambda it: it.header.when)), tuple(unreadable))


def find_trace(folder: Path, wanted: str) -> Path:
    """Return the file of a trace by its id, or by the beginning of its id if that is unique; `last` is the newest."""
    if wanted == "last":
        stored = stored_traces(folder)
        if stored.traces:
            return stored.traces[-1].path
        if stored.unreadable:
            raise TraceError(stored.unreadable[0])
    files = {path.name.removesuffix(SUFFIX): path for path in _files(folder)}
    found = [it for it in files if it == wanted] or [it for it in files if wanted and it.startswith(wanted)]
    if len(found) == 1:
        return files[found[0]]
    what = f"{len(found)} traces begin with" if found else "no trace is called"
    raise TraceError(f"{what} {wanted[:80]!r}; {_LIST}")


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIX))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TraceError(f"cannot read {folder}: {error.strerror}") from error
