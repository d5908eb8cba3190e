"""The truth: the whole model with random weights, timed in the engine in the rounds of its carriers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.load import wait_until_idle
from dlbricks_tui.host.processor import HostFiles
from dlbricks_tui.language.architecture import LanguageError
from dlbricks_tui.language.composing import memory_need, protocol_of
from dlbricks_tui.language.orders import LanguageQuestion, MeasuredEngine
from dlbricks_tui.language.whole_model import whole_model_files
from dlbricks_tui.measure.noise import HostTrack, counting
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.measure.stopping import Adaptive, samples_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerDiedError, WorkerError, WorkerRefusedError
from dlbricks_tui.runtime.process import INSIDE, Worker
from dlbricks_tui.runtime.protocol import Answer, Generate, Generated, OpenEngine, Reason, Request
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.index import SHARED_COLUMN
from dlbricks_tui.store.records import EndToEnd, Record, System, utc_now
from dlbricks_tui.store.selections import OLDEST_FIRST, equal

# The engine that runs whole models on a runtime, by framework.
_ENGINES = {"onnxruntime": "onnxruntime-genai", "openvino": "openvino"}
# Limits, which only an engine that hangs exceeds: of a request, and added to it per gigabyte of weights.
_SECONDS, _SECONDS_TO_LOAD, _SECONDS_PER_TOKEN, _SECONDS_PER_PROMPT_TOKEN = 120.0, 120.0, 10.0, 2.0
_NS_PER_MS = 1e6
_NO_ROOM = "the whole model does not fit into the memory that is free: stop other programs, or choose a smaller one"
# Of the tokens of an answer at most so many are generated: later ones take about as long.
MOST_STEPS = 32
# Runs of the engine: at least, at most, and for about so long if the fewest take less.
_FEWEST, _MOST, _MOST_SECONDS = 3, 12, 90.0
# The places of weights in memory change the time of a step by several percent: they are loaded anew after so many runs.
_RUNS_PER_LOAD = 3
# A share of the free memory stays free.
_MOST_MEMORY = 0.9
LANGUAGE_LOG = "language.log"
_FOLDERS = "whole-model-"


Waiting = Callable[[], AbstractContextManager[None]]


def engine_of(runtime: Runtime) -> str:
    """Return the name of the engine that runs whole models on a runtime."""
    return _ENGINES[runtime.framework]


def _keys(asked: LanguageQuestion) -> tuple[str, str]:
    """Return the keys of prefill and decode in the store; equal blocks count as often as the model has them."""
    first, *later = map(asked.decoder, asked.steps)
    parts = [[(whole_model(it.graph).key, it.counts) for it in of] for of in ([first], [later[0], later[-1]])]
    prefill, decode = (sha256(repr(it).encode()).hexdigest()[: len(it[0][0])] for it in parts)
    return prefill, decode


def engine_results(store: ResultsDatabase, system: str, asked: LanguageQuestion) -> MeasuredEngine | None:
    """Return the newest results of the engine; None if it was not asked that on this system."""
    identity, engine = asked.runtime.identity, engine_of(asked.runtime)
    found = store.select(equal(system=system, protocol=protocol_of(identity), good=True, brick=""), order=OLDEST_FIRST)
    if not len(found):
        return None
    newest = {it.model: it for it in found if it.runtime.partition(" ")[2] == identity}
    prefill, decode = (newest.get(key) for key in _keys(asked))
    if prefill is None or decode is None:
        return None
    engine = f"{engine} {decode.runtime.partition(' ')[0].removeprefix(f'{engine}-')}"
    rate, when = 1000.0 / decode.trimmed_mean_ms, decode.when
    return MeasuredEngine(engine=engine, prefill_ms=prefill.trimmed_mean_ms, decode_tokens_per_second=rate, when=when)


class WholeModelEngine(Worker):
    """The engine with the whole model of a folder."""

    def __init__(
        self, runtime: Runtime, folder: Path, log: Path, waiting: Waiting = nullcontext, program: Path = INSIDE
    ) -> None:
        super().__init__(runtime, log, program)
        self.name = engine_of(runtime)
        self._opening = OpenEngine(str(folder.resolve()), runtime.settings.threads or 0)
        self._gigabytes = sum(it.stat().st_size for it in folder.iterdir()) / 1e9
        self._waiting = waiting
        self.version = ""

    def __enter__(self) -> WholeModelEngine:
        with _told(self.name):
            super().__enter__()
        try:
            self.load()
        except BaseException:
            self.end()
            raise
        return self

    def load(self) -> None:
        """Load the model, in place of what was loaded before: its weights get other places in memory."""
        self.version = self._asked(self._opening, _SECONDS_TO_LOAD).version

    def run(self, prompt: int, generate: int) -> Generated:
        """Read a prompt of so many tokens, and generate so many, at least one."""
        seconds = _SECONDS_PER_PROMPT_TOKEN * prompt + _SECONDS_PER_TOKEN * generate
        found = self._asked(Generate(prompt, generate), seconds)
        if self.pid is not None:
            # Its threads go on spinning for a while.
            wait_until_idle(self.pid)
        return found

    def _asked(self, request: Request[Answer], seconds_per_gigabyte: float) -> Answer:
        with _told(self.name), self._waiting():
            return self.ask(request, _SECONDS + seconds_per_gigabyte * self._gigabytes)


@contextmanager
def _told(engine: str) -> Iterator[None]:
    """Turn errors of the process into those of language models."""
    try:
        yield
    except FrameworkMissingError as error:
        raise LanguageError(
            f"timing whole models needs {engine} ({error.reason or error}); install it: pip install 'dlbricks-tui[llm]'"
        ) from error
    except WorkerError as error:
        # The kernel kills the process that takes too much.
        is_refused = isinstance(error, WorkerRefusedError) and error.reason is Reason.TOO_LARGE
        lacks_room = is_refused or (isinstance(error, WorkerDiedError) and "SIGKILL" in str(error))
        raise LanguageError(_NO_ROOM if lacks_room else f"{engine}: {error}") from error


class WholeModelRuns:
    """The whole model in the engine, beside its carriers."""

    def __init__(self, asked: LanguageQuestion, engine: WholeModelEngine) -> None:
        self._asked = asked
        self._engine = engine
        # Each with its moment.
        self._runs: list[tuple[Generated, int]] = []
        # The part of all runs that may be over by now: those of all groups of carriers see the engine.
        self.part = 1.0
        # Why the engine has ended early.
        self.failure: LanguageError | None = None
        # What runs first is slower.
        engine.run(1, 2)

    @property
    def wants_more(self) -> bool:
        count, seconds = len(self._runs), sum(it.first_ns + sum(it.later_ns) for it, _ in self._runs) / 1e9
        has_time = count < self.part * _MOST and seconds < self.part * _MOST_SECONDS
        return self.failure is None and (count < _FEWEST or has_time)

    def sample(self, moment: int) -> float:
        """Read the prompt and generate once; return the processor time of the engine, in seconds."""
        try:
            if self._runs and len(self._runs) % _RUNS_PER_LOAD == 0:
                self._engine.load()
                self._engine.run(1, 2)
            # The first token comes with the prompt.
            run = self._engine.run(self._asked.prompt, min(MOST_STEPS, self._asked.generate - 1) + 1)
        except LanguageError as error:
            self.failure = error
            return 0.0
        self._runs.append((run, moment))
        return run.processor_ns / 1e9

    def records(self, track: HostTrack, system: System, run: str) -> list[Record]:
        """Run as often as it still needs, and return the results for the store; none after a failure."""
        while len(self._runs) < _FEWEST and self.failure is None:
            self.sample(track.now)
        if self.failure is not None:
            return []
        asked, runtime, version = self._asked, self._asked.runtime, self._engine.version
        # On top of the runtime whose kernels it calls.
        name = engine_of(runtime)
        identity, kept = f"{name}-{version} {runtime.identity}", runtime_record(runtime, system)
        records: list[Record] = [system, replace(kept, id=identity, name=name, framework=name, version=version)]
        # Each step is a sample: a run of seconds may be partly on a slow host, as carriers are in some rounds.
        # The first one is often slower, right behind the prompt.
        prefill = [(it.first_ns, moment) for it, moment in self._runs]
        steps = [(it.later_ns[1:] or it.later_ns or (it.first_ns,), moment) for it, moment in self._runs]
        decode = [(step, moment) for of_run, moment in steps for step in of_run]
        peak = max(it.peak_bytes for it, _ in self._runs)
        phases = {f"prefill {asked.prompt}": prefill, f"decode {max(1, asked.generate - 1)}": decode}
        for (words, taken), key in zip(phases.items(), _keys(asked), strict=True):
            samples_ms, moments = [ns / _NS_PER_MS for ns, _ in taken], [moment for _, moment in taken]
            counted = counting(samples_ms, moments, track)
            found = samples_of(counted.of(samples_ms), Adaptive())
            records.append(
                EndToEnd(
                    model=key,
                    name=f"{asked.model.name} {words}",
                    system=system.id,
                    runtime=identity,
                    protocol=protocol_of(runtime.identity),
                    level=Level.FUSED,
                    run=run,
                    when=utc_now(),
                    statistics=found.statistics,
                    samples_ms=found.samples_ms,
                    noise=(*counted.facts(len(samples_ms)), (SHARED_COLUMN, counted.doubt), ("peak_bytes", peak)),
                )
            )
        return records


@contextmanager
def open_whole_model(
    asked: LanguageQuestion,
    data: DataFolder,
    waiting: Waiting,
    check: Callable[[], None],
    tell: Callable[[int], None],
    memory_bytes: int,
) -> Iterator[WholeModelRuns]:
    """Write the whole model to a folder of its own, and load it; leaving the block removes both.

    `tell` takes the size of its files.
    """
    runtime, sizes, precision = asked.runtime, asked.sizes, asked.precision
    longest = asked.prompt + asked.generate
    needed = memory_need(asked, asked.decoder(asked.steps[0])).total
    available = HostFiles().fields("proc/meminfo").get("MemAvailable", "").split()
    free = 1024 * int(available[0]) if available else memory_bytes
    if needed > _MOST_MEMORY * free:
        raise LanguageError(
            f"the whole model needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free: "
            "it is estimated from its bricks only"
        )
    files = whole_model_files(sizes, precision, longest, runtime.traits)
    data.cache.mkdir(parents=True, exist_ok=True)
    # Only one process of a host measures at a time: other folders were left by processes that were killed.
    for left in data.cache.glob(f"{_FOLDERS}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_FOLDERS, dir=data.cache) as name:
        tell(files.size_bytes)
        files.write(Path(name), check)
        with WholeModelEngine(runtime, Path(name), data.log / LANGUAGE_LOG, waiting) as engine:
            yield WholeModelRuns(asked, engine)
