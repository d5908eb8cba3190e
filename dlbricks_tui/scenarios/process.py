"""The process that measures a scenario: it reads an order from its standard input, and writes messages as lines."""

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

from dlbricks_tui.crash_log import keep_traceback
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.host_lock import HostLock, host_lock
from dlbricks_tui.runs.control import RunStopped, StopSignals
from dlbricks_tui.runs.launch import command_of
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
    lock: HostLock,
    rule: LoadRule | None = None,
    clocks: Clocks | None = None,
) -> bool:
    """Measure a scenario, and tell its end; return whether it was measured."""
    with StopSignals(ignore_hangup=False) as signals:
        try:
            measure_scenario(order, place, signals, write, lock, rule, clocks)
        except RunStopped as stopped:
            write(LoadFailed(reason=stopped.why))
        except UserError as error:
            write(LoadFailed(reason=str(error)))
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of dlbricks is one line, too
            log = keep_traceback(error, place.data.log)
            write(LoadFailed(reason=f"internal error: {error}; the traceback is in {log}"))
        else:
            return True
    return False


def main(data: str) -> None:
    """Measure the scenario of the order; the entry point of the process."""
    order = pickle.load(sys.stdin.buffer)
    output = os.dup(sys.stdout.fileno())
    # Only messages are written there: LoadGen prints as well.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # A thread that passes a request on must not wait until the main thread has read logs.
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        place = Workplace(DataFolder(Path(data)))
        measured = execute(order, place, lambda message: _write(output, encode(message)), host_lock())
    except BrokenPipeError:
        print("the program that asked for the scenario has gone", file=sys.stderr, flush=True)  # noqa: T201
        measured = False
    # LoadGen may still wait for the times of its queries in its thread.
    sys.stderr.flush()
    os._exit(0 if measured else 1)


def _write(output: int, line: bytes) -> None:
    while line:
        line = line[os.write(output, line) :]
