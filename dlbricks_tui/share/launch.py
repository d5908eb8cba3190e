"""Starts any run in a process of its own."""

import sys
from pathlib import Path

from dlbricks_tui.errors import UserError
from dlbricks_tui.host.host_lock import host_lock
from dlbricks_tui.runs import launch
from dlbricks_tui.runs.request import read_request
from dlbricks_tui.runs.run_folder import RunFolder
from dlbricks_tui.runs.session import Workplace
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.share.running import execute_any


def start_detached(folder: RunFolder, data: DataFolder) -> None:
    """Has a process of its own take up the run, and returns when it has."""
    launch.start_detached(folder, data, __name__)


def main(folder: str, data: str) -> None:
    """The process of a detached run."""
    run = RunFolder(Path(folder))
    place = Workplace(DataFolder(Path(data)))
    try:
        execute_any(run, read_request(run.request_file), place, host_lock(), detached=True)
    except UserError as error:
        sys.exit(str(error))
