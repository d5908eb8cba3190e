"""The report of a host: its system, versions, runtimes, clock and free disk space."""

import os
import platform
import shutil
from datetime import datetime, timezone
from pathlib import Path

from dlbricks_tui import __version__
from dlbricks_tui.fleet.at_host.runtimes import runtimes_here
from dlbricks_tui.fleet.encoding import report_text
from dlbricks_tui.fleet.messages import HostReport, RuntimeReport
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue, host_queue
from dlbricks_tui.measure.method import Method
from dlbricks_tui.store.documents import to_document


def report(data_path: str) -> str:
    """Return the report of this host as JSON."""
    return report_text(host_report(DataFolder(Path(data_path)), host_queue()))


def host_report(data: DataFolder, queue: HostQueue) -> HostReport:
    """Return the report of this host."""
    return HostReport(
        dlbricks=__version__,
        python=platform.python_version(),
        methods={method.value: method.id for method in Method},
        runtimes=tuple(
            [
                RuntimeReport(name=it.name, framework=it.framework, version=it.version, identity=it.identity)
                for it in runtimes_here(data)
            ]
        ),
        system=to_document(fingerprint()),
        clock=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        free_bytes=shutil.disk_usage(_existing(data.path)).free,
        busy=_busy(queue),
    )


def _existing(folder: Path) -> Path:
    """Return the folder, or the first one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _busy(queue: HostQueue) -> str:
    """Return the work that measures here now; empty if there is none."""
    if (file := queue.take_turn()) is not None:
        os.close(file)
        return ""
    return str(next(iter(queue.places()), "another process"))
