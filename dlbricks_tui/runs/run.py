"""One run from its first to its last moment, whatever happens in between."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dlbricks_tui.errors import UserError
from dlbricks_tui.host.host_lock import HostLock, this_process
from dlbricks_tui.measure.events import Event
from dlbricks_tui.runs.control import Control, only_process
from dlbricks_tui.runs.events import EventWriter, RunStarted
from dlbricks_tui.runs.preparation import Preparation
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run_folder import RunFolder, RunState, State
from dlbricks_tui.runs.stop_signals import RunStopped, StopSignals
from dlbricks_tui.runs.work import Work, Workplace


def execute(
    folder: RunFolder,
    request: RunRequest,
    place: Workplace,
    lock: HostLock,
    listener: Callable[[Event], None] | None = None,
    *,
    detached: bool = False,
    prepare: Preparation | None = None,
) -> RunState:
    """Does what is asked, in this process, and returns how it ended; a detached run outlives its terminal.

    What the run is about are the models asked for, unless `prepare` finds something else.
    """
    with only_process(folder), StopSignals(ignore_hangup=detached) as signals, _events(folder, listener) as events:
        control = Control(
            folder,
            lock,
            place.data.path,
            events.tell,
            signals,
            request.time_budget_seconds,
            place.clock,
            place.spent_seconds,
        )
        events.tell(
            RunStarted(
                run=folder.run,
                pid=this_process().pid,
                models=request.model_names,
                runtime=request.runtime.identity,
                level=request.level.value,
                granularity=request.cutting.granularity,
                end_to_end=request.end_to_end,
            )
        )
        try:
            control.begin()
            Work(folder, request, place, control, signals, events.tell, prepare).do()
        except RunStopped as stopped:
            return control.end(stopped.state, stopped.why)
        except UserError as error:
            control.end(State.FAILED, str(error))
            raise
        except BaseException:
            control.end(State.FAILED, "a fault of dlbricks; what was measured before it is kept")
            raise
        return control.end(State.FINISHED, "")


@contextmanager
def _events(folder: RunFolder, listener: Callable[[Event], None] | None) -> Iterator[EventWriter]:
    events = EventWriter(folder.events_file, listener)
    try:
        yield events
    finally:
        events.close()
