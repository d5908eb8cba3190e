"""Compare estimates through a suite with those of a run of the models themselves, in turns.

usage: python -m benchmarks.suite [MODEL ...]

Three data folders play the owner, the vendor of the machine and nobody, who runs the models directly. In every turn the
vendor measures the suite and nobody the models, both anew; the owner imports. What counts are the medians of the turns.
Exit status 1 if an estimate through the suite is more than 3 % off.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

MODELS = ("squeezenet1.1", "mobilenet0.5")
TURNS = 4
SAMPLES = "30"
TOLERANCE = 0.03


def main() -> int:
    """Prints a line per model."""
    models = tuple(sys.argv[1:]) or MODELS
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        asked = (*models, "-o", str(here / "suite"), "--decoys", "1", "--decoys-from", "mobilenet0.25")
        dlbricks(here / "owner", "suite", "export", *asked)
        through: dict[str, list[float]] = {model: [] for model in models}
        directly: dict[str, list[float]] = {model: [] for model in models}
        for turn in range(TURNS):
            results = here / f"results{turn}.json"
            dlbricks(here / f"vendor{turn}", "suite", "run", str(here / "suite"), "-o", str(results), *sampling())
            system = dlbricks(here / "owner", "suite", "import", str(results))["system"]
            for estimate in dlbricks(here / "owner", "estimate", *models, "--system", system):
                through[estimate["model"]].append(estimate["sequential_ms"])
            for estimate in dlbricks(here / f"nobody{turn}", "run", *models, *sampling())["models"]:
                directly[estimate["model"]].append(estimate["sequential_ms"])
    print(f"{'model':20}{'through ms':>12}{'directly ms':>13}{'difference':>12}   turns through, turns directly")
    worst = 0.0
    for model in models:
        one, other = median(through[model]), median(directly[model])
        worst = max(worst, abs(one / other - 1))
        turns = " ".join(f"{it:.3f}" for it in through[model]) + " | " + " ".join(f"{it:.3f}" for it in directly[model])
        print(f"{model:20}{one:12.3f}{other:13.3f}{one / other - 1:12.2%}   {turns}")
    return 0 if worst <= TOLERANCE else 1


def sampling() -> tuple[str, ...]:
    """How vendor and nobody measure: in the same way, and without constants, which would be equal anyway."""
    return ("--fixed-runs", SAMPLES, "--calibrate", "never")


def dlbricks(data: Path, *arguments: str) -> Any:
    """The document that a command prints."""
    command = [sys.executable, "-m", "dlbricks_tui", *arguments, "--json", "--data-dir", str(data)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"dlbricks {' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
