"""Compare estimates through a suite with those of a run of the models themselves, in turns.

usage: python -m benchmarks.suite [--runtime R] [--turns N] [MODEL ...]

Three data folders play the owner, the vendor of the machine, and a third one that runs the models directly. In every
turn the vendor measures the suite and the third folder the models, both anew, with one thread; the owner imports. The
medians of the turns count. Exit status 1 if an estimate through the suite is more than 3 % off.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

MODELS = ("squeezenet1.1", "mobilenet0.5")
HOW = ("--threads", "1")
TOLERANCE = 0.03


def main() -> int:
    """Print a line per model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--runtime", default="mxnet")
    parser.add_argument("--turns", type=int, default=4)
    args = parser.parse_args()
    models = tuple(args.models)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        decoy = ("--decoys", "1", "--decoys-from", "mobilenet0.25", "--runtime", args.runtime)
        dlbricks(here / "owner", "suite", "export", *models, "-o", str(here / "suite.dlbricks"), *decoy)
        through: dict[str, list[float]] = {model: [] for model in models}
        directly: dict[str, list[float]] = {model: [] for model in models}
        for turn in range(args.turns):
            results = here / f"results{turn}.json"
            dlbricks(here / f"vendor{turn}", "suite", "run", str(here / "suite.dlbricks"), "-o", str(results), *HOW)
            owner = here / f"owner{turn}"
            (owner / "suites").mkdir(parents=True)
            for key in (here / "owner" / "suites").iterdir():
                (owner / "suites" / key.name).write_bytes(key.read_bytes())
            system = dlbricks(owner, "suite", "import", str(results))["system"]
            asked = ("--system", system, "--runtime", args.runtime, "--threads", "1")
            for estimate in dlbricks(owner, "estimate", *models, *asked):
                through[estimate["model"]].append(estimate["sequential_ms"])
            bricks = ("--no-end-to-end", "--runtime", args.runtime)
            for estimate in dlbricks(here / f"direct{turn}", "run", *models, *bricks, *HOW)["models"]:
                directly[estimate["model"]].append(estimate["sequential_ms"])
    print(f"{'model':20}{'through ms':>12}{'directly ms':>13}{'difference':>12}   turns through, turns directly")
    worst = 0.0
    for model in models:
        one, other = median(through[model]), median(directly[model])
        worst = max(worst, abs(one / other - 1))
        turns = " ".join(f"{it:.3f}" for it in through[model]) + " | " + " ".join(f"{it:.3f}" for it in directly[model])
        print(f"{model:20}{one:12.3f}{other:13.3f}{one / other - 1:12.2%}   {turns}")
    return 0 if worst <= TOLERANCE else 1


def dlbricks(data: Path, *arguments: str) -> Any:
    """Return the document that a command prints."""
    command = [sys.executable, "-m", "dlbricks_tui", *arguments, "--json", "--data-dir", str(data)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"dlbricks {' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
