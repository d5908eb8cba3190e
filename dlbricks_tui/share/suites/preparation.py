"""Prepare a run of a suite: read its bricks, and keep which brick and context each id is on this host."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.bricks.contexts import COLD
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.programs import Excerpt
from dlbricks_tui.jobs.codec import decoded, encoded
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey, cut_model, expected_ms, memory_bytes
from dlbricks_tui.measure.plan import keys_of
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.regular_files import read_json
from dlbricks_tui.runs.events import ModelLeftOut, ModelLoading
from dlbricks_tui.runs.planning import Workload
from dlbricks_tui.runs.work import RunSession
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.errors import BrokenBrickError, ShareError
from dlbricks_tui.share.suites.onnx_excerpts import OnnxReader
from dlbricks_tui.share.suites.packing import joined_excerpts
from dlbricks_tui.share.suites.suite_files import Suite, SuiteBrick, open_suite
from dlbricks_tui.share.suites.unpacking import Unpacker
from dlbricks_tui.store.index import label_of

Parsed = TypeVar("Parsed")

_FILE = "suite-bricks.json"
# The number of progress events while bricks are read.
_PROGRESS_EVENTS = 100


@dataclass(frozen=True, slots=True)
class PreparedPart:
    """The bricks of a suite as one runtime has them: by id, or by key those of excerpts; and what cannot be read."""

    # Each with its key and its context.
    bricks: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreparedSuite:
    """The parts of a suite by the identities of their runtimes."""

    suite: str
    manifest_sha256: str
    parts: Mapping[str, PreparedPart]


def read_suite(path: Path, session: RunSession) -> Workload:
    """Return the bricks of a suite that a runtime can run; report and leave out those that cannot be read."""
    runtime, file = session.request.runtime, session.folder.path / _FILE
    form = runtime.traits.format
    with open_suite(path) as suite:
        bricks = [brick for brick in suite.manifest.bricks if brick.format is form]
        reading = _Reading(suite, bricks, session.tell)
        if form is Format.ONNX:
            models = _networks(reading, session)
            workload = Workload(models=models)
            keys = {key.brick: key for key in keys_of(models, method=session.request.method) if key.brick}
        else:
            jobs = _jobs(reading, session)
            workload = Workload(bricks=tuple(jobs.values()))
            keys = {name: job.key for name, job in jobs.items()}
        # Beside the parts that the run has read before.
        earlier = read_prepared(session.folder)
        part = PreparedPart({name: (key.brick, key.context) for name, key in keys.items()}, reading.refused)
        parts = {**({} if earlier is None else earlier.parts), runtime.identity: part}
        try:
            write_atomically(file, encoded(PreparedSuite(suite.manifest.suite, suite.sha256, parts)) + "\n")
        except OSError as error:
            raise ShareError(f"cannot write {file}: {error.strerror}; free some space") from error
    return workload


def read_prepared(folder: RunFolder) -> PreparedSuite | None:
    """Return the bricks of a suite that a run has read, None if it ended before."""
    try:
        document = read_json(folder.path / _FILE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ShareError(f"cannot read {folder.path / _FILE}: {error.strerror}") from error
    return decoded(PreparedSuite, document)


class _Reading:
    """The bricks of a suite one after another, with their progress."""

    def __init__(self, suite: Suite, bricks: Sequence[SuiteBrick], tell: Callable[[Event], None]) -> None:
        self._suite = suite
        self._bricks = bricks
        self._tell = tell
        self.refused: dict[str, str] = {}

    def read(self, parse: Callable[[SuiteBrick, bytes], Parsed]) -> Iterator[tuple[SuiteBrick, Parsed]]:
        """Yield each brick with what its file is; leave out those that cannot be read, and tell why."""
        for number, brick in enumerate(self._bricks, start=1):
            if (number - 1) % max(1, len(self._bricks) // _PROGRESS_EVENTS) == 0:
                self._tell(ModelLoading(model=f"brick {brick.id}", number=number, of=len(self._bricks)))
            try:
                found = parse(brick, self._suite.network(brick))
            except BrokenBrickError as error:
                self.refused[brick.id] = str(error)
                self._tell(ModelLeftOut(model=f"brick {brick.id}", reason=f"brick {brick.id} {error}"))
            else:
                yield brick, found


def _jobs(reading: _Reading, session: RunSession) -> Mapping[str, Job]:
    """Return the bricks that are timed alone, by id."""
    with _framework(session, session.request.runtime) as framework:
        unpacker = Unpacker(framework, session.request.level, session.memory_limit_bytes)
        read = reading.read(lambda brick, content: unpacker.unpacked(content, brick.layers, brick.cold))
        return {brick.id: _job(alone) for brick, alone in read}


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


def _networks(reading: _Reading, session: RunSession) -> tuple[CutModel, ...]:
    """Return networks of excerpts, in which bricks are timed."""
    runtime, limit = session.request.runtime, session.memory_limit_bytes
    # Excerpts of quantised models are quantised in their files.
    if runtime.settings.precision is Precision.INT8:
        runtime = replace(runtime, settings=replace(runtime.settings, precision=Precision.F32))
    found: dict[bool, list[LayerGraph]] = {False: [], True: []}
    cache = session.place.data.cache
    with (
        _framework(session, runtime) as framework,
        TemporaryDirectory(prefix="excerpts-", dir=session.folder.path) as drafts,
    ):
        loader = Loader(cache, framework, framework)
        reader = OnnxReader(loader, session.request.level, Path(drafts), limit)
        for brick, graph in reading.read(lambda _, content: reader.read(content)):
            found[brick.cold].append(graph)
        joined = joined_excerpts(found[False], found[True])
        return tuple(replace(cut_model(decompose(it.graph, cache=loader.cache)), edges=it.edges) for it in joined)


def _framework(session: RunSession, runtime: Runtime) -> WorkerFramework:
    limited = runtime.limited_to(session.memory_limit_bytes)
    return WorkerFramework(limited, session.folder.worker_log, session.place.worker_program)
