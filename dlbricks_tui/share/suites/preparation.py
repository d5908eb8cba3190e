"""Prepare a run of a suite: read its bricks, and keep which brick and context each id is on this host."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.bricks.contexts import COLD
from dlbricks_tui.bricks.excerpts import Excerpt
from dlbricks_tui.measure.jobs import Job, JobKey, expected_ms, memory_bytes
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.runs.events import ModelLeftOut, ModelLoading
from dlbricks_tui.runs.planning import Workload
from dlbricks_tui.runs.run_folder import RunFolder
from dlbricks_tui.runs.work import RunSession
from dlbricks_tui.share.errors import BrokenBrickError, ShareError
from dlbricks_tui.share.suites.suite import SuiteFolder
from dlbricks_tui.share.suites.unpacking import Unpacker
from dlbricks_tui.store.labels import label_of

_FILE = "suite-bricks.json"
# The number of progress events while bricks are read.
_PROGRESS_EVENTS = 100


@dataclass(frozen=True, slots=True)
class PreparedSuite:
    """The keys of a suite's bricks by id, and for each brick that cannot be read the reason."""

    suite: str
    manifest_sha256: str
    bricks: Mapping[str, JobKey]
    refused: Mapping[str, str]


def read_suite(path: Path, session: RunSession) -> Workload:
    """Return the bricks of the suite in a folder; report and leave out those that cannot be read."""
    suite, tell = SuiteFolder(path), session.tell
    jobs: dict[str, Job] = {}
    refused: dict[str, str] = {}
    bricks = suite.manifest.bricks
    runtime = session.request.runtime.limited_to(session.memory_limit_bytes)
    with WorkerFramework(runtime, session.folder.worker_log, session.place.worker_program) as framework:
        unpacker = Unpacker(framework, suite.manifest.level, session.memory_limit_bytes)
        for number, brick in enumerate(bricks, start=1):
            if (number - 1) % max(1, len(bricks) // _PROGRESS_EVENTS) == 0:
                tell(ModelLoading(model=f"brick {brick.id}", number=number, of=len(bricks)))
            try:
                jobs[brick.id] = _job(unpacker.unpacked(suite.network(brick), brick.layers, brick.cold))
            except BrokenBrickError as error:
                refused[brick.id] = str(error)
                tell(ModelLeftOut(model=f"brick {brick.id}", reason=f"brick {brick.id} {error}"))
    keys = {name: job.key for name, job in jobs.items()}
    _keep(session.folder, PreparedSuite(suite.manifest.suite, suite.sha256, keys, refused))
    return Workload(bricks=tuple(jobs.values()))


def read_prepared(folder: RunFolder) -> PreparedSuite | None:
    """Return the bricks of a suite that a run has read, None if it ended before."""
    try:
        document = json.loads((folder.path / _FILE).read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ShareError(f"cannot read {folder.path / _FILE}: {error.strerror}") from error
    bricks = {name: JobKey(*pair) for name, pair in document["bricks"].items()}
    return PreparedSuite(document["suite"], document["manifest_sha256"], bricks, document["refused"])


def _keep(folder: RunFolder, prepared: PreparedSuite) -> None:
    document = {
        "suite": prepared.suite,
        "manifest_sha256": prepared.manifest_sha256,
        "bricks": {name: [key.brick, key.context] for name, key in prepared.bricks.items()},
        "refused": dict(prepared.refused),
    }
    try:
        write_atomically(folder.path / _FILE, json.dumps(document) + "\n")
    except OSError as error:
        raise ShareError(f"cannot write {folder.path / _FILE}: {error.strerror}") from error


def _job(alone: Excerpt) -> Job:
    brick = alone.brick
    label = label_of(brick.canonical)
    return Job(
        JobKey(brick.key, alone.context),
        # The suite may hold one brick twice, cold and warm: the label tells them apart.
        f"{label}, {COLD}" if alone.cold else label,
        brick.canonical,
        alone.graph,
        alone.layers,
        (),
        expected_ms(brick.canonical),
        memory_bytes(alone.graph.layers),
        kept=alone.kept,
        cold=alone.cold,
    )
