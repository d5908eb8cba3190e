"""Latencies of bricks that were not measured: from the bytes that they move, their operations, and the host's speed.

Where the host has measured bricks of the class, their ratios to this model correct it; else those of other hosts do.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from statistics import fmean, median, pstdev
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tinydb import where

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.host.peaks import MEMORY, PeaksError, quick_peaks
from dlbricks_tui.language.architecture import WINDOW_SLACK
from dlbricks_tui.language.composing import (
    PROTOCOL,
    BrickTime,
    PhaseTimes,
    StepTime,
    known_bricks,
    phase_times,
    step_time,
)
from dlbricks_tui.language.decoder import ATTENTION, TABLES, Decoder, Extent, Step, distinct_blocks
from dlbricks_tui.language.orders import LanguageQuestion
from dlbricks_tui.models.graph import Layer, LayerGraph, Params, Shape, TensorType
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runtime.variant import Precision, stated_cache, stated_precision, stated_threads
from dlbricks_tui.store.records import BrickForm, Peaks
from dlbricks_tui.store.selections import combinations, equal

if TYPE_CHECKING:
    from dlbricks_tui.store.database import ResultsDatabase
    from dlbricks_tui.store.records import System

Types = Sequence[TensorType]
_FLOAT_BYTES, _FLOAT_BITS = 4, 32
# Operators by the last part of their neutral names.
_PRODUCT_OPS, _EXPERT_OPS = frozenset({"MatMul", "MatMulNBits"}), frozenset({"MoE", "QMoE"})

# What differs between identities of one runtime on several hosts.
_OF_HOST = re.compile(r" (python|threads)-\S+")

# They tell a type or a shape, or give an array another shape, and move nothing.
_FREE = frozenset({"Shape", "reshape", "Reshape"})
# One run of the carrier of a prompt takes at most so long, unless the prompt is as short as this.
_MOST_MS, _MOST_MS_OF_PROBE, _FEWEST_TOKENS = 4000.0, 400.0, 32
# 95 % of a normal distribution lie within so many standard deviations.
_DEVIATIONS = 1.96
# From the median of absolute deviations to a standard deviation, of which an outlier is more than so many away.
_TO_DEVIATION, _OUTLIER = 1.4826, 2.0
# Measured bricks count in full if their busy share, times this, reaches that of a predicted one.
_BUSY_ENOUGH = 4.0
# The numbers from here to `_SIBLING` are standard deviations of a latency as shares of it.
# Hosts differ so much from the one that the shares below were measured on: a factor of 2 within 95 %.
_FOREIGN = 0.35
# The same, if the speed of the host is not known either.
_UNKNOWN_HOST = 0.45
# Another host with the same runtime has shown the shares of the class: its caches and instructions may differ.
OTHER_HOST = 0.25
# Bricks of the same class with other sizes, and with sizes twice as far away.
_CLASS, _PER_DOUBLING = 0.08, 0.04
# A class that was not measured, where one like it was.
_SIBLING = 0.2


class BrickWork(NamedTuple):
    """The bytes and operations of one run of a brick; a multiplication with its addition is two operations."""

    # The operator without its domain, such as "MatMulNBits".
    op: str
    # Those of a stored weight.
    bits: int
    # The tokens that it computes for; of attention, those of a sequence: 1 when decoding.
    tokens: int
    # Of weights, only what is read: rows of a table that are looked up, and experts that have a token.
    weight_bytes: int
    # Of keys and values of earlier tokens.
    cache_bytes: int
    # Of activations that are read and written.
    moved_bytes: int
    operations: int

    @property
    def bytes_read(self) -> int:
        return self.weight_bytes + self.cache_bytes

    @property
    def kind(self) -> tuple[str, int, bool]:
        """The class of the brick; latencies differ by sizes only within one."""
        return self.op, self.bits, self.tokens == 1


def work_of(brick: Layer | str) -> BrickWork:
    """Return the work of a layer with one operator, or of a brick by its canonical form."""
    if isinstance(brick, str):
        return _work_of_text(brick)
    (operator,) = brick.operators
    return _work_of_form(operator.op, operator.params, brick.data, brick.weights)


@lru_cache(maxsize=1 << 12)
def _work_of_text(canonical: str) -> BrickWork:
    form = json.loads(canonical)
    (operator,) = form["operators"]
    types = [tuple([TensorType(tuple(shape or ()), dtype) for shape, dtype in form[it]]) for it in ("data", "weights")]
    numbers = [(name, it) for name, it in operator.get("params", {}).items() if not isinstance(it, list)]
    return _work_of_form(operator["op"], tuple(numbers), *types)


@lru_cache(maxsize=1 << 12)
def _work_of_form(op: str, params: Params, data: tuple[TensorType, ...], weights: tuple[TensorType, ...]) -> BrickWork:
    op, numbers = op.rpartition(".")[2], dict[str, Any](params)
    bits: int = numbers.get("bits", _FLOAT_BITS)
    read, stored, shape = _bytes(data), _bytes(weights), _shape(data[0]) if data else ()
    if op in _FREE:
        return BrickWork(op, _FLOAT_BITS, 1, 0, 0, 0, 0)
    if op == ATTENTION:
        return _attention_work(numbers, data)
    if op in _EXPERT_OPS:
        return _experts_work(op, numbers, data, weights)
    if op in TABLES and weights:
        rows, width = math.prod(shape), _shape(weights[0])[-1] * (8 // bits if bits < _FLOAT_BITS else 1)
        read_rows = rows * sum(it.size_bytes // max(1, _shape(it)[0]) for it in weights)
        return BrickWork(op, bits, rows, read_rows, 0, read + rows * width * _FLOAT_BYTES, rows * width)
    tokens = math.prod(shape[:-1]) if len(shape) > 1 else 1
    if op in _PRODUCT_OPS and weights:
        size: int = numbers.get("N") or _shape(weights[0])[-1]
        moved = read + tokens * size * _FLOAT_BYTES
        return BrickWork(op, bits, tokens, stored, 0, moved, 2 * tokens * shape[-1] * size)
    # The output of other operators is as large as their largest input.
    moved = read + max([it.size_bytes for it in data], default=0)
    return BrickWork(op, _FLOAT_BITS, tokens, stored, 0, moved, moved // _FLOAT_BYTES)


def _experts_work(op: str, numbers: Mapping[str, int], data: Types, weights: Types) -> BrickWork:
    tokens, chosen = math.prod(_shape(data[0])[:-1]), numbers.get("k", 1)
    bits, count = numbers.get("expert_weight_bits", _FLOAT_BITS), _shape(weights[0])[0]
    # Tokens choose experts independently, and an expert is read if any token has chosen it.
    read = 1 - (1 - chosen / count) ** tokens
    # Each number of a matrix serves one multiplication; scales and biases are vectors beside them.
    matrices = [it for it in weights if it.dtype == "uint8" or (len(_shape(it)) > 2 and bits == _FLOAT_BITS)]
    operations = 2 * tokens * chosen * (_bytes(matrices) * 8 // bits) // count
    return BrickWork(op, bits, tokens, int(read * _bytes(weights)), 0, _bytes(data) + data[0].size_bytes, operations)


def _attention_work(numbers: Mapping[str, int], data: Types) -> BrickWork:
    tokens = _shape(data[0])[1]
    batch, kv_heads, buffer, size = next(_shape(it) for it in data if len(_shape(it)) == 4)
    heads, window = numbers["num_heads"], numbers.get("local_window_size", -1)
    if tokens == 1:
        # The cache is full, or its length tells how much of it is.
        held = 2 * window + WINDOW_SLACK - buffer if numbers.get("sliding_window_cache") else buffer
        pairs = seen = min(window, held) if window > 0 else buffer
    else:
        # A prompt is read at once, and the kernel computes what lies outside of a window, too.
        seen, pairs = tokens, tokens * (tokens + 1) // 2
    row = 2 * kv_heads * size * _FLOAT_BYTES
    made = batch * tokens * (row + heads * size * _FLOAT_BYTES)
    moved = _bytes([it for it in data if len(_shape(it)) == 3]) + made
    return BrickWork(ATTENTION, _FLOAT_BITS, tokens, 0, batch * seen * row, moved, batch * 4 * heads * size * pairs)


def _shape(found: TensorType) -> Shape:
    return found.shape or ()


def _bytes(found: Types) -> int:
    return sum(it.size_bytes for it in found)


def bytes_read(asked: LanguageQuestion, found: Decoder) -> int:
    """Return the bytes of weights and caches that one step of the model reads."""
    works = [(count, work_of(layer)) for layer, count in zip(found.graph.layers, found.counts, strict=True)]
    # Layers have caches of 32 bits, and weights of 32 where there are 16.
    cache = 32 if asked.runtime.cache is None else asked.runtime.cache.bits
    weights = sum(count * it.weight_bytes for count, it in works) // (2 if asked.precision.bits == 16 else 1)
    return weights + sum(count * it.cache_bytes for count, it in works) * cache // 32


@dataclass(frozen=True, slots=True)
class HostRates:
    """The bytes that a host reads, and the operations that it computes, in a millisecond with a number of threads."""

    bytes_per_ms: float
    operations_per_ms: float
    is_measured: bool = True
    # Measured for a moment, as the store lacks the peaks: a busy host has others in each command.
    is_rough: bool = field(default=False, compare=False)

    @classmethod
    def of_peaks(cls, peaks: Peaks) -> HostRates:
        return cls(dict(peaks.bandwidth)[MEMORY] * 1e6, max(dict(peaks.arithmetic).values()) * 1e6)

    @classmethod
    def stored(cls, store: ResultsDatabase, system: str, threads: int) -> HostRates | None:
        """Return the rates of a system by its peaks, scaled from the nearest number of threads; None without any."""
        peaks = [it for it in store.peaks() if it.system == system]
        if not peaks:
            return None
        nearest = min(peaks, key=lambda it: abs(math.log(it.threads / threads)))
        found, guess, there = cls.of_peaks(nearest), cls.guessed(threads), cls.guessed(nearest.threads)
        return cls(
            found.bytes_per_ms * guess.bytes_per_ms / there.bytes_per_ms,
            found.operations_per_ms * guess.operations_per_ms / there.operations_per_ms,
            is_measured=nearest.threads == threads,
        )

    @classmethod
    def guessed(cls, threads: int) -> HostRates:
        """Return the rates of a host of which nothing is known: few threads are enough for all of its bandwidth."""
        return cls(10e6 * min(threads, 4), 60e6 * threads, is_measured=False)


class _Shares(NamedTuple):
    """The shares of the host's bandwidth and arithmetic that a class reaches, and what each run takes besides."""

    bandwidth: float
    arithmetic: float
    overhead_ms: float


