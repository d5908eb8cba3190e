"""Compare the latency of a framework that runs operators side by side with the compositions that predict it.

usage: python -m benchmarks.parallel_engine [--framework FRAMEWORK] [--workers K] [MODEL ...]

Each model runs, and so do its bricks, with one thread per operator. End to end it runs in two ways: operator after
operator as usual, and K at a time: on as many workers of MXNet's engine with bulk execution off, or by as many threads
of ONNX Runtime's parallel execution. The second is what the composition for K workers is about.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import onnx_models
from benchmarks.command_line import quietly

MXNET, ONNX_RUNTIME = "mxnet", "onnxruntime"
MODELS = ("inceptionv3", "squeezenet1.1", "densenet121", "resnet50_v1")
ONNX_MODELS = ("light_inception_v1", "light_inception_v2", "light_squeezenet", "light_densenet121", "light_resnet50")
SEQUENTIAL, PARALLEL = "one-after-another", "side-by-side"


def main() -> int:
    """Measures the models in both ways and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--framework", choices=(MXNET, ONNX_RUNTIME), default=MXNET)
    parser.add_argument("--workers", type=int, default=2, metavar="K")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        register(data, SEQUENTIAL, arguments.framework)
        register(data, PARALLEL, arguments.framework, "--at-once", str(arguments.workers))
        print("model               one after another         side by side    gained")
        print(f"                estimate   measured   {arguments.workers} workers   measured   estimate  measured")
        for model in arguments.models or usual_models(data, arguments.framework):
            usual = estimated(data, model, SEQUENTIAL, arguments.workers)
            engine = estimated(data, model, PARALLEL, arguments.workers)
            foretold = usual["sequential_ms"] / usual["workers_ms"] - 1
            gained = usual["measured_ms"] / engine["measured_ms"] - 1
            print(
                f"{Path(model).stem:18} {usual['sequential_ms']:8.2f}   {usual['measured_ms']:8.2f}   "
                f"{usual['workers_ms']:9.2f}   {engine['measured_ms']:8.2f}   {foretold:8.1%}  {gained:8.1%}",
                flush=True,
            )
    return 0


def usual_models(data: Path, framework: str) -> Sequence[str]:
    """Models with branches, and one that has hardly any."""
    if framework == MXNET:
        return MODELS
    onnx_models.main(data / "onnx")
    return [str(data / "onnx" / f"{name}.onnx") for name in ONNX_MODELS]


def register(data: Path, name: str, framework: str, *settings: str) -> None:
    """This interpreter as a runtime with such settings."""
    named = ["--name", name, "--framework", framework, "--threads", "1"]
    quietly(data, "runtimes", "add", sys.executable, *named, *settings)


def estimated(data: Path, model: str, runtime: str, workers: int) -> dict[str, Any]:
    """The model's estimate after a run of it, by its bricks and end to end."""
    quietly(data, "run", model, "--end-to-end", "--runtime", runtime)
    told = quietly(data, "estimate", model, "--runtime", runtime, "--workers", str(workers), "--json")
    found: dict[str, Any] = json.loads(told)[0]
    return found


if __name__ == "__main__":
    sys.exit(main())
