"""Latencies of bricks that were not measured: from their bytes and operations, and the speed of the host.

Where the host has measured bricks of the class, their ratios to this model correct it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from tinydb import where

from dlbricks_tui.host.peaks import MEMORY, PeaksError, quick_peaks
from dlbricks_tui.language.stored import BrickTime, known_bricks
from dlbricks_tui.language.work import ATTENTION, BrickWork, work_of
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.store.records import BrickForm, Peaks

if TYPE_CHECKING:
    from dlbricks_tui.models.graph import LayerGraph
    from dlbricks_tui.store.database import ResultsDatabase

# 95 % of a normal distribution lie within so many standard deviations.
_DEVIATIONS = 1.96
# From the median of absolute deviations to a standard deviation, of which an outlier is more than so many away.
_TO_DEVIATION, _OUTLIER = 1.4826, 2.0
# Standard deviations of a latency as shares of it.
# Hosts differ so much from the one that the shares below were measured on: a factor of 2 within 95 %.
_FOREIGN = 0.35
# The same, if the speed of the host is not known either.
_UNKNOWN_HOST = 0.45
# Bricks of the same class with other sizes, and with sizes twice as far away.
_CLASS, _PER_DOUBLING = 0.08, 0.04
# A class that was not measured, where one like it was.
_SIBLING = 0.2


@dataclass(frozen=True, slots=True)
class HostRates:
    """The bytes that a host reads, and the operations that it computes, in a millisecond with a number of threads."""

    bytes_per_ms: float
    operations_per_ms: float
    is_measured: bool = True

    @classmethod
    def of_peaks(cls, peaks: Peaks) -> HostRates:
        """Return the rates of measured peaks."""
        return cls(dict(peaks.bandwidth)[MEMORY] * 1e6, max(dict(peaks.arithmetic).values()) * 1e6)

    @classmethod
    def unknown(cls, threads: int) -> HostRates:
        """Return the rates of a usual processor."""
        return cls(10e6 * min(threads, 4), 60e6 * threads, is_measured=False)


class _Shares(NamedTuple):
    """The shares of the host's bandwidth and arithmetic that a class reaches, and what each run takes besides."""

    bandwidth: float
    arithmetic: float
    overhead_ms: float = 0.004


class _Class(NamedTuple):
    """Bricks whose latencies differ by their sizes only."""

    op: str
    bits: int
    is_decoding: bool


# By the bits of weights. From bricks of seven made-up models (hidden 768 to 2560, heads of 64 to 256 numbers, 4, 8 and
# 32 bits, prompts of 16 to 512 tokens, contexts of 128 to 3000) under ONNX Runtime 1.32 with one thread on an AMD EPYC
# 7003 (AVX2, 15 GB/s, 60 billion operations per second), the fastest of 6 to 30 runs each. They hold within 12 % there.
# Arithmetic is relative to numpy's with 32 bits, which kernels for 4 bits exceed.
_DECODING_PRODUCTS = {4: _Shares(1.0, 1.0, 0.01), 8: _Shares(0.9, 0.7, 0.01), 32: _Shares(1.0, 0.5, 0.01)}
_PROMPT_PRODUCTS = {4: _Shares(1.0, 1.2, 0.02), 8: _Shares(1.0, 0.85, 0.02), 32: _Shares(1.0, 1.1, 0.02)}
_DECODING_EXPERTS = {4: _Shares(1.0, 0.2, 0.1), 8: _Shares(1.0, 0.2, 0.1), 32: _Shares(0.7, 0.3, 0.05)}
_PROMPT_EXPERTS = {4: _Shares(0.6, 1.1, 0.05), 8: _Shares(0.6, 0.85, 0.05), 32: _Shares(0.8, 1.1, 0.05)}
_DECODING_ATTENTION = _Shares(0.3, 0.4, 0.02)
_PROMPT_ATTENTION = _Shares(0.3, 0.4, 0.05)
# Rows of a table lie apart.
_TABLE = _Shares(0.1, 1.0, 0.05)
_SMALL = _Shares(0.7, 1.0, 0.006)


def usual_ms(work: BrickWork, rates: HostRates) -> float:
    """Return the latency of a brick on a usual host with these rates.

    Reading and computing overlap little: a core waits for most of what it reads.
    """
    shares = _shares(work)
    reading = (work.bytes_read + work.moved_bytes) / (shares.bandwidth * rates.bytes_per_ms)
    computing = work.operations / (shares.arithmetic * rates.operations_per_ms)
    return shares.overhead_ms + reading + computing


def _shares(work: BrickWork) -> _Shares:
    if work.is_product:
        experts = _DECODING_EXPERTS if work.is_decoding else _PROMPT_EXPERTS
        products = _DECODING_PRODUCTS if work.is_decoding else _PROMPT_PRODUCTS
        return (experts if work.has_experts else products)[work.bits]
    if work.op == ATTENTION:
        return _DECODING_ATTENTION if work.is_decoding else _PROMPT_ATTENTION
    return _TABLE if work.is_table else _SMALL


