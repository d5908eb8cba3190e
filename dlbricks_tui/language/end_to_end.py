"""The whole language model with random weights, timed in its engine in the rounds of its carriers.

It is a folder that onnxruntime-genai opens. Its graph is that of the carriers, with all blocks, the whole table, and
sizes that are open until it runs.

Users may ask the engine, too, which makes at most a batch of answers together.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.noise import wait_until_idle
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.language.architecture import Architecture, LanguageError, WeightPrecision
from dlbricks_tui.language.composing import PROTOCOL, memory_need
from dlbricks_tui.language.decoder import Decoder, Step, decoder
from dlbricks_tui.language.orders import Drive, DrivenLoad, LanguageQuestion, MeasuredEngine
from dlbricks_tui.measure.noise import HostTrack, counting
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns, Samples, samples_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.networks import whole_network
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerDiedError, WorkerError, WorkerRefusedError
from dlbricks_tui.runtime.process import INSIDE, Worker
from dlbricks_tui.runtime.protocol import Answer, Generate, Generated, OpenEngine, Reason, Request, Serve, ServedAnswer
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.scenarios.tokens import Pauses, TokenLoad, TokenSamples, TokenScenario, TokenServing
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.index import SHARED_COLUMN
from dlbricks_tui.store.records import EndToEnd, Facts, Record, System, utc_now
from dlbricks_tui.store.selections import OLDEST_FIRST, equal

if TYPE_CHECKING:
    from onnx import ModelProto

    from dlbricks_tui.runtime.traits import Traits

# The engine that runs whole models on a runtime, by framework.
_RATE = "tokens_per_second"
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
WHOLE_MODELS = "whole-model-"

Waiting = Callable[[], AbstractContextManager[None]]


def engine_of(runtime: Runtime) -> str:
    """Return the name of the engine that runs whole models on a runtime."""
    return _ENGINES[runtime.framework]


def _records(
    asked: LanguageQuestion,
    engine: WholeModelEngine,
    system: System,
    run: str,
    found: Iterable[tuple[str, str, Samples, Facts]],
) -> list[Record]:
    """Return results of an engine for the store: of each its key, what was timed, its samples, and facts about them.

    The engine is recorded as one on top of the runtime whose kernels it calls.
    """
    name, version, runtime = engine.name, engine.version, asked.runtime
    identity, kept = f"{name}-{version} {runtime.identity}", runtime_record(runtime, system)
    records: list[Record] = [system, replace(kept, id=identity, name=name, framework=name, version=version)]
    for key, words, samples, noise in found:
        records.append(
            EndToEnd(
                model=key,
                name=f"{asked.model.name} {words}",
                system=system.id,
                runtime=identity,
                protocol=PROTOCOL,
                level=Level.FUSED,
                run=run,
                when=utc_now(),
                statistics=samples.statistics,
                samples_ms=samples.samples_ms,
                noise=noise,
            )
        )
    return records


def engine_title(identity: str) -> str:
    """Return the name and version of an engine, by the identity of its record."""
    return " ".join(identity.partition(" ")[0].rsplit("-", 1))


def _keys(asked: LanguageQuestion) -> tuple[str, str]:
    """Return the keys of prefill and decode in the store; equal blocks count as often as the model has them."""
    first, *later = map(asked.decoder, asked.steps)
    parts = [[(whole_model(it.graph).key, it.counts) for it in of] for of in ([first], [later[0], later[-1]])]
    prefill, decode = (sha256(repr(it).encode()).hexdigest()[: len(it[0][0])] for it in parts)
    return prefill, decode


def engine_results(store: ResultsDatabase, system: str, asked: LanguageQuestion) -> MeasuredEngine | None:
    """Return the newest results of the engine; None if it was not asked that on this system."""
    identity = asked.runtime.identity
    found = store.select(equal(system=system, protocol=PROTOCOL, good=True, brick=""), order=OLDEST_FIRST)
    if not len(found):
        return None
    newest = {it.model: it for it in found if it.runtime.partition(" ")[2] == identity}
    prefill, decode = (newest.get(key) for key in _keys(asked))
    if prefill is None or decode is None:
        return None
    engine = engine_title(decode.runtime)
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
        found = self._asked(self._opening, _SECONDS_TO_LOAD)
        self.version, self.name = found.version, found.name or self.name

    def run(self, prompt: int, generate: int) -> Generated:
        """Read a prompt of so many tokens, and generate so many, at least one."""
        seconds = _SECONDS_PER_PROMPT_TOKEN * prompt + _SECONDS_PER_TOKEN * generate
        found = self._asked(Generate(prompt, generate), seconds)
        if self.pid is not None:
            # Its threads go on spinning for a while.
            wait_until_idle(self.pid)
        return found

    def serve(self, prompt: int, generate: int, batch: int, pauses: Pauses) -> Sequence[ServedAnswer]:
        """Serve users, each with pauses before all requests, by batches of so many answers at most."""
        paused, count = max(map(sum, pauses)), sum(map(len, pauses))
        seconds = count * (_SECONDS_PER_PROMPT_TOKEN * prompt + _SECONDS_PER_TOKEN * generate)
        return self._asked(Serve(prompt, generate, batch, pauses), seconds, paused).answers

    def _asked(self, request: Request[Answer], seconds_per_gigabyte: float, paused_seconds: float = 0.0) -> Answer:
        with _told(self.name), self._waiting():
            return self.ask(request, _SECONDS + paused_seconds + seconds_per_gigabyte * self._gigabytes)


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
            run = self._engine.run(self._asked.prompt, min(MOST_STEPS, max(1, self._asked.generate - 1)) + 1)
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
        return _records(self._asked, self._engine, system, run, self._results(track))

    def _results(self, track: HostTrack) -> Iterator[tuple[str, str, Samples, Facts]]:
        # Each step is a sample: a run of seconds may be partly on a slow host, as carriers are in some rounds.
        # The first one is often slower, right behind the prompt.
        prefill = [(it.first_ns, moment) for it, moment in self._runs]
        steps = [(it.later_ns[1:] or it.later_ns, moment) for it, moment in self._runs]
        decode = [(step, moment) for of_run, moment in steps for step in of_run]
        peak = max(it.peak_bytes for it, _ in self._runs)
        asked = self._asked
        phases = {f"prefill {asked.prompt}": prefill, f"decode {max(1, asked.generate - 1)}": decode}
        for (words, taken), key in zip(phases.items(), _keys(asked), strict=True):
            samples_ms, moments = [ns / _NS_PER_MS for ns, _ in taken], [moment for _, moment in taken]
            counted = counting(samples_ms, moments, track)
            facts = (*counted.facts(len(samples_ms)), (SHARED_COLUMN, counted.doubt), ("peak_bytes", peak))
            yield key, words, samples_of(counted.of(samples_ms), Adaptive()), facts


@contextmanager
def folder_for_models(cache: Path) -> Iterator[Path]:
    """Make a folder for large files; leaving the block removes it."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # Only one process of a host measures at a time: other folders were left by processes that were killed.
        for left in cache.glob(f"{WHOLE_MODELS}*"):
            shutil.rmtree(left, ignore_errors=True)
        made = tempfile.TemporaryDirectory(prefix=WHOLE_MODELS, dir=cache)
    except OSError as error:
        cure = "free some of the disk, or name another data folder (--data-dir)"
        raise LanguageError(f"{cache} cannot hold a folder for models: {error.strerror}; {cure}") from error
    with made as name:
        yield Path(name)


