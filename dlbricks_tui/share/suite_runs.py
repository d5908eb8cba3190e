"""Runs of suites: their bricks are read, their results are written to a file for the owner; and the process of any run.

A run keeps which brick and context each id is on this host.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.files import read_json, write_atomically, write_named
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue, host_queue
from dlbricks_tui.jobs.codec import decoded, encoded
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.measure.jobs import JobKey, cut_model
from dlbricks_tui.measure.known import Conditions, known_in, results_of_newest_run
from dlbricks_tui.measure.plan import keys_of
from dlbricks_tui.measure.results import conditions_of, runtime_record
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.events import ModelLeftOut, ModelLoading
from dlbricks_tui.runs.planning import Models
from dlbricks_tui.runs.request import RunRequest, read_request
from dlbricks_tui.runs.run import RunOutcome, execute
from dlbricks_tui.runs.work import EarlyWorkers, RunSession, Workplace
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.errors import BrokenBrickError, ShareError
from dlbricks_tui.share.mxnet_excerpts import MXNetReader
from dlbricks_tui.share.onnx_excerpts import OnnxReader
from dlbricks_tui.share.packing import joined_excerpts
from dlbricks_tui.share.results_file import LONGEST_TEXT, PartResults, SuiteResults, rendered
from dlbricks_tui.share.suite_files import Suite, open_suite
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement, RuntimeRecord

_FILE = "suite-bricks.json"
# The number of progress events while bricks are read.
_PROGRESS_EVENTS = 100


@dataclass(frozen=True, slots=True)
class PreparedPart:
    """The bricks of a suite as one runtime has them, and the networks, by id, that cannot be read."""

    # By key, each with its key and its context.
    bricks: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreparedSuite:
    """The parts of a suite by the identities of their runtimes."""

    suite: str
    manifest_sha256: str
    parts: Mapping[str, PreparedPart]


def read_suite(path: Path, session: RunSession) -> Models:
    """Return the bricks of a suite that a runtime can run; report and leave out those that cannot be read."""
    file = session.folder.path / _FILE
    suite = open_suite(path)
    models, refused = _networks(suite, session)
    keys = {key.brick: key for key in keys_of(models, method=session.request.method) if key.brick}
    # Beside the parts that the run has read before.
    earlier = read_prepared(session.folder)
    part = PreparedPart({name: (key.brick, key.context) for name, key in keys.items()}, refused)
    parts = {**({} if earlier is None else earlier.parts), session.request.runtime.identity: part}
    try:
        write_atomically(file, encoded(PreparedSuite(suite.manifest.suite, suite.sha256, parts)) + "\n")
    except OSError as error:
        raise ShareError(f"cannot write {file}: {error.strerror}; free some space") from error
    return models


def read_prepared(folder: RunFolder) -> PreparedSuite | None:
    """Return the bricks of a suite that a run has read, None if it ended before."""
    try:
        document = read_json(folder.path / _FILE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ShareError(f"cannot read {folder.path / _FILE}: {error.strerror}") from error
    return decoded(PreparedSuite, document)


def _networks(suite: Suite, session: RunSession) -> tuple[Models, Mapping[str, str]]:
    """Return networks of excerpts, in which bricks are timed, and why others cannot be read, by id."""
    runtime, limit, level = session.request.runtime, session.memory_limit_bytes, session.request.level
    form, cache = runtime.traits.format, session.place.data.cache
    # Excerpts of quantised models are quantised in their files.
    if runtime.settings.precision is Precision.INT8:
        runtime = replace(runtime, settings=replace(runtime.settings, precision=Precision.F32))
    bricks = [brick for brick in suite.manifest.bricks if brick.format is form]
    found: dict[bool, list[LayerGraph]] = {False: [], True: []}
    refused: dict[str, str] = {}
    worker = WorkerFramework(runtime.limited_to(limit), session.folder.worker_log, session.place.worker_program)
    with worker as framework, TemporaryDirectory(prefix="excerpts-", dir=session.folder.path) as drafts:
        loader = Loader(cache, framework, framework)
        of_onnx, of_mxnet = OnnxReader(loader, level, Path(drafts), limit), MXNetReader(framework, level, limit)
        reader = of_onnx if form is Format.ONNX else of_mxnet
        for number, brick in enumerate(bricks, start=1):
            name = f"brick {brick.id}"
            if (number - 1) % max(1, len(bricks) // _PROGRESS_EVENTS) == 0:
                session.tell(ModelLoading(model=name, number=number, of=len(bricks)))
            try:
                found[brick.cold].append(reader.read(suite.network(brick)))
            except BrokenBrickError as error:
                refused[brick.id] = str(error)
                session.tell(ModelLeftOut(model=name, reason=f"{name} {error}"))
        joined = joined_excerpts(found[False], found[True])
        cut = [replace(cut_model(decompose(it.graph, cache=loader.cache)), edges=it.edges) for it in joined]
        return tuple(cut), refused


def execute_any(
    folder: RunFolder,
    request: RunRequest,
    place: Workplace,
    queue: HostQueue,
    listener: Callable[[Event], None] | None = None,
    *,
    detached: bool = False,
    early: EarlyWorkers | None = None,
) -> RunOutcome:
    """Execute a run in this process and return its outcome; a suite's file has the results up to then."""
    if request.suite is None:
        return execute(folder, request, place, queue, listener, detached=detached, early=early)
    read = partial(read_suite, request.suite.folder)
    write = partial(write_results, request.suite.results, folder, request, place.data)
    return execute(
        folder, request, place, queue, listener, detached=detached, with_estimates=False, read=read, at_end=write
    )


def main(folder: str, data: str, early: EarlyWorkers | None = None) -> None:
    """Execute a detached run; the entry point of its process, which may have started workers before."""
    run = RunFolder(Path(folder))
    place = Workplace(DataFolder(Path(data)))
    try:
        execute_any(run, read_request(run.request_file), place, host_queue(), detached=True, early=early)
    except UserError as error:
        sys.exit(str(error))


def write_results(path: Path, folder: RunFolder, request: RunRequest, data: DataFolder) -> None:
    """Write all stored results of a suite that was run, unless the run ended before it was read."""
    prepared = read_prepared(folder)
    if prepared is None:
        return
    system = fingerprint()
    parts: list[PartResults] = []
    with ResultsDatabase(data.store) as store:
        for part in request.parts:
            found = prepared.parts.get(part.runtime.identity)
            if found is not None:
                conditions = conditions_of(system.id, part.runtime, part.method)
                parts.append(_results(store, found, runtime_record(part.runtime, system), conditions))
    results = SuiteResults(prepared.suite, prepared.manifest_sha256, system, tuple(parts))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_named(path, lambda file: file.write(rendered(results).encode()))
    except OSError as error:
        raise ShareError(
            f"cannot write {path}: {error.strerror}; the results are stored: run the same command with another -o"
        ) from error


def _results(
    store: ResultsDatabase, prepared: PreparedPart, runtime: RuntimeRecord, conditions: Conditions
) -> PartResults:
    targets = {name: JobKey(*pair) for name, pair in prepared.bricks.items()}
    failed = known_in(store, conditions, targets.values()).failed
    measured: dict[str, tuple[Measurement, ...]] = {}
    reasons = dict(prepared.refused)
    for name, target in targets.items():
        found = results_of_newest_run(store, conditions, target)
        if found:
            measured[name] = tuple(
                replace(each, brick=name, context="") for each in found if isinstance(each, Measurement)
            )
        elif target in failed:
            reasons[name] = failed[target]
    return PartResults(runtime, measured, {name: reason[:LONGEST_TEXT] for name, reason in reasons.items()})
