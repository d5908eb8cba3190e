"""The stored traces of a model, their files for other programs, and what a new one begins with."""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.api import traces as tracing
from dlbricks_tui.api.open_models import Choices, ModelSpec
from dlbricks_tui.api.run_settings import runtimes_for
from dlbricks_tui.api.traces import TraceOptions
from dlbricks_tui.config.config import Config
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.traces.file import StoredTrace, read_trace, stored_traces
from dlbricks_tui.traces.trace import Trace, TraceLevel, TraceOrder


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
    tracing.write_in(tracing.format_of(path), trace, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings(TraceOptions):
    """The options of a trace, and the names of the runtimes to choose from."""

    registered: tuple[str, ...]

    @property
    def offered_levels(self) -> tuple[tuple[TraceLevel, ...], ...]:
        """Each level with all below it."""
        return tuple(tuple(TraceLevel)[:count] for count in range(len(TraceLevel), 0, -1))


def first_settings(data: DataFolder, source: ModelSource, choices: Choices, config: Config) -> TraceSettings:
    """Return the settings to begin with: those in view, else those of the config."""
    runtimes = runtimes_for((source,), data)
    usual = config.runtime if config.runtime in runtimes else runtimes[0]
    if choices.runtime is not None:
        # A runtime of the store has a framework; the one of this host with the same framework measures.
        with suppress(UserError):
            named = Registry(data.path).find(choices.runtime.partition("-")[0]).name
            usual = named if named in runtimes else usual
    return TraceSettings(
        registered=runtimes, runtime=usual, threads=choices.threads or config.threads, batch=choices.batch
    )


def order_of(data: DataFolder, spec: ModelSpec, choices: Choices, settings: TraceSettings) -> TraceOrder:
    """Return the order to trace a model; raise a UserError where this host cannot trace it."""
    precision = None if choices.precision is Precision.F32 else choices.precision
    tracing.require_room(data)
    return tracing.trace_order(replace(settings, precision=precision, inputs=spec.shapes), spec.source, data)