# By the bits of weights. From bricks of seven made-up models (hidden 768 to 2560, heads of 64 to 256 numbers, 4, 8 and
# 32 bits, prompts of 16 to 512 tokens, contexts of 128 to 3000) under ONNX Runtime 1.32 with one thread on an AMD EPYC
# 7003 (AVX2, 15 GB/s, 60 billion operations per second), the fastest of 6 to 30 runs each. They hold within 12 % there.
# Arithmetic is relative to numpy's with 32 bits, which kernels for 4 bits exceed.
# Of decoding, and of a prompt.
_PRODUCTS = (
    {4: _Shares(1.0, 1.0, 0.01), 8: _Shares(0.9, 0.7, 0.01), 32: _Shares(1.0, 0.5, 0.01)},
    {4: _Shares(1.0, 1.2, 0.02), 8: _Shares(1.0, 0.85, 0.02), 32: _Shares(1.0, 1.1, 0.02)},
)
_EXPERTS = (
    {4: _Shares(1.0, 0.2, 0.1), 8: _Shares(1.0, 0.2, 0.1), 32: _Shares(0.7, 0.3, 0.05)},
    {4: _Shares(0.6, 1.1, 0.05), 8: _Shares(0.6, 0.85, 0.05), 32: _Shares(0.8, 1.1, 0.05)},
)
_ATTENTION = (_Shares(0.3, 0.4, 0.02), _Shares(0.3, 0.4, 0.05))
# Rows of a table lie apart.
_TABLE = _Shares(0.1, 1.0, 0.05)
_SMALL = _Shares(0.7, 1.0, 0.006)