class _Peer(NamedTuple):
    """A measured brick: where it stands among others of its class, and the logarithm of its ratio to `usual_ms`."""

    work: BrickWork
    log_ratio: float
    # Half of the interval that its measurement shares with others, as a share of its latency.
    shared_half: float

    def distance(self, work: BrickWork) -> float:
        """Return the doublings between its sizes and others."""
        return abs(_size(self.work) - _size(work)) + abs(math.log2(self.work.tokens / work.tokens))


def _size(work: BrickWork) -> float:
    """Return the logarithm of the work for a token."""
    return math.log2(1 + (work.bytes_read or work.moved_bytes) / work.tokens)


class BrickPredictor:
    """Predicts latencies on a host with a number of threads."""

    def __init__(self, rates: HostRates, measured: Iterable[tuple[BrickWork, BrickTime]] = ()) -> None:
        self._rates = rates
        self._found: dict[BrickWork, BrickTime] = {}
        peers: defaultdict[_Class, list[_Peer]] = defaultdict(list)
        for work, time in measured:
            if time.ms > 0:
                ratio = math.log(time.ms / usual_ms(work, rates))
                peers[_class_of(work)].append(_Peer(work, ratio, time.shared_half_ms / time.ms))
        self._peers = {it: _without_outliers(found) for it, found in peers.items()}

    @classmethod
    def of_host(cls, store: ResultsDatabase, system: str, runtime: str, threads: int) -> BrickPredictor:
        """Return what the store knows of a runtime variant on this host; without peaks, they are measured quickly."""
        known = known_bricks(store, system, runtime)
        forms = store.records(BrickForm, where("key").one_of(list(known))) if known else []
        measured = [(work_of(it.canonical), known[it.key]) for it in forms]
        threads = threads or processors_here().number
        peaks = next((it for it in store.peaks() if (it.system, it.threads) == (system, threads)), None)
        rates = HostRates.of_peaks(peaks) if peaks else _quick_rates(system, threads)
        return cls(rates, measured)

    @property
    def rates(self) -> HostRates:
        """The speed of the host."""
        return self._rates

    def time_of(self, graph: LayerGraph, layer: int) -> BrickTime:
        """Return the predicted latency of a layer."""
        work = work_of(graph.layers[layer])
        if work not in self._found:
            self._found[work] = self._time(work)
        return self._found[work]

    def _time(self, work: BrickWork) -> BrickTime:
        usual = usual_ms(work, self._rates)
        peers, foreign = self._peers_of(work)
        if not peers:
            deviation = _FOREIGN if self._rates.is_measured else _UNKNOWN_HOST
            return BrickTime(usual, 0.0, _DEVIATIONS * deviation * usual)
        distances = [it.distance(work) for it in peers]
        # Bricks of other sizes count, too, so that a larger brick is hardly ever predicted to be faster.
        weights = [2.0**-it for it in distances]
        ratio = _mean([it.log_ratio for it in peers], weights)
        spread = math.sqrt(_mean([(it.log_ratio - ratio) ** 2 for it in peers], weights))
        ms = usual * math.exp(ratio)
        shared = _DEVIATIONS * math.hypot(_CLASS, _PER_DOUBLING * min(distances), foreign)
        measured = _mean([it.shared_half for it in peers], weights)
        return BrickTime(ms, _DEVIATIONS * spread * ms, math.hypot(shared, measured) * ms)

    def _peers_of(self, work: BrickWork) -> tuple[Sequence[_Peer], float]:
        """Return measured bricks of the class, or of one like it, and the deviation that this adds."""
        own = _class_of(work)
        if own in self._peers:
            return self._peers[own], 0.0
        alike = [it for it in self._peers if it.is_decoding == own.is_decoding and _family(it) == _family(own)]
        return [peer for it in alike for peer in self._peers[it]], _SIBLING


def _class_of(work: BrickWork) -> _Class:
    return _Class(work.op, work.bits, work.is_decoding)


def _family(found: _Class) -> str:
    if found.op == ATTENTION:
        return ATTENTION
    return "product" if found.op in ("MatMul", "MatMulNBits", "MoE", "QMoE") else "small"


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def _without_outliers(peers: Sequence[_Peer]) -> Sequence[_Peer]:
    """Return peers whose ratios are no farther from the median than a few deviations."""
    middle = median(it.log_ratio for it in peers)
    most = _OUTLIER * _TO_DEVIATION * median(abs(it.log_ratio - middle) for it in peers)
    return [it._replace(log_ratio=min(middle + most, max(middle - most, it.log_ratio))) for it in peers]


@lru_cache(maxsize=16)
def _quick_rates(system: str, threads: int) -> HostRates:
    try:
        return HostRates.of_peaks(quick_peaks(system, threads))
    except PeaksError:
        return HostRates.unknown(threads)
