"""The truth: the whole model with random weights, timed in the engine in the rounds of its carriers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.language.decoder import Decoder, Step, decoder
from dlbricks_tui.language.engine import ENGINE, EngineRun, GenaiEngine, Waiting
from dlbricks_tui.language.errors import LanguageError
from dlbricks_tui.language.library import NamedModel
from dlbricks_tui.language.orders import LanguageVariant
from dlbricks_tui.language.stored import PROTOCOL
from dlbricks_tui.language.whole_model import whole_model_files
from dlbricks_tui.measure.noise import HostTrack, counting
from dlbricks_tui.measure.stopping import Adaptive, samples_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.index import SHARED_COLUMN
from dlbricks_tui.store.records import EndToEnd, Record, Runtime, System, utc_now
from dlbricks_tui.store.selections import OLDEST_FIRST

# Of the tokens of an answer at most so many are generated: later ones take about as long.
MOST_STEPS = 32
# Runs of the engine: at least, at most, and for about so long if the fewest take less.
_FEWEST, _MOST, _MOST_SECONDS = 3, 12, 90.0
# The places of weights in memory change the time of a step by several percent: they are loaded anew after so many runs.
_RUNS_PER_LOAD = 3
# Besides its file, a model takes memory for weights that the runtime packs anew, and a share of the host stays free.
_TIMES_FILE, _MOST_MEMORY = 1.3, 0.9
_FOLDERS = "whole-model-"


@dataclass(frozen=True, slots=True)
class EngineResults:
    """The time of the engine for a prompt, and for each token behind it."""

    engine: str
    prefill_ms: float
    step_ms: float
    when: str

    @property
    def tokens_per_second(self) -> float:
        return 1000.0 / self.step_ms


@dataclass(frozen=True, slots=True)
class EngineQuestion:
    """A model, a prompt and the number of tokens to generate, as the engine is asked."""

    model: NamedModel
    variant: LanguageVariant
    prompt: int
    generate: int

    @property
    def longest(self) -> int:
        """The tokens of prompt and answer."""
        return self.prompt + self.generate

    @property
    def keys(self) -> tuple[str, str]:
        """The keys of prefill and decode in the store."""
        last = self.prompt + max(1, self.generate - 1) - 1
        first, *others = map(self._decoder, (Step.prefill(self.prompt), Step.decode(self.prompt), Step.decode(last)))
        return _key([first]), _key(others)

    def _decoder(self, step: Step) -> Decoder:
        return decoder(self.model.architecture, self.variant.precision, step, self.variant.runtime.traits)


def _key(steps: Sequence[Decoder]) -> str:
    """Return a key like that of a model: equal blocks count as often as the model has them."""
    parts = [(whole_model(it.graph).key, it.counts) for it in steps]
    return sha256(repr(parts).encode()).hexdigest()[: len(parts[0][0])]


def engine_results(store: ResultsDatabase, system: str, asked: EngineQuestion) -> EngineResults | None:
    """Return the newest results of the engine; None if it was not asked that on this system."""
    found = store.select(equal(system=system, protocol=PROTOCOL, good=True, brick=""), order=OLDEST_FIRST)
    if not len(found):
        return None
    identity = asked.variant.runtime.identity
    newest = {it.model: it for it in found if it.runtime.partition(" ")[2] == identity}
    prefill, decode = (newest.get(key) for key in asked.keys)
    if prefill is None or decode is None:
        return None
    return EngineResults(_engine_of(decode), prefill.trimmed_mean_ms, decode.trimmed_mean_ms, decode.when)


def _engine_of(result: Summary) -> str:
    return f"{ENGINE} {result.runtime.partition(' ')[0].removeprefix(ENGINE).lstrip('-')}"


class WholeModelRuns:
    """The whole model in the engine, beside its carriers."""

    def __init__(self, asked: EngineQuestion, engine: GenaiEngine) -> None:
        self._asked = asked
        self._engine = engine
        self._runs: list[EngineRun] = []
        self._moments: list[int] = []
        # The part of all runs that may be over by now: those of all groups of carriers see the engine.
        self.part = 1.0
        # Why the engine has ended early.
        self.failure: LanguageError | None = None
        # What runs first is slower.
        engine.run(1, 2)

    @property
    def wants_more(self) -> bool:
        """True if another run would tell more."""
        if self.failure is not None:
            return False
        seconds = sum(it.prefill_ms + sum(it.step_ms) for it in self._runs) / 1000
        most, most_seconds = max(_FEWEST, self.part * _MOST), self.part * _MOST_SECONDS
        return len(self._runs) < _FEWEST or (len(self._runs) < most and seconds < most_seconds)

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
        self._runs.append(run)
        self._moments.append(moment)
        return run.processor_seconds

    def records(self, track: HostTrack, system: System, run: str) -> list[Record]:
        """Run as often as it still needs, and return the results for the store; none after a failure."""
        while len(self._runs) < _FEWEST and self.failure is None:
            self.sample(track.now)
        if self.failure is not None:
            return []
        later = max(1, self._asked.generate - 1)
        # Each step is a sample: a run of seconds may be partly on a slow host, as carriers are in some rounds.
        steps = [(ms, moment) for it, moment in zip(self._runs, self._moments, strict=True) for ms in _steps_ms(it)]
        taken = {
            "prefill": [(it.prefill_ms, at) for it, at in zip(self._runs, self._moments, strict=True)],
            "decode": steps,
        }
        runtime = self._runtime
        peak = max(it.peak_bytes for it in self._runs)
        records: list[Record] = [system, runtime]
        for (phase, samples), key in zip(taken.items(), self._asked.keys, strict=True):
            samples_ms = [ms for ms, _ in samples]
            counted = counting(samples_ms, [moment for _, moment in samples], track)
            found = samples_of(counted.of(samples_ms), Adaptive())
            tokens = self._asked.prompt if phase == "prefill" else later
            records.append(
                EndToEnd(
                    model=key,
                    name=f"{self._asked.model.name} {phase} {tokens}",
                    system=system.id,
                    runtime=runtime.id,
                    protocol=PROTOCOL,
                    level=Level.FUSED,
                    run=run,
                    when=utc_now(),
                    statistics=found.statistics,
                    samples_ms=found.samples_ms,
                    noise=(*counted.facts(len(samples_ms)), (SHARED_COLUMN, counted.doubt), ("peak_bytes", peak)),
                )
            )
        return records

    @property
    def _runtime(self) -> Runtime:
        """The engine, on top of the runtime whose kernels it calls."""
        runtime = self._asked.variant.runtime
        return Runtime(
            id=f"{ENGINE}-{self._engine.version} {runtime.identity}",
            name=ENGINE,
            framework=ENGINE,
            version=self._engine.version,
            python=runtime.python_version,
            threads=self._asked.variant.threads,
            settings=tuple(sorted(runtime.settings.environment)),
        )


def _steps_ms(run: EngineRun) -> Sequence[float]:
    """Return the steps of decoding without the first one, which is often slower, right behind the prompt."""
    return run.step_ms[1:] or run.step_ms or (run.prefill_ms,)


@contextmanager
def open_whole_model(
    asked: EngineQuestion,
    cache: Path,
    log: Path,
    waiting: Waiting,
    check: Callable[[], None],
    tell: Callable[[int], None],
    memory_bytes: int,
) -> Iterator[WholeModelRuns]:
    """Write the whole model to a folder of its own, and load it; leaving the block removes both.

    `tell` takes the size of its files.
    """
    runtime = asked.variant.runtime
    if runtime.framework != "onnxruntime":
        raise LanguageError(f"whole models run in {ENGINE}, which needs ONNX Runtime, and not {runtime.traits.title}")
    files = whole_model_files(asked.model.architecture, asked.variant.precision, asked.longest, runtime.traits)
    _refuse_small_memory(files.size_bytes, asked, memory_bytes)
    cache.mkdir(parents=True, exist_ok=True)
    # Only one process of a host measures at a time: other folders were left by processes that were killed.
    for left in cache.glob(f"{_FOLDERS}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_FOLDERS, dir=cache) as name:
        tell(files.size_bytes)
        files.write(Path(name), check)
        with GenaiEngine(runtime, Path(name), log, waiting) as engine:
            yield WholeModelRuns(asked, engine)


def _refuse_small_memory(size_bytes: int, asked: EngineQuestion, memory_bytes: int) -> None:
    model = asked.model.architecture
    cache = 8 * model.blocks * model.kv_heads * model.head_size * asked.longest
    available = HostFiles().fields("proc/meminfo").get("MemAvailable", "").split()
    free = 1024 * int(available[0]) if available and available[0].isdecimal() else memory_bytes
    needed = _TIMES_FILE * size_bytes + cache
    if needed > _MOST_MEMORY * free:
        raise LanguageError(
            f"the whole model needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free: "
            "it is estimated from its bricks only"
        )
