"""Made-up results of models, as a run would store them."""

import os
import random
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence, decompose
from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import BrickForm, EndToEnd, Measurement, Record, RuntimeRecord, System
from dlbricks_tui.store.statistics import summarise

WHEN = "2026-11-21T08:00:00.000000+00:00"
RUNTIME = RuntimeRecord(
    id="mxnet-1.9.1 threads-2", name="mxnet, 2 threads", framework="mxnet", version="1.9.1", python="3.11", threads=2
)
ONE_THREAD = replace(RUNTIME, id="mxnet-1.9.1 threads-1", name="mxnet, 1 thread", threads=1)
OTHER_SYSTEM = System(
    id="c5.xlarge-4c-1f2e3d4c", name="c5.xlarge, 4 cores", cpu="Xeon 8124M", cores=4, memory_bytes=8 << 30
)
PROTOCOL = "hot-1"
SAMPLES = 25


class NoFramework:
    """Refuses to be asked: the samples contain their types."""

    identity = "mxnet-1.9.1"

    def infer(self, symbol: str, shapes: object) -> GraphAnswer:
        raise AssertionError("the samples bring their types along")

    fuse = infer


@cache
def source_called(name: str) -> ModelSource:
    """Return a sample model."""
    return next(source for source in Library(SAMPLE_MODELS, SAMPLE_MODELS).samples() if source.name == name)


@cache
def graph_of(name: str) -> LayerGraph:
    """Return the written layers of a sample model."""
    return Loader(Path(os.devnull, "folder"), NoFramework()).load(source_called(name))


def store_run(
    data: DataFolder,
    names: Iterable[str],
    *,
    share: float = 1.0,
    end_to_end: bool = True,
    runtime: RuntimeRecord = RUNTIME,
    factor: float = 1.0,
) -> None:
    """Store results of all bricks of models at G=1 or of a share of them: on this host, and half as fast on another.

    They take `factor` times as long as those of the usual runtime.
    """
    with ResultsDatabase(data.store) as store:
        for name in names:
            store.add(*_records(name, share, end_to_end, runtime, factor, fingerprint()))


@cache
def _records(
    name: str, share: float, end_to_end: bool, runtime: RuntimeRecord, factor: float, here: System
) -> tuple[Record, ...]:
    return tuple(_made_up(decompose(graph_of(name)), share, end_to_end, runtime, factor, here))


def _made_up(
    decomposition: Decomposition, share: float, end_to_end: bool, runtime: RuntimeRecord, factor: float, here: System
) -> Iterator[Record]:
    graph = decomposition.graph
    bricks = {(it.brick.key, it.context): it for it in decomposition.occurrences}
    measured = list(bricks.values())[: round(share * len(bricks))]
    yield runtime
    for system, slower in ((here, factor), (OTHER_SYSTEM, 2.0 * factor)):
        yield system
        way: dict[str, Any] = {"system": system.id, "runtime": runtime.id, "level": graph.level, "protocol": PROTOCOL}
        for it in measured:
            seed = _seed(graph, it)
            samples = _samples(slower * _latency_ms(seed), seed)
            yield BrickForm(key=it.brick.key, canonical=it.brick.canonical)
            yield Measurement(**way, brick=it.brick.key, context=it.context, when=WHEN, run="r1", **samples)
        if end_to_end:
            total = sum(slower * _latency_ms(_seed(graph, it)) for it in decomposition.occurrences)
            whole = whole_model(graph).key
            yield EndToEnd(**way, model=whole, name=graph.name, when=WHEN, run="r1", **_samples(total * 1.02, "whole"))


def _seed(graph: LayerGraph, occurrence: Occurrence) -> str:
    """Return the operations and shapes; unlike the keys of bricks they do not depend on the form of bricks."""
    layers = [graph.layers[index] for index in occurrence.sequence.layers]
    return repr(
        [(layer.kind.value, [it.shape for it in layer.data], [it.shape for it in layer.outputs]) for layer in layers]
    )


def _latency_ms(seed: str) -> float:
    return 0.02 + zlib.crc32(seed.encode()) / 2**32 * 0.4


def _samples(base_ms: float, seed: str) -> dict[str, Any]:
    draw = random.Random(seed)
    samples = tuple(base_ms * (1 + 0.03 * draw.random()) for _ in range(SAMPLES))
    return {"samples_ms": samples, "statistics": summarise(samples)}
