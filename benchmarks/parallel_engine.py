"""What MXNet's parallel engine takes for models with branches, beside the compositions that foretell it.

usage: python -m benchmarks.parallel_engine [--workers K] [MODEL ...]

Each model runs, and so do its bricks, with one thread per operator. End to end it runs in two ways: operator after
operator as usual, and with bulk execution off on K workers of the engine, each of which runs any operator that is
ready. The second is what the composition for K workers is about.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

MODELS = ("inceptionv3", "squeezenet1.1", "densenet121", "resnet50_v1")
SEQUENTIAL, PARALLEL = "one-after-another", "parallel-engine"


def main() -> int:
    """Measures the models in both ways and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--workers", type=int, default=2, metavar="K")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        register(Path(folder), SEQUENTIAL)
        register(
            Path(folder),
            PARALLEL,
            "MXNET_EXEC_BULK_EXEC_INFERENCE=0",
            f"MXNET_CPU_WORKER_NTHREADS={arguments.workers}",
        )
        print("model              one after another       parallel engine    gained")
        print(f"               estimate   measured   {arguments.workers} workers   measured   estimate  measured")
        for model in arguments.models:
            usual = estimated(Path(folder), model, SEQUENTIAL, arguments.workers)
            engine = estimated(Path(folder), model, PARALLEL, arguments.workers)
            foretold = usual["sequential_ms"] / usual["workers_ms"] - 1
            gained = usual["measured_ms"] / engine["measured_ms"] - 1
            print(
                f"{model:14} {usual['sequential_ms']:8.2f}   {usual['measured_ms']:8.2f}   "
                f"{usual['workers_ms']:9.2f}   {engine['measured_ms']:8.2f}   {foretold:8.1%}  {gained:8.1%}",
                flush=True,
            )
    return 0


def register(data: Path, name: str, *variables: str) -> None:
    """This interpreter as a runtime with such settings."""
    settings = [word for variable in variables for word in ("--env", variable)]
    dlbricks(data, "runtimes", "add", sys.executable, "--name", name, "--threads", "1", *settings)


def estimated(data: Path, model: str, runtime: str, workers: int) -> dict[str, Any]:
    """The model's estimate after a run of it, by its bricks and end to end."""
    dlbricks(data, "run", model, "--end-to-end", "--runtime", runtime)
    told = dlbricks(data, "estimate", model, "--runtime", runtime, "--workers", str(workers), "--json")
    found: dict[str, Any] = json.loads(told)[0]
    return found


def dlbricks(data: Path, *words: str) -> str:
    """Runs the command line as a person would; what it says in its favour is not wanted."""
    command = [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(data), *words]
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
