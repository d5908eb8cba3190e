"""The work of a process that reads an order: it is carried out to its end, or one line says why not."""

from collections.abc import Callable

from dlbricks_tui.crash_log import keep_traceback
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runs.control import RunStopped, StopSignals


def carry_out(work: Callable[[StopSignals], None], data: DataFolder, fail: Callable[[str], None]) -> bool:
    """Return whether some work came to its end; `fail` takes the reason if it did not."""
    with StopSignals(ignore_hangup=False) as signals:
        try:
            work(signals)
        except RunStopped as stopped:
            fail(stopped.why)
        except UserError as error:
            fail(str(error))
        except Exception as error:  # noqa: BLE001 - a fault of dlbricks is one line, too
            fail(f"internal error: {error}; the traceback is in {keep_traceback(error, data.log)}")
        else:
            return True
    return False