def require_memory(
    needed: int, memory_bytes: int, what: str = "the whole model", cure: str = "it is estimated from its parts only"
) -> None:
    """Raise LanguageError if a whole model, or what `what` names, needs more than most of the memory that is free."""
    free = _MOST_MEMORY * (HostFiles().available_memory_bytes or memory_bytes)
    if needed > free:
        raise LanguageError(
            f"{what} needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free for it: {cure}"
        )


def require_room(folder: Path, needed: int) -> None:
    """Raise LanguageError if files of a model do not fit onto the disk of a folder."""
    free = shutil.disk_usage(folder).free
    if needed + _LEFT_FREE > free:
        raise LanguageError(
            f"the whole model needs {needed / 1e9:.1f} GB in {folder}, where {free / 1e9:.1f} GB are "
            "free: free some, or name a data folder on a larger disk (--data-dir)"
        )


@contextmanager
def open_whole_model(
    asked: LanguageQuestion,
    data: DataFolder,
    waiting: Waiting,
    check: Callable[[], None],
    tell: Callable[[int], None],
    memory_bytes: int,
) -> Iterator[WholeModelEngine]:
    """Write the whole model to a folder of its own, and load it; leaving the block removes both.

    `tell` takes the size of its files.
    """
    runtime, sizes, precision = asked.runtime, asked.sizes, asked.precision
    # A step behind the prompt is timed, too.
    longest = asked.prompt + max(2, asked.generate)
    most = max(asked.batches)
    require_memory(memory_need(asked, asked.decoder(asked.steps[0]), most, most).total, memory_bytes)
    files = whole_model_files(sizes, precision, longest, runtime.traits)
    with folder_for_models(data.cache) as folder:
        tell(files.size_bytes)
        files.write(folder, check)
        with WholeModelEngine(runtime, folder, data.log / LANGUAGE_LOG, waiting) as engine:
            yield engine


