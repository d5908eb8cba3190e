"""Stored peaks, and bricks of language models whose latencies a test chooses."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.host.peaks import MEMORY
from dlbricks_tui.language.composing import PROTOCOL
from dlbricks_tui.language.decoder import Decoder
from dlbricks_tui.language.predicting import BrickWork, HostRates, work_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import BrickForm, Peaks, Record
from tests.store.samples import measurement

# Of the peaks.
RATES = HostRates(15e6, 60e6)


def peaks_of(system: str, threads: int, times: float = 1.0) -> Peaks:
    """Return peaks, or so many times as high ones."""
    return Peaks(
        when="2026-11-29T08:00:00+00:00",
        system=system,
        threads=threads,
        arithmetic=(("avx2", 60.0 * times), ("any", 30.0 * times)),
        bandwidth=((MEMORY, 15.0 * times),),
    )


def bricks_of(
    decoders: Iterable[Decoder], ms_of: Callable[[BrickWork], float], *, system: str, runtime: str
) -> list[Record]:
    """Return results of each brick, which took exactly so long, and 2 % to either side."""
    found: list[Record] = []
    for graph in (it.graph for it in decoders):
        for layer in graph.layers:
            brick, ms = brick_of(graph, (layer.index,)), ms_of(work_of(layer))
            own = {"system": system, "runtime": runtime, "protocol": PROTOCOL, "level": Level.FUSED, "run": "run"}
            result = measurement(ms, brick=brick.key, context="", **own)
            exact = replace(result.statistics, trimmed_mean_ms=ms, low_ms=0.98 * ms, high_ms=1.02 * ms)
            found += [BrickForm(key=brick.key, canonical=brick.canonical), replace(result, statistics=exact)]
    return found
