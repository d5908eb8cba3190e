"""Real workers that tests share, as importing a framework takes a second and more."""

from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.runtime import Runtime


class Telling(NamedTuple):
    """A worker with MXNet whose oneDNN tells in a log what it executes."""

    worker: Worker
    log: Path


def framework_of(runtime: Runtime, worker: Worker) -> WorkerFramework:
    """Return a framework that asks a worker that runs already."""
    framework = WorkerFramework(runtime, Path("/nowhere"))
    framework._worker = worker
    return framework
