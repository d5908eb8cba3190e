"""Execute any run, in this process or a separate one; a run of a suite writes a file of results for its owner."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import HostQueue, host_queue
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.runs.request import RunRequest, read_request
from dlbricks_tui.runs.run import RunOutcome, execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.share.suites.preparation import read_suite
from dlbricks_tui.share.suites.results_file import write_results


def execute_any(
    folder: RunFolder,
    request: RunRequest,
    place: Workplace,
    queue: HostQueue,
    listener: Callable[[Event], None] | None = None,
    *,
    detached: bool = False,
) -> RunOutcome:
    """Execute a run in this process and return its outcome; a suite's file has the results up to then."""
    if request.suite is None:
        return execute(folder, request, place, queue, listener, detached=detached)
    read = partial(read_suite, request.suite.folder)
    outcome = execute(folder, request, place, queue, listener, detached=detached, with_estimates=False, read=read)
    write_results(request.suite.results, folder, request, place.data)
    return outcome


def main(folder: str, data: str) -> None:
    """Execute a detached run; the entry point of its process."""
    run = RunFolder(Path(folder))
    place = Workplace(DataFolder(Path(data)))
    try:
        execute_any(run, read_request(run.request_file), place, host_queue(), detached=True)
    except UserError as error:
        sys.exit(str(error))