def usual_ms(work: BrickWork, rates: HostRates) -> float:
    """Return the latency of a brick on a usual host with these rates.

    Reading and computing overlap little: a core waits for most of what it reads.
    """
    shares = _shares_of(work)
    reading = (work.bytes_read + work.moved_bytes) / (shares.bandwidth * rates.bytes_per_ms)
    computing = work.operations / (shares.arithmetic * rates.operations_per_ms)
    return shares.overhead_ms + reading + computing


def _shares_of(work: BrickWork) -> _Shares:
    phase = int(work.tokens > 1)
    if work.op in _PRODUCT_OPS or work.op in _EXPERT_OPS:
        return (_EXPERTS if work.op in _EXPERT_OPS else _PRODUCTS)[phase][work.bits]
    if work.op == ATTENTION:
        return _ATTENTION[phase]
    return _TABLE if work.op in TABLES and work.weight_bytes else _SMALL


def _busy_share(work: BrickWork, rates: HostRates) -> float:
    """Return the share of a brick's usual latency in which it reads and computes."""
    return 1.0 - _shares_of(work).overhead_ms / usual_ms(work, rates)


class _Peer(NamedTuple):
    """A measured brick: where it stands among others of its class, and the logarithm of its ratio to `usual_ms`."""

    work: BrickWork
    busy_share: float
    log_ratio: float
    # Half of the interval that its measurement shares with others, as a share of its latency.
    shared_half: float

    def distance(self, work: BrickWork) -> float:
        return abs(_size(self.work) - _size(work)) + abs(math.log2(self.work.tokens / work.tokens))


