"""Compare estimates by longer sequences with those by single layers, and with whole models.

usage: python -m benchmarks.granularities [MODEL ...]

Each cut is measured from nothing, bricks and models in the same rounds, and its results are then deleted: two processes
differ by more than what is looked for here. The last column cuts with `--cut runnable` and a G that no model exceeds:
each model is then one sequence, and what is left of the error is what two measurements of the same thing differ by.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.command_line import quietly

MODELS = (
    "table1:16",
    "table1:10",
    "table1:14",
    "table1:7",
    "table1:20",
    "resnet18_v1",
    "resnet50_v2",
    "densenet121",
    "inceptionv3",
    "mobilenetv2_1.0",
)
CUTS = (*((f"G={g}", ("-g", str(g))) for g in (1, 2, 4, 6, 10)), ("whole", ("-g", "100000", "--cut", "runnable")))


def main() -> int:
    """Measures each model at each granularity and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    arguments = parser.parse_args()
    print("model            " + "".join(f"{name:>9}" for name, _ in CUTS))
    errors: dict[str, list[float]] = {name: [] for name, _ in CUTS}
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            for name, words in CUTS:
                errors[name].append(error(Path(folder), model, words))
            print(f"{model:17}" + "".join(f"{errors[name][-1]:+9.1%}" for name, _ in CUTS), flush=True)
    print(f"{'mean absolute':17}" + "".join(f"{sum(map(abs, found)) / len(found):9.1%}" for found in errors.values()))
    return 0


def error(data: Path, model: str, words: tuple[str, ...]) -> float:
    """The error of the model's estimate after a run at such a cut."""
    quietly(data, "results", "delete", "--all", "--yes")
    quietly(data, "run", model, "--end-to-end", *words)
    return float(json.loads(quietly(data, "estimate", model, "--json", *words))[0]["error"])


if __name__ == "__main__":
    sys.exit(main())
