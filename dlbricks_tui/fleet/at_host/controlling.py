"""Pause, resume and cancel what runs on a host."""

import json
from pathlib import Path

from dlbricks_tui.fleet.at_host.tasks import note_cancelled, run_of
from dlbricks_tui.fleet.errors import HostError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runs.run_folder import RunFolder

_DEEDS = {"pause": RunFolder.pause, "resume": RunFolder.unpause, "cancel": RunFolder.cancel}


def control(data_path: str, task_id: str, what: str) -> str:
    """Pause, resume or cancel a task, and return the state of its run as JSON.

    The state is empty while there is no run. A task that is cancelled then gets none.
    """
    deed = _DEEDS.get(what)
    if deed is None:
        raise HostError(f"a task can be {', '.join(_DEEDS)}; {what[:40]!r} is none of them")
    data = DataFolder(Path(data_path))
    folder = run_of(data, task_id)
    if folder is None:
        if what == "cancel":
            note_cancelled(data, task_id)
        return json.dumps({"state": ""})
    state = folder.state()
    if state.active:
        deed(folder)
    return json.dumps({"state": folder.state().state.value})
