"""Carries out any run: one of a suite leaves its results in a file, for the owner of the models."""

from collections.abc import Callable

from dlbricks_tui.host.host_lock import HostLock
from dlbricks_tui.measure.events import Event
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import RunOutcome, execute
from dlbricks_tui.runs.run_folder import RunFolder
from dlbricks_tui.runs.session import Workplace
from dlbricks_tui.share.arrivals import Arriving
from dlbricks_tui.share.results_file import write_results


def execute_any(
    folder: RunFolder,
    request: RunRequest,
    place: Workplace,
    lock: HostLock,
    listener: Callable[[Event], None] | None = None,
    *,
    detached: bool = False,
) -> RunOutcome:
    """Do what is requested, in this process, and return the outcome; what was measured until then is in the file."""
    if request.suite is None:
        return execute(folder, request, place, lock, listener, detached=detached)
    prepare = Arriving(place, request.suite)
    outcome = execute(folder, request, place, lock, listener, detached=detached, prepare=prepare)
    write_results(request.suite.results, folder, request, place.data)
    return outcome
