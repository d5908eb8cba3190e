"""The process that measures a scenario: it reads an order from its standard input, and writes messages as lines."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import HostQueue, host_queue
from dlbricks_tui.runs.control import StopSignals, carry_out, command_of, take_order
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.scenarios.load_tests import Clocks
from dlbricks_tui.scenarios.measuring import LoadRule, measure_scenario
from dlbricks_tui.scenarios.messages import LoadFailed, LoadMessage, ScenarioOrder, encode

_SWITCH_SECONDS = 0.0005


def scenario_command(data: DataFolder) -> list[str]:
    """Return the command of the process, which reads a `ScenarioOrder`."""
    return command_of(__name__, str(data.path))


def execute(
    order: ScenarioOrder,
    place: Workplace,
    write: Callable[[LoadMessage], None],
    queue: HostQueue,
    rule: LoadRule | None = None,
    clocks: Clocks | None = None,
) -> bool:
    """Measure a scenario, and tell its end; return whether it was measured."""

    def work(signals: StopSignals) -> None:
        measure_scenario(order, place, signals, write, queue, rule, clocks)

    return carry_out(work, place.data, lambda reason: write(LoadFailed(reason=reason)))


def main(data: str) -> None:
    """Measure the scenario of the order; the entry point of the process."""
    order, write = take_order()
    # A thread that passes a request on must not wait until the main thread has read logs.
    sys.setswitchinterval(_SWITCH_SECONDS)
    place = Workplace(DataFolder(Path(data)))
    measured = execute(order, place, lambda message: write(encode(message)), host_queue())
    # LoadGen may still wait for the times of its queries in its thread.
    sys.stderr.flush()
    os._exit(0 if measured else 1)
