"""The process of a run that the driver of a fleet has asked for."""

import sys
from pathlib import Path

from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.runs.request import read_request
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.run_folder import RunFolder
from dlbricks_tui.runs.work import Workplace


def main(folder: str, data: str) -> None:
    """Execute a run; the estimates are the driver's business."""
    run = RunFolder(Path(folder))
    place = Workplace(DataFolder(Path(data)))
    try:
        execute(run, read_request(run.request_file), place, host_queue(), detached=True, with_estimates=False)
    except UserError as error:
        sys.exit(str(error))
