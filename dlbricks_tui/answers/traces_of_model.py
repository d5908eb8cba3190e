"""The stored traces of a model, and the files of other programs that they are written to."""

from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.answers.traces import format_of, write_in
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.traces.file import StoredTrace, read_trace, stored_traces
from dlbricks_tui.traces.trace import Trace


class TracesOfModel(NamedTuple):
    """The stored traces of a model, the newest first, and a line for each file that cannot be read."""

    traces: tuple[StoredTrace, ...]
    unreadable: tuple[str, ...] = ()


def traces_of(model: str, data: DataFolder) -> TracesOfModel:
    """Return the traces of a model; files that cannot be read may be of any model."""
    found = stored_traces(data.traces)
    return TracesOfModel(tuple(it for it in reversed(found.traces) if it.header.model == model), found.unreadable)


def whole_trace(stored: StoredTrace) -> Trace:
    """Read a trace with all of its spans."""
    return read_trace(stored.path)


def write_for_others(trace: Trace, path: Path) -> None:
    """Write a trace for another program, whose format the ending tells."""
    write_in(format_of(path), trace, path)
