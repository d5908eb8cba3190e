"""Compare the latencies of bricks in excerpts, as suites have them, with those in the model, in the same rounds.

usage: python -m benchmarks.excerpts [--runtime R] [MODEL ...]

In each round the model and the networks of its excerpts run once, with one thread, so that both see the same host.
"""

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from unittest.mock import patch

from dlbricks_tui.answers.opening import library
from dlbricks_tui.bricks.carriers import Carrier, whole
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.measure import carriers
from dlbricks_tui.measure.jobs import CutModel, cut_model
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.launch import create_run
from dlbricks_tui.runs.planning import Workload
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.share.suites.joining import joined_excerpts
from dlbricks_tui.share.suites.onnx_packing import OnnxPacking
from dlbricks_tui.share.suites.onnx_reader import OnnxReader
from dlbricks_tui.share.suites.packing import SuiteModel
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement

MODELS = ("squeezenet1.1", "mobilenet0.5", "resnet18_v1")


def main() -> int:
    """Print a line per model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--runtime", default="onnxruntime")
    args = parser.parse_args()
    print(f"{'model':20}{'bricks':>8}{'excerpts ms':>13}{'model ms':>10}{'difference':>12}   by kind of layer")
    for name in args.models:
        with tempfile.TemporaryDirectory() as folder:
            data = DataFolder(Path(folder))
            runtime = Registry(data.path).find(args.runtime).with_threads(1)
            compare(name, runtime, data)
    return 0


def compare(name: str, runtime: Runtime, data: DataFolder) -> None:
    """Measure one model, and print its line."""
    with ExitStack() as opened:
        framework = opened.enter_context(WorkerFramework(runtime, data.log / "framework.log"))
        loader = Loader(data.cache, framework, framework)
        (source,) = library(data, runtime.traits.format).find_all([name])
        graph, written = (loader.load(source, level) for level in (Level.FUSED, Level.WRITTEN))
        drafts = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        reader = OnnxReader(loader, Level.FUSED, drafts, fingerprint().memory_bytes)
        found = list(OnnxPacking(reader.read).packed(SuiteModel(decompose(graph), written), {}))
        excerpts = {it.pair.brick: it for it in found if it.content}
        read = [(it.cold, reader.read(it.content)) for it in excerpts.values()]
        joined = joined_excerpts([it for cold, it in read if not cold], [it for cold, it in read if cold])
    own = cut_model(decompose(graph.named("model")))
    networks = [replace(cut_model(decompose(it.graph)), edges=it.edges) for it in joined]
    there, here = measured([own, *networks], runtime, data)
    uses = Counter(brick_of(graph, (layer.index,)).key for layer in graph.layers)
    kinds = {brick_of(graph, (layer.index,)).key: layer.kind.value for layer in graph.layers}
    both = [key for key in uses if key in there and key in here]
    by_kind: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for key in both:
        by_kind[kinds[key]][0] += uses[key] * there[key]
        by_kind[kinds[key]][1] += uses[key] * here[key]
    one, other = sum(it[0] for it in by_kind.values()), sum(it[1] for it in by_kind.values())
    largest = sorted(by_kind.items(), key=lambda it: -it[1][1])[:3]
    words = ", ".join(f"{kind} {there / here - 1:+.1%} of {here:.3f}" for kind, (there, here) in largest)
    counts = f"{len(both):>4}/{len(uses):<3}"
    print(f"{name:20}{counts}{one:13.3f}{other:10.3f}{one / other - 1:12.2%}   {words}", flush=True)


def measured(models: Sequence[CutModel], runtime: Runtime, data: DataFolder) -> Sequence[dict[str, float]]:
    """Return the milliseconds of each brick in excerpts, and in the model."""
    request = RunRequest(models=(), runtime=runtime, method=Method.INSIDE)
    folder = create_run(request, data)
    with patch.object(carriers, "cover", every_network):
        execute(
            folder, request, Workplace(data), host_queue(), with_estimates=False, read=lambda _: Workload(tuple(models))
        )
    found: dict[bool, dict[str, list[float]]] = {True: defaultdict(list), False: defaultdict(list)}
    with ResultsDatabase(data.store) as store:
        for it in store.records(Measurement):
            found[dict(it.occurrence)["model"] == "model"][it.brick].append(it.statistics.trimmed_mean_ms)
    return [{key: fmean(values) for key, values in found[is_model].items()} for is_model in (False, True)]


def every_network(graphs: Sequence[LayerGraph], *_: object) -> list[Carrier]:
    """Return all networks as carriers, instead of the fewest."""
    return [whole(graph) for graph in graphs]


if __name__ == "__main__":
    sys.exit(main())
