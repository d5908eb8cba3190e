"""Run the fifty models of Table 1 end to end in MXNet at batch 1, written and fused.

usage: python -m benchmarks.end_to_end [MODEL ...]

MODEL is a name that `dlbricks models` lists; without any it is `table1`. Each network runs once in a process of its
own, with made-up weights. Exit status 1 if one fails, puts out a number that is not finite, or takes more than 24 GB.
"""

import json
import math
import os
import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.library import TABLE1_PREFIX, Library
from dlbricks_tui.runtime.inside.mxnet_framework import first_meaningful_line, load_mxnet

# What MXNet does with a graph before it runs it, by the level that results.
BACKENDS = {"written": "NONE", "fused": "MKLDNN"}
MOST_GB = 24.0
# In the unit of maxrss, which is bytes on macOS and 1,024 bytes elsewhere.
PER_GB = 1e9 if sys.platform == "darwin" else 1e9 / 1024


class Outcome(NamedTuple):
    """What came of one forward pass."""

    operators: int
    is_finite: bool
    largest: float
    seconds: float
    peak_gb: float

    @property
    def is_sound(self) -> bool:
        return self.is_finite and self.peak_gb <= MOST_GB


def main() -> int:
    """Runs every network at both levels and says how it went."""
    with tempfile.TemporaryDirectory() as folder:
        sources = Library(SAMPLE_MODELS, Path(folder)).find_all(sys.argv[1:] or [TABLE1_PREFIX])
    networks = {source.path: source.inputs for source in sources}
    print(f"{'network':32}{'models':24}{'level':9}operators  largest output  forward s  peak GB")
    sound = 0
    for path, inputs in networks.items():
        models = ",".join(source.table1_id or source.name for source in sources if source.path == path)
        for level, backend in BACKENDS.items():
            outcome = outcome_of(path, dict(inputs), backend)
            told = f"{path.name.removesuffix('-symbol.json'):32}{models:24}{level:9}"
            if isinstance(outcome, str):
                print(f"{told}FAILED: {outcome}", flush=True)
                continue
            sound += outcome.is_sound
            numbers = f"{outcome.operators:9}{outcome.largest:16.4g}{outcome.seconds:11.2f}{outcome.peak_gb:9.2f}"
            print(f"{told}{numbers}{'' if outcome.is_sound else '  NOT SOUND'}", flush=True)
    runs = len(networks) * len(BACKENDS)
    print(f"{len(sources)} models in {len(networks)} files: {sound} of {runs} runs are sound")
    return 0 if sound == runs else 1


def outcome_of(path: Path, inputs: dict[str, Shape], backend: str) -> Outcome | str:
    """The outcome of one network in a process of its own, or why there is none."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(run, path, inputs, backend).result()
        except BrokenProcessPool:
            return "its process died"


def run(path: Path, inputs: dict[str, Shape], backend: str) -> Outcome | str:
    """One forward pass of a network."""
    os.environ.update(MXNET_SUBGRAPH_BACKEND=backend, MXNET_SUBGRAPH_VERBOSE="0")
    mxnet = load_mxnet()
    import numpy

    chance = numpy.random.RandomState(0)
    try:
        symbol = mxnet.symbol.load(str(path))
        executor = symbol.simple_bind(mxnet.cpu(), grad_req="null", **inputs)
        for name, array in (*executor.arg_dict.items(), *executor.aux_dict.items()):
            array[:] = made_up(chance, name, array.shape)
        start = time.perf_counter()
        outputs = [output.asnumpy() for output in executor.forward(is_train=False)]
        seconds = time.perf_counter() - start
        nodes = json.loads(executor.get_optimized_symbol().tojson())["nodes"]
    except mxnet.base.MXNetError as error:
        return first_meaningful_line(error)
    return Outcome(
        operators=sum(node["op"] != "null" for node in nodes),
        is_finite=all(bool(numpy.isfinite(output).all()) for output in outputs),
        largest=max(float(abs(output).max()) for output in outputs),
        seconds=seconds,
        peak_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / PER_GB,
    )


def made_up(chance: Any, name: str, shape: Shape) -> Any:
    """Values with which a deep network neither grows beyond all bounds nor dies out."""
    if name.endswith(("_moving_mean", "_beta", "_bias")):
        return chance.uniform(-0.1, 0.1, shape)
    if name.endswith(("_moving_var", "_gamma")):
        return chance.uniform(0.5, 1.0, shape)
    if name.endswith("_weight"):
        return chance.standard_normal(shape) * math.sqrt(1.6 / math.prod(shape[1:]))
    return chance.uniform(0.2, 0.6, shape)


if __name__ == "__main__":
    sys.exit(main())
