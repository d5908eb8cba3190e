"""Compare the times of layers in whole models, by the runtime's own profiler, with the times of their bricks.

usage: python -m benchmarks.layer_times --data FOLDER [--runtime NAME] [--threads N] [--inferences N] [MODEL ...]

MODEL is a name that `dlbricks models` lists; without any it is `table1`. Of models with equal files the first counts.
Right before a model is traced, `dlbricks run` measures the bricks that the store in FOLDER lacks, so that both are of
the same minutes. Ctrl-C ends the benchmark with the table of the models so far.

Each model is traced at level `layer`. The profiler adds about the same time to each operator, and does not see the time
between them. So the same time is subtracted from each layer, limited by the shortest, and the rest is shared out in
proportion: together the layers take as long as inferences of the same network without the profiler. The table has a row
for each kind of layer:

share          of the time of all layers with a stored brick
difference     of the sum of the brick times from the sum of the times in the models
spread         the mean of how much a layer's brick time differs from its time in the model, weighted by that time
"""

import argparse
import math
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.measure.carriers import corrected
from dlbricks_tui.models.content import content_sha256
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import TABLE1_PREFIX, Library, ModelSource
from dlbricks_tui.runs.control import StopSignals
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.traces.layer_times import times_by_layer
from dlbricks_tui.traces.measuring import trace_model
from dlbricks_tui.traces.messages import TraceOrder
from dlbricks_tui.traces.trace import PLAIN_MS, LevelTrace, Trace, TraceLevel, TrackKind

_NS_PER_MS = 1e6


class Compared(NamedTuple):
    """A layer in a model, with the time of its brick."""

    kind: str
    in_model_ms: float
    brick_ms: float


def main() -> int:
    """Print a line for each model, then the table; return 1 if a model could not be compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[TABLE1_PREFIX])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runtime")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--inferences", type=int, default=10)
    args = parser.parse_args()
    data = DataFolder(args.data.absolute())
    registry = Registry(data.path)
    runtime = (registry.default() if args.runtime is None else registry.find(args.runtime)).with_threads(args.threads)
    sources = Library(SAMPLE_MODELS, data.path, runtime.traits.format).find_all(args.models)
    networks = {content_sha256(source.path): source for source in reversed(sources)}
    chosen = [source for source in sources if source in networks.values()]
    found: list[Compared] = []
    done = failures = 0
    try:
        for source in chosen:
            try:
                measure_bricks(source, runtime, data)
                of_model = compared(traced(source.in_format(runtime.traits.format), runtime, data, args.inferences))
            except UserError as error:
                print(f"{source.name:34} {error}", file=sys.stderr, flush=True)
                failures += 1
                continue
            found += of_model
            done += 1
            print(line_of(source, of_model), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("interrupted: the table has the models so far", file=sys.stderr)
    print(f"{done} models of {len(chosen)} that differ")
    for line in table(found):
        print(line)
    return 1 if failures or not found else 0


def measure_bricks(source: ModelSource, runtime: Runtime, data: DataFolder) -> None:
    """Measure the bricks of a model that the store lacks."""
    command = ["run", source.name, "--runtime", runtime.name, "--no-end-to-end"]
    if runtime.settings.threads is not None:
        command += ["--threads", str(runtime.settings.threads)]
    program = [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(data.path)]
    taken = subprocess.run([*program, *command], capture_output=True, text=True, check=False)
    if taken.returncode:
        raise RunError(f"its bricks cannot be measured: {taken.stderr.strip().splitlines()[-1]}")


def traced(source: ModelSource, runtime: Runtime, data: DataFolder, inferences: int) -> Trace:
    """Return the trace of a model at level `layer`."""
    order = TraceOrder(
        source=source,
        execution=Execution(runtime, Level.FUSED),
        levels=(TraceLevel.LAYER,),
        inferences=inferences,
    )
    with StopSignals(ignore_hangup=False) as signals:
        return trace_model(order, Workplace(data), signals, lambda _: None, host_queue())


def compared(trace: Trace) -> list[Compared]:
    """Return the layers whose bricks have a stored time."""
    (level,) = trace.levels
    in_model_ms = without_profiler(level)
    return [
        Compared(layer.kind, in_model_ms.get(layer.index, 0.0), layer.brick_ms)
        for layer in trace.layers
        if layer.brick_ms is not None
    ]


def without_profiler(level: LevelTrace) -> dict[int, float]:
    """Return the time of each layer that takes any, so that all operators add up to inferences without the profiler."""
    layers_ms = {layer: ms for layer, ms in times_by_layer(level).items() if ms > 0}
    added = [span for track in level.tracks if track.kind is TrackKind.ADDED for span in track.spans]
    inferences = len({span.inference for span in added}) or 1
    added_ms = sum(span.duration_ns for span in added) / _NS_PER_MS / inferences
    plain_ms = float(dict(level.totals)[PLAIN_MS] or 0.0)
    together = corrected([*layers_ms.values(), *([added_ms] if added_ms else [])], plain_ms)
    return dict(zip(layers_ms, together, strict=False))


def line_of(source: ModelSource, found: Sequence[Compared]) -> str:
    """Return the line of a model."""
    in_model_ms, brick_ms = math.fsum(it.in_model_ms for it in found), math.fsum(it.brick_ms for it in found)
    told = f"{100 * (brick_ms / in_model_ms - 1):+6.1f} %" if in_model_ms else "no stored brick"
    return f"{source.name:34} {len(found):5} layers {in_model_ms:10.3f} ms {brick_ms:10.3f} ms {told}"


def table(found: Iterable[Compared]) -> list[str]:
    """Return the lines of a table in Markdown, the kinds that take most time first."""
    kinds: dict[str, list[Compared]] = defaultdict(list)
    for it in found:
        kinds[it.kind].append(it)
    everything = [it for those in kinds.values() for it in those]
    total_ms = math.fsum(it.in_model_ms for it in everything)
    rows = sorted(kinds.items(), key=lambda item: -math.fsum(it.in_model_ms for it in item[1]))
    return [
        "| kind | layers | share of time | in-model ms | brick ms | difference | spread |",
        "|---|---|---|---|---|---|---|",
        *(row_of(kind, those, total_ms) for kind, those in [*rows, ("all", everything)]),
    ]


def row_of(kind: str, found: Sequence[Compared], total_ms: float) -> str:
    """Return the row of a kind."""
    in_model_ms, brick_ms = math.fsum(it.in_model_ms for it in found), math.fsum(it.brick_ms for it in found)
    apart_ms = math.fsum(abs(it.brick_ms - it.in_model_ms) for it in found)
    share = in_model_ms / total_ms if total_ms else 0.0
    difference = f"{100 * (brick_ms / in_model_ms - 1):+.1f} %" if in_model_ms else "-"
    spread = f"{100 * apart_ms / in_model_ms:.1f} %" if in_model_ms else "-"
    figures = f"{100 * share:.1f} % | {in_model_ms:.1f} | {brick_ms:.1f} | {difference} | {spread}"
    return f"| {kind} | {len(found)} | {figures} |"


if __name__ == "__main__":
    sys.exit(main())
