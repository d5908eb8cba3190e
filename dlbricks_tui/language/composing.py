"""Compose the latency of a language model from those of its bricks, and its memory in onnxruntime-genai and OpenVINO.

Each layer counts as often as the model has it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from dlbricks_tui.estimate.knowledge import host_speed
from dlbricks_tui.language.architecture import BLOCK_SIZE, WINDOW_SLACK, Architecture, LanguagePhase, WeightPrecision
from dlbricks_tui.language.decoder import ATTENTION, Decoder, ModelPart
from dlbricks_tui.language.orders import LanguageQuestion
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.runtime.traits import OPENVINO
from dlbricks_tui.runtime.variant import CachePrecision
from dlbricks_tui.store.change import Timing
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.index import SHARED_COLUMN
from dlbricks_tui.store.selections import OLDEST_FIRST, equal

# The id of the method under which bricks of language models are stored. Before, ONNX Runtime's weights lay in better
# places than in an engine, and OpenVINO computed attention in pieces.
PROTOCOL = "decoder-2"
# However wide its interval is, a step takes at least this share of its latency.
_LEAST_SHARE = 0.05
_FLOAT_BYTES = 4
# The interpreter, ONNX Runtime and the engine without a model: of 10 models, 62 MB more or less 2.
_PROCESS_BYTES = 62 << 20
# The kernel maps about so much of a file around each row that is looked up.
_MAPPED_PIECE = 1 << 20
# The same of OpenVINO with openvino-genai, and the bytes beside a row of 8 bits in its cache.
_OPENVINO_BYTES, _SCALE_AND_ZERO = 176 << 20, 8
# For each scale in the file: itself, and one with a sum in the packed weights.
_FLOATS_PER_SCALE = 3


@dataclass(frozen=True, slots=True)
class BrickTime:
    """The latency of a brick, and half of its 95 % interval: by itself, and in common with bricks of its rounds."""

    ms: float
    half_ms: float
    shared_half_ms: float
    # Of the measurement; empty for a prediction.
    when: str = ""
    # How slow the host was then, over its usual speed under this runtime; 1: not known.
    slowdown: float = 1.0
    # That of a prediction, as runtimes differ; empty for a measurement.
    runtime: str = ""

    @property
    def is_predicted(self) -> bool:
        return not self.when


# Returns the latency of a layer: measured, or predicted.
TimeOf = Callable[[LayerGraph, int], BrickTime]


def known_bricks(store: ResultsDatabase, system: str, runtime: str) -> Mapping[str, BrickTime]:
    """Return the newest results of all bricks of language models, by key."""
    found = store.select(equal(system=system, runtime=runtime, protocol=PROTOCOL, good=True), order=OLDEST_FIRST)
    # The results of the newest run, one for each place of the brick.
    newest: dict[str, list[tuple[Summary, float]]] = {}
    for summary, share in zip(found, found.numbers(SHARED_COLUMN), strict=True):
        places = newest.get(summary.brick)
        if places is None or places[0][0].run != summary.run:
            places = newest[summary.brick] = []
        places.append((summary, float(share)))
    times = {}
    usual_ms = host_speed(store, system, runtime, PROTOCOL).usual_ms
    for brick, places in newest.items():
        ms = fmean(it.trimmed_mean_ms for it, _ in places)
        half_ms = fmean((it.high_ms - it.low_ms) / 2 for it, _ in places)
        shared, last = max(0.0, *(share for _, share in places)), places[-1][0]
        slowdown = last.reference_ms / usual_ms if usual_ms and last.reference_ms > 0 else 1.0
        times[brick] = BrickTime(ms, half_ms, shared * ms, last.when, slowdown)
    return times


@dataclass(frozen=True, slots=True)
class StepTime:
    """The latency of one step of a language model, or of several, with half of its 95 % interval."""

    ms: float
    half_ms: float
    parts_ms: Mapping[ModelPart, float]
    # The share of `ms` that rests on measurements, and the time of the newest.
    coverage: float
    when: str
    # How often each brick counts in it.
    terms: Mapping[BrickTime, float] = field(default_factory=dict)

    @property
    def bounds_ms(self) -> tuple[float, float]:
        return max(_LEAST_SHARE * self.ms, self.ms - self.half_ms), self.ms + self.half_ms


def step_time(found: Decoder, time_of: TimeOf) -> StepTime:
    """Return the latency of the model of which a decoder has some blocks."""
    parts: defaultdict[ModelPart, float] = defaultdict(float)
    terms: Counter[BrickTime] = Counter()
    total = measured = together = predicted = apart = 0.0
    when = ""
    for layer, part, count in zip(found.graph.layers, found.parts, found.counts, strict=True):
        brick = time_of(found.graph, layer.index)
        terms[brick] += count
        parts[part] += count * brick.ms
        total += count * brick.ms
        apart += (count * brick.half_ms) ** 2
        if brick.is_predicted:
            # Predictions are wrong alike.
            predicted += count * brick.shared_half_ms
        else:
            measured += count * brick.ms
            together += count * brick.shared_half_ms
            when = max(when, brick.when)
    half = math.hypot(together, math.sqrt(apart)) + predicted
    return StepTime(total, half, parts, measured / total if total else 0.0, when, terms)


def steps_time(*steps: tuple[float, StepTime]) -> StepTime:
    """Return the latency of steps, each so many times, which are wrong alike."""
    ms = sum(times * it.ms for times, it in steps)
    names = dict.fromkeys(part for _, it in steps for part in it.parts_ms)
    parts = {name: sum(times * it.parts_ms.get(name, 0.0) for times, it in steps) for name in names}
    measured = sum(times * it.ms * it.coverage for times, it in steps)
    half = sum(times * it.half_ms for times, it in steps)
    terms: defaultdict[BrickTime, float] = defaultdict(float)
    for times, it in steps:
        for brick, count in it.terms.items():
            terms[brick] += times * count
    return StepTime(ms, half, parts, measured / ms if ms else 0.0, max(it.when for _, it in steps), terms)


def _terms(found: StepTime) -> Mapping[BrickTime, float]:
    """Return how often each brick counts; what was timed as a whole is one."""
    return found.terms or {BrickTime(found.ms, found.half_ms, 0.0, found.when): 1.0}


PhaseTimes = Mapping[LanguagePhase, StepTime]


def phase_times(prefill: StepTime, decoding: Iterable[StepTime], generate: int) -> PhaseTimes:
    """Return the latencies of a prompt, of a token behind it, the mean of the first and the last, and of all."""
    first, *_, last = (*decoding,) * 2
    decode = steps_time((0.5, first), (0.5, last))
    total = steps_time((1, prefill), (generate - 1, decode))
    return {LanguagePhase.TOTAL: total, LanguagePhase.PREFILL: prefill, LanguagePhase.DECODE: decode}


def timings(was: StepTime, now: StepTime) -> tuple[Timing, Timing]:
    """Return two latencies to compare; the interval of the second one is that of their ratio.

    Bricks that both have are as wrong in both. If the host was slower for one of them, that widens the interval.
    """
    ratio, (before, after) = now.ms / was.ms, (_terms(it) for it in (was, now))
    counts = {it: after.get(it, 0.0) - ratio * before.get(it, 0.0) for it in (*after, *before)}
    apart = math.hypot(*(count * it.half_ms for it, count in counts.items()))
    halves = [(count * it.shared_half_ms, it.is_predicted) for it, count in counts.items()]
    together = [math.fsum(it for it, predicted in halves if not predicted and sign * it > 0) for sign in (1, -1)]
    predicted = math.fsum(abs(it) for it, predicted in halves if predicted)
    slower = abs(math.fsum(count * it.ms * (it.slowdown - 1.0) for it, count in counts.items()))
    half = math.hypot(apart, *together) + predicted + slower
    return (
        Timing(value_ms=was.ms, low_ms=was.ms, high_ms=was.ms),
        Timing(value_ms=now.ms, low_ms=max(0.0, now.ms - half), high_ms=now.ms + half),
    )


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """The memory of a language model, in bytes; the cache is that of the whole context."""

    weights: int
    cache: int
    buffers: int

    @property
    def total(self) -> int:
        return self.weights + self.cache + self.buffers


def memory_need(asked: LanguageQuestion, found: Decoder, answers: int = 1, prompts: int = 1) -> MemoryNeed:
    """Return the memory for prompt and generated tokens, by the decoder of a step.

    So many answers are made, and so many prompts read, together.
    """
    if asked.runtime.framework == OPENVINO.framework:
        return _need_in_openvino(asked, found, answers, prompts)
    model, precision, context = asked.sizes, asked.precision, asked.prompt + asked.generate
    windowed = sum(model.windowed)
    held = model.window + WINDOW_SLACK if model.has_short_caches else context
    # The engine refuses caches that are shorter than the window.
    full = max(context, model.window) if model.has_short_caches else context
    cache_tokens = (model.blocks - windowed) * full + windowed * held
    cache = answers * 2 * cache_tokens * model.kv_heads * model.head_size * _FLOAT_BYTES
    layers = [it for it in found.graph.layers if it.kind is not Kind.EMBEDDING]
    # While weights are packed, they are there twice; the cache and all buffers come later.
    largest = max(it.size_bytes for layer in layers for it in layer.weights)
    # Arrays of logits that are there at once: a cap divides, bounds and multiplies them.
    logits = 3 if model.logit_cap else 2 if model.logit_scale != 1.0 else 1
    scored = 1 if model.scores_last_only else asked.prompt
    running = scored * model.vocabulary * logits + asked.prompt * _block_floats(model, precision)
    running *= prompts * _FLOAT_BYTES
    # All experts count: sooner or later each has a token.
    weights = 0
    for layer in layers:
        kept = _FLOATS_PER_SCALE if layer.op.endswith("MatMulNBits") else 0 if layer.op.endswith(ATTENTION) else 1
        rows = sum(it.size_bytes for it in layer.weights if it.dtype == "float32" and len(it.shape or ()) == 2)
        # Tables of angles, which all blocks share, count below.
        weights += found.counts[layer.index] * (sum(it.size_bytes for it in layer.weights) + (kept - 1) * rows)
    angles, table = context * model.rotary_size * _FLOAT_BYTES, model.vocabulary * model.hidden
    # It is a copy of the head's weights, or stays in its file.
    mapped = _mapped(table * _FLOAT_BYTES, answers * context)
    weights += angles + (table * precision.bits // 8 if model.is_tied else mapped)
    return MemoryNeed(weights, cache, _PROCESS_BYTES + max(running, largest - cache, 0))


def _mapped(file: int, tokens: int) -> int:
    """Return the bytes of a table in a file that are in memory after so many tokens, which lie anywhere in it."""
    return int(file * -math.expm1(-tokens * _MAPPED_PIECE / file))


def _need_in_openvino(asked: LanguageQuestion, found: Decoder, answers: int, prompts: int) -> MemoryNeed:
    """Return the memory for OpenVINO: it maps the file of weights, and packs a copy of all that is multiplied."""
    model, cache, context = asked.sizes, asked.runtime.cache, asked.prompt + asked.generate
    stored = 0
    for layer in found.graph.layers:
        if layer.kind is Kind.EMBEDDING or layer.op.endswith(ATTENTION):
            continue
        # Scales have 16 bits, and so do weights of that precision.
        is_short = layer.op.endswith("MatMulNBits") or asked.precision is WeightPrecision.BF16
        floats = sum(it.size_bytes for it in layer.weights if it.dtype == "float32" and len(it.shape or ()) == 2)
        stored += found.counts[layer.index] * (sum(it.size_bytes for it in layer.weights) - is_short * floats // 2)
    bits = asked.precision.bits
    table = model.vocabulary * model.hidden * (bits // 8 if bits > 8 else 1)
    # The same weights as the head; as floats, the table is its copy the other way around.
    own_table = (table if bits > 8 else 0) if model.is_tied else _mapped(table, answers * context)
    row = model.head_size if cache is None else model.head_size * cache.bits // 8
    row += _SCALE_AND_ZERO if cache is CachePrecision.INT8 else 0
    scores = asked.prompt**2 * _FLOAT_BYTES
    running = asked.prompt * _FLOAT_BYTES * _block_floats(model, asked.precision) + scores
    kept = answers * 2 * model.blocks * context * model.kv_heads * row
    return MemoryNeed(2 * stored + own_table, kept, _OPENVINO_BYTES + prompts * running)


def _block_floats(model: Architecture, precision: WeightPrecision) -> int:
    """Return the numbers per token of all arrays of a block, as the arena of ONNX Runtime puts few in place of others.

    A later block reuses them.
    """
    queries, keys = model.heads * model.head_size, model.kv_heads * model.head_size
    # The packed queries, keys and values, and their rotated copies; with norms, also the parts and the normed ones.
    attention = (4 if model.qk_norm else 2) * (queries + 2 * keys) + queries
    # The state, the sums, the normed states, and the results of both products that end in a state.
    states = (8 if model.has_outer_norms else 6) * model.hidden
    inner = 3 * model.inner * max(1, model.active_experts)
    # Products round their inputs to 8 bits, with a scale for each block.
    rounded = (2 * model.hidden + queries + model.inner) * (BLOCK_SIZE + _FLOAT_BYTES) // BLOCK_SIZE // 4
    return states + attention + inner + (0 if precision.bits > 8 else rounded)
