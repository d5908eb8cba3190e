"""What a person can have done with runs; screens ask from threads."""

from dlbricks_tui.runs.launch import create_run
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run_folder import RunFolder, RunFolders, RunState
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.share.running import start_detached


class Runs:
    """The runs of a data folder, which are processes of their own."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data

    def start(self, request: RunRequest) -> str:
        """Has a process take up what is asked, and returns the id of the run."""
        folder = create_run(request, self._data)
        start_detached(folder, self._data)
        return folder.run

    def take_up(self, run: str) -> None:
        """Has a process go on with a run that ended before all was done."""
        start_detached(self._folder(run), self._data)

    def pause(self, run: str) -> None:
        """Asks a run to stand still."""
        self._folder(run).pause()

    def go_on(self, run: str) -> None:
        """Asks a run that stands still to go on."""
        self._folder(run).unpause()

    def cancel(self, run: str) -> None:
        """Asks a run to end."""
        self._folder(run).cancel()

    def states(self) -> tuple[RunState, ...]:
        """How all runs stand, the newest first."""
        return RunFolders(self._data.runs).states()[::-1]

    def _folder(self, run: str) -> RunFolder:
        return RunFolders(self._data.runs).find(run)