MODEL_FILE, DATA_FILE, CONFIG_FILE = "model.onnx", "model.onnx.data", "genai_config.json"
# A runtime maps weights into memory where they begin at a page.
_PAGE = 4096
_PAST, _PRESENT = "past_key_values.", "present."
# A prime number, so that no two weights begin at the same place.
_PATTERN_BYTES, _PATTERN_STEP = 1 << 23, 7919
# A disk that is full to the last byte stops other programs.
_LEFT_FREE = 1 << 28
# Weights of products, and scales of weights of 4 or 8 bits, such that values stay near one.
_WEIGHT, _SCALE = 0.02, 0.004


class WeightPlace(NamedTuple):
    """Where a weight lies in the file of data, and the name of the pattern that fills it."""

    begin: int
    end: int
    pattern: str


@dataclass(frozen=True, slots=True)
class WholeModelFiles:
    """A whole model before it is written: the graph, the place of each weight in the file of data, and the config."""

    proto: ModelProto
    # The weights in the order of the file.
    places: tuple[WeightPlace, ...]
    config: Mapping[str, object]

    @property
    def size_bytes(self) -> int:
        return self.places[-1].end

    def write(self, folder: Path, check: Callable[[], None] = lambda: None) -> None:
        """Write the files into an empty folder; `check` is called often, and may raise."""
        require_room(folder, self.size_bytes)
        try:
            with (folder / DATA_FILE).open("wb") as data:
                for number, weight in enumerate(self.places):
                    check()
                    data.write(bytes(weight.begin - data.tell()))
                    for part in _parts(weight, number):
                        data.write(part)
                data.flush()
                # What is written later would disturb what is timed.
                os.fsync(data.fileno())
            (folder / MODEL_FILE).write_bytes(self.proto.SerializeToString())
            (folder / CONFIG_FILE).write_text(json.dumps(self.config, indent=1), encoding="utf-8")
        except OSError as error:
            raise LanguageError(f"the whole model cannot be written to {folder}: {error.strerror}") from error


def whole_model_files(model: Architecture, precision: WeightPrecision, longest: int, traits: Traits) -> WholeModelFiles:
    """Return a whole model for contexts of so many tokens at most."""
    from onnx import ModelProto

    found = decoder(model, precision, Step.prefill(1, longest), traits, range(model.blocks), whole_table=True)
    network, _ = whole_network(found.graph)
    proto = ModelProto.FromString(b64decode(network.symbol))
    _name_as_engine_does(proto, found)
    return WholeModelFiles(proto, _placed(proto), _config(model, longest))


def _name_as_engine_does(proto: ModelProto, found: Decoder) -> None:
    """Give inputs and outputs the names that the engine looks for, and sizes of any length."""
    names = dict(zip([it.name for it in proto.graph.input], [it.name for it in found.graph.inputs], strict=True))
    caches = [it.name for it in found.graph.inputs if it.name.startswith(_PAST)]
    results = ["logits", *(it.replace(_PAST, _PRESENT) for it in caches)]
    names |= dict(zip([it.name for it in proto.graph.output], results, strict=True))
    for node in proto.graph.node:
        node.input[:] = [names.get(it, it) for it in node.input]
        node.output[:] = [names.get(it, it) for it in node.output]
    for value in (*proto.graph.input, *proto.graph.output):
        value.name = names[value.name]
    for value in proto.graph.input:
        axes = value.type.tensor_type.shape.dim
        axes[0].dim_param = "batch_size"
        if value.name.startswith(_PAST):
            axes[2].dim_param = "past_sequence_length"
        else:
            axes[1].dim_param = "sequence_length" if value.name == "input_ids" else "total_sequence_length"


