"""The process that traces a model: it reads an order from its standard input, and writes messages as lines."""

import sys
from collections.abc import Callable
from pathlib import Path

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import HostQueue, host_queue
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.runs.control import StopSignals, carry_out, command_of, take_order
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.traces.file import write_trace
from dlbricks_tui.traces.measuring import trace_model
from dlbricks_tui.traces.messages import TraceDone, TraceFailed, TraceMessage, TraceOrder, encode


def trace_command(data: DataFolder) -> list[str]:
    """Return the command of the process, which reads a `TraceOrder`."""
    return command_of(__name__, str(data.path))


def execute(
    order: TraceOrder,
    place: Workplace,
    write: Callable[[TraceMessage], None],
    queue: HostQueue,
    limits: TimeLimits | None = None,
) -> bool:
    """Trace a model, write the trace to its file, and tell its end; return whether there is a trace."""

    def work(signals: StopSignals) -> None:
        trace = trace_model(order, place, signals, write, queue, limits)
        write_trace(trace, place.data.traces / f"{trace.id}.json.gz")
        write(TraceDone(id=trace.id))

    return carry_out(work, place.data, lambda reason: write(TraceFailed(reason=reason)))


def main(data: str) -> None:
    """Trace the model of the order; the entry point of the process."""
    order, write = take_order()
    place = Workplace(DataFolder(Path(data)))
    traced = execute(order, place, lambda message: write(encode(message)), host_queue())
    sys.exit(0 if traced else 1)
