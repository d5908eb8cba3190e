"""Traces: a model at rising levels of detail, run in a process of its own."""

import os
from collections.abc import Callable
from pathlib import Path

from dlbricks_tui.answers.opening import model_named
from dlbricks_tui.answers.traces.results import TraceResult, trace_result
from dlbricks_tui.answers.traces.tracing import (
    TraceFormat,
    TraceOptions,
    format_of,
    require_place,
    require_room,
    trace_model,
    trace_order,
    write_in,
)
from dlbricks_tui.api.estimating import Model, folder_at
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.wording.tracing import message_line


def trace(
    model: Model,
    options: TraceOptions | None = None,
    *,
    file: os.PathLike[str] | str | None = None,
    format: TraceFormat | None = None,  # noqa: A002 - the option of the command has this name
    progress: Callable[[str], None] | None = None,
    data: os.PathLike[str] | str | None = None,
) -> TraceResult:
    """Run a model at rising levels of detail, and return what each level takes and adds, and the times of the layers.

    The trace is kept in the data folder. `file` is written for the program that the format names, and replaced if it is
    there; by default for chrome://tracing if its name ends in .json, else for Perfetto. `progress` is called with a
    line after each level. An exception, such as KeyboardInterrupt, ends the trace and its processes.
    """
    folder = folder_at(data)
    place = None if file is None else Path(file)
    form = None if place is None else format_of(place, format)
    if place is not None:
        require_place(place, replace=True)
    order = trace_order(options or TraceOptions(), model_named(os.fspath(model), folder), folder)
    require_room(folder)

    def take(message: Event) -> None:
        if progress is not None and (line := message_line(message)):
            progress(line)

    found = trace_model(order, folder, take)
    if place is None or form is None:
        return trace_result(found)
    write_in(form, found, place)
    return trace_result(found, place, form)