def _placed(proto: ModelProto) -> tuple[WeightPlace, ...]:
    """Tell each weight its place in the file of data, and return all places."""
    quantised = {it.name for it in proto.graph.initializer if it.external_data and it.data_type == it.UINT8}
    scales = {it for node in proto.graph.node if quantised & set(node.input) for it in node.input}
    found: list[WeightPlace] = []
    end = 0
    for weight in proto.graph.initializer:
        if not weight.external_data:
            continue
        begin = -(-end // _PAGE) * _PAGE
        is_packed = weight.data_type == weight.UINT8
        end = begin + prod(weight.dims) * (1 if is_packed else 4)
        kind = "factors" if len(weight.dims) == 1 else "scales" if weight.name in scales else "weights"
        found.append(WeightPlace(begin, end, "packed" if is_packed else kind))
        del weight.external_data[:]
        for key, value in (("location", DATA_FILE), ("offset", begin), ("length", end - begin)):
            weight.external_data.add(key=key, value=str(value))
    return tuple(found)


def _parts(weight: WeightPlace, number: int) -> Iterator[memoryview]:
    """Yield the bytes of a weight. ONNX Runtime keeps equal weights once, so each begins elsewhere in its pattern."""
    pattern = memoryview(_patterns()[weight.pattern])
    begin, left = 4 * (number * _PATTERN_STEP % (len(pattern) // 4)), weight.end - weight.begin
    while left:
        part = pattern[begin : begin + left]
        yield part
        begin, left = 0, left - len(part)


@cache
def _patterns() -> Mapping[str, bytes]:
    from numpy import float32
    from numpy.random import default_rng

    random, count = default_rng(1), _PATTERN_BYTES // 4
    factors = random.uniform(0.5, 1.5, count).astype(float32)
    return {
        "packed": random.bytes(_PATTERN_BYTES),
        "factors": factors.tobytes(),
        "scales": (factors * float32(_SCALE)).tobytes(),
        "weights": (random.standard_normal(count, float32) * float32(_WEIGHT)).tobytes(),
    }


def _config(model: Architecture, longest: int) -> dict[str, object]:
    # The engine refuses caches that are shorter than the window.
    longest, kinds = max(longest, model.window), ("key", "value")
    files: dict[str, object] = {
        "session_options": {"provider_options": []},
        "filename": MODEL_FILE,
        "head_size": model.head_size,
        "hidden_size": model.hidden,
        "num_attention_heads": model.heads,
        "num_hidden_layers": model.blocks,
        "num_key_value_heads": model.kv_heads,
        "inputs": {it: it for it in ("input_ids", "attention_mask")}
        | {f"past_{it}_names": f"{_PAST}%d.{it}" for it in kinds},
        "outputs": {"logits": "logits"} | {f"present_{it}_names": f"{_PRESENT}%d.{it}" for it in kinds},
    }
    if model.window and model.has_short_caches:
        # The caches of these blocks hold little more than the window.
        windowed = [number for number, it in enumerate(model.windowed) if it]
        slides = {"slide_key_value_cache": False, "slide_inputs": False}
        files["sliding_window"] = {"window_size": model.window, "layers": windowed, **slides}
    special = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), 0)
    # Any decoder, whose family the engine needs not know.
    sizes = {"type": "decoder", "context_length": longest, "vocab_size": model.vocabulary}
    search = {"max_length": longest, "do_sample": False, "num_beams": 1, "past_present_share_buffer": True}
    return {"model": {**sizes, "decoder": files, **special}, "search": search}


def drive(asked: LanguageQuestion, drive: Drive, engine: WholeModelEngine, system: System, run: str) -> list[Record]:
    """Let users ask the engine, and return the delays of their answers for the store."""
    scenario = drive.scenario
    prompt, generate, largest = scenario.prompt, scenario.generate, scenario.largest(drive.serving)
    engine.load()
    # What runs first is slower.
    engine.serve(prompt, 2, largest, ((0.0,),) * min(drive.users, largest))
    found = TokenSamples.of(engine.serve(prompt, generate, largest, drive.pauses), generate)
    delays = {"first token": found.first_ms, "later tokens": found.later_ms}
    keys, facts = _keys_of_drive(asked, scenario, drive.serving, drive.users), ((_RATE, found.tokens_per_second),)
    results = (
        (key, f"{words}, {drive.words}", samples_of(delays_ms, FixedRuns(len(delays_ms))), facts)
        for key, (words, delays_ms) in zip(keys, delays.items(), strict=True)
    )
    return _records(asked, engine, system, run, results)


def driven_load(
    store: ResultsDatabase,
    system: str,
    asked: LanguageQuestion,
    scenario: TokenScenario,
    serving: TokenServing,
    users: int,
) -> DrivenLoad | None:
    """Return the newest drive of so many users; None if there was none."""
    first, later = (
        store.least_first(EndToEnd, equal(system=system, model=key))
        for key in _keys_of_drive(asked, scenario, serving, users)
    )
    if not first or not later:
        return None
    newest = later[-1]
    samples = TokenSamples(first[-1].samples_ms, newest.samples_ms, float(dict(newest.noise)[_RATE] or 0.0))
    engine = engine_title(newest.runtime)
    return DrivenLoad(engine=engine, load=TokenLoad.of(scenario, users, samples), when=newest.when)


def _keys_of_drive(asked: LanguageQuestion, scenario: TokenScenario, serving: TokenServing, users: int) -> list[str]:
    """Return the keys of both delays in the store. The bounds do not change what the engine does."""
    first = asked.decoder(asked.steps[0])
    key = whole_model(first.graph).key
    does = (first.counts, asked.runtime.identity, scenario.generate, scenario.think_s, scenario.largest(serving))
    texts = [repr((key, *does, serving.value, users, delay)) for delay in ("first", "later")]
    return [sha256(it.encode()).hexdigest()[: len(key)] for it in texts]