def _size(work: BrickWork) -> float:
    return math.log2(1 + (work.bytes_read or work.moved_bytes) / work.tokens)


class BrickPredictor:
    """Knows latencies of bricks on a host with a number of threads: measured ones, and predictions of the others."""

    def __init__(
        self,
        rates: HostRates,
        measured: Iterable[tuple[BrickWork, BrickTime]] = (),
        known: Mapping[str, BrickTime] = MappingProxyType({}),
        others: Sequence[BrickPredictor] = (),
        system: str = "",
        cache_share: float = 1.0,
        runtime: str = "",
    ) -> None:
        self.rates = rates
        self.system = system
        # What other hosts, and other executions on this one, have shown by the same runtime.
        self.others = others
        self._runtime = runtime
        # The bytes of caches, and of weights, over those that the operators tell.
        self._cache_share, self._weight_share = cache_share, 0.5 if stated_precision(runtime) is Precision.BF16 else 1.0
        # Measured bricks by their keys.
        self.known = known
        self._predicted = cache(self._prediction)
        self._measured = tuple(measured)
        peers: defaultdict[tuple[str, int, bool], list[_Peer]] = defaultdict(list)
        for work, time in self._measured:
            if time.ms > 0:
                ratio = math.log(time.ms / self._usual(work)[0])
                peers[work.kind].append(_Peer(work, _busy_share(work, rates), ratio, time.shared_half_ms / time.ms))
        self._peers: dict[tuple[str, int, bool], Sequence[_Peer]] = {}
        for kind, found in peers.items():
            # Ratios are no farther from the median than a few deviations.
            middle = median(it.log_ratio for it in found)
            most = _OUTLIER * _TO_DEVIATION * median(abs(it.log_ratio - middle) for it in found)
            low, high = middle - most, middle + most
            self._peers[kind] = [it._replace(log_ratio=min(high, max(low, it.log_ratio))) for it in found]

    @classmethod
    def of_host(cls, store: ResultsDatabase, system: str, runtime: str, threads: int) -> BrickPredictor:
        """Return what the store knows of a runtime variant on this host; without peaks, they are measured quickly."""
        threads = threads or processors_here().to_use
        rates = HostRates.stored(store, system, threads)
        if rates is None or not rates.is_measured:
            rates = _quick_rates(system, threads)
        return cls._stored(store, system, runtime, rates)

    def without(
        self, keys: Collection[str], others: Sequence[BrickPredictor] = (), cache_share: float = 1.0
    ) -> BrickPredictor:
        """Return what would be known without measured bricks of these keys, and with what other executions show."""
        left_out = {self.known[it] for it in keys if it in self.known}
        measured = [(work, time) for work, time in self._measured if time not in left_out]
        known = {key: it for key, it in self.known.items() if key not in keys}
        # Built without `others`, so that they compare measured times with the rates of the host alone.
        shown = [BrickPredictor(it.rates, it._measured, system=it.system, runtime=it._runtime) for it in others]
        others = (*self.others, *shown)
        return BrickPredictor(self.rates, measured, known, others, self.system, cache_share, self._runtime)

    @classmethod
    def of_system(cls, store: ResultsDatabase, system: System, runtime: str, threads: int) -> BrickPredictor:
        """Return what the store knows of a runtime variant on any system."""
        threads = threads or system.cores_to_use or 1
        rates = HostRates.stored(store, system.id, threads) or HostRates.guessed(threads)
        return cls._stored(store, system.id, runtime, rates)

    @classmethod
    def _stored(cls, store: ResultsDatabase, system: str, runtime: str, rates: HostRates) -> BrickPredictor:
        others = []
        for other, identity in measured_ways(store, runtime):
            threads = stated_threads(identity)
            there = HostRates.stored(store, other, threads) if threads else None
            # Ratios to a speed that is not known say nothing about another host.
            if (other, identity) != (system, runtime) and there is not None and there.is_measured:
                others.append(cls(there, *_measured(store, other, identity), system=other, runtime=identity))
        return cls(rates, *_measured(store, system, runtime), others, system, runtime=runtime)

    def time_of(self, graph: LayerGraph, layer: int) -> BrickTime:
        """Return the latency of a layer: measured, or predicted."""
        # Without any result no brick has to be told apart.
        found = self.known.get(brick_of(graph, (layer,)).key) if self.known else None
        return found or self.predicted(graph.layers[layer])

    def predicted(self, layer: Layer) -> BrickTime:
        return self._predicted(work_of(layer))

    def _prediction(self, work: BrickWork) -> BrickTime:
        found, least_ms = self._by_peers(work), self._least_ms(work)
        if found.ms >= least_ms:
            return found
        # Large caches hold bricks of small models between two runs. As they may hold this one, too, or not, its
        # interval reaches down to what the measured ones tell.
        return replace(found, ms=least_ms, shared_half_ms=found.shared_half_ms + least_ms - found.ms)

    def _least_ms(self, work: BrickWork) -> float:
        """Return how long the measured bandwidth of the memory takes for what is read; 0 if it is not known."""
        cache = stated_cache(self._runtime)
        read = self._weight_share * work.weight_bytes + work.cache_bytes * (32 if cache is None else cache.bits) / 32
        return read / self.rates.bytes_per_ms if self.rates.is_measured else 0.0

    def _by_peers(self, work: BrickWork) -> BrickTime:
        usual, deviation = self._usual(work)
        peers, foreign = self._peers_of(work)
        runtime = self._runtime.partition(" ")[0]
        if not peers:
            return BrickTime(usual, 0.0, _DEVIATIONS * deviation * usual, runtime=runtime)
        distances = [it.distance(work) for it in peers]
        # Bricks of other sizes count, too, so that a larger brick is hardly ever predicted to be faster.
        weights = [2.0**-it for it in distances]
        ratio = _mean([it.log_ratio for it in peers], weights)
        spread = math.sqrt(_mean([(it.log_ratio - ratio) ** 2 for it in peers], weights))
        ms = usual * math.exp(self._trust(work, peers) * ratio)
        shared = _DEVIATIONS * math.hypot(_CLASS, _PER_DOUBLING * min(distances), foreign)
        measured = _mean([it.shared_half for it in peers], weights)
        return BrickTime(ms, _DEVIATIONS * spread * ms, math.hypot(shared, measured) * ms, runtime=runtime)

    def _usual(self, work: BrickWork) -> tuple[float, float]:
        """Return the latency by the speed of the host and the ratios of other hosts, and its deviation."""
        weights, cache = int(self._weight_share * work.weight_bytes), int(self._cache_share * work.cache_bytes)
        held = work._replace(weight_bytes=weights, cache_bytes=cache)
        usual = usual_ms(held, self.rates)
        shown = [ratio for it in self.others if (ratio := it.ratio_of_class(work)) is not None]
        ms = usual * math.exp(fmean(shown)) if shown else usual
        if not self.rates.is_measured:
            return ms, _UNKNOWN_HOST
        return ms, math.hypot(OTHER_HOST, pstdev(shown)) if shown else _FOREIGN

    def ratio_of_class(self, work: BrickWork) -> float | None:
        """Return the logarithm of the ratio to usual latencies of measured bricks of the class; None without any."""
        peers, _ = self._peers_of(work)
        if not peers:
            return None
        ratio = _mean([it.log_ratio for it in peers], [2.0 ** -it.distance(work) for it in peers])
        return self._trust(work, peers) * ratio

    def _trust(self, work: BrickWork, peers: Sequence[_Peer]) -> float:
        """Return how much measured bricks count: those that take little but their call say little about busier ones."""
        known, own = max(it.busy_share for it in peers), _busy_share(work, self.rates)
        return min(1.0, _BUSY_ENOUGH * known / own) if own else 1.0

    def _peers_of(self, work: BrickWork) -> tuple[Sequence[_Peer], float]:
        """Return measured bricks of the class, or of one like it, and the deviation that this adds."""
        if (own := work.kind) in self._peers:
            return self._peers[own], 0.0
        like = _family(work.op), work.tokens == 1
        alike = [of for (op, _, is_decoding), of in self._peers.items() if (_family(op), is_decoding) == like]
        return [peer for of in alike for peer in of], _SIBLING

    def decoder(self, asked: LanguageQuestion, step: Step) -> Decoder:
        """Return the decoder from whose bricks the latency of a step follows."""
        # A second block of a kind differs by its first norm, which counts where bricks were measured.
        return asked.decoder(step, None if self.known else distinct_blocks(asked.sizes, fewest=True))

    def step(self, asked: LanguageQuestion, step: Step) -> StepTime:
        """Return the latency of a step: the whole prompt, or one token."""
        return step_time(self.decoder(asked, step), self.time_of)

    def phases(self, asked: LanguageQuestion) -> PhaseTimes:
        """Return the latencies of prefill, decoding and the whole answer."""
        prefill, *decoding = [self.step(asked, it) for it in asked.steps]
        return phase_times(prefill, decoding, asked.generate)


def measured_ways(store: ResultsDatabase, runtime: str, protocol: str = PROTOCOL) -> list[tuple[str, str]]:
    """Return the systems with results by a runtime, each with its identity there: in any Python, with any threads."""
    found = combinations(store.select(equal(protocol=protocol, good=True), order=()))
    alike = [it for it in found if _OF_HOST.sub("", it.runtime) == _OF_HOST.sub("", runtime)]
    return [(it.system, it.runtime) for it in alike]


def _measured(
    store: ResultsDatabase, system: str, runtime: str
) -> tuple[list[tuple[BrickWork, BrickTime]], Mapping[str, BrickTime]]:
    """Return the measured bricks by their work, and by their keys."""
    known = known_bricks(store, system, runtime)
    forms = store.records(BrickForm, where("key").one_of(list(known))) if known else []
    return [(work_of(it.canonical), known[it.key]) for it in forms], known


def measured_steps(asked: LanguageQuestion, host: BrickPredictor, *, is_probe: bool = False) -> tuple[Step, ...]:
    """Return the steps to measure, or that were measured, of a probe in one block.

    A prompt that takes too long in its carrier stands for fewer of its tokens, and one context for both.
    """
    prefill, *others = asked.steps
    most_ms, given = _MOST_MS, dict[str, Any]()
    if is_probe:
        most_ms, others = _MOST_MS_OF_PROBE, others[-1:]
        given = {"blocks": distinct_blocks(asked.sizes, fewest=True), "extent": Extent.BLOCKS}
    while prefill.tokens > _FEWEST_TOKENS:
        found = asked.decoder(prefill, **given)
        is_known = bool(host.known) and all(it in host.known for it in found.keys)
        if is_known or sum(host.predicted(layer).ms for layer in found.graph.layers) <= most_ms:
            break
        last = max(it.past for it in others if it.batch == 1)
        others = [it for it in others if it.batch > 1 or it.past == last]
        prefill = Step.prefill(max(_FEWEST_TOKENS, prefill.tokens // 2))
    return (prefill, *others)


def _family(op: str) -> str:
    return op if op == ATTENTION else "product" if op in _PRODUCT_OPS or op in _EXPERT_OPS else "small"


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


@lru_cache(maxsize=16)
def _quick_rates(system: str, threads: int) -> HostRates:
    try:
        return replace(HostRates.of_peaks(quick_peaks(system, threads)), is_rough=True)
    except PeaksError:
        return HostRates.guessed(threads)
