"""What bricks save: the wall clock of one run of all bricks of the fifty models, beside running each model 100 times.

usage: python -m benchmarks.savings [--data-dir DIR] [--level LEVEL] [MODEL ...]

DIR is where `python -m benchmarks.accuracy` has measured the models end to end. What 100 runs of each take is reckoned
from that, without the time to load them. The run of the bricks is real: from nothing, with the start of the workers,
loading, calibration and rounds that are repeated. Its estimates are compared with the same end-to-end latencies.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.accuracy import DEFAULT_DATA, LEVELS

RUNS = 100
PROMISED = 10.0


def main() -> int:
    """Runs the bricks and compares; exit status 1 if less is saved than promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["table1"])
    parser.add_argument("--data-dir", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--level", choices=LEVELS, default=LEVELS[0])
    arguments = parser.parse_args()
    known = {it["model"]: it for it in estimates(arguments.data_dir, arguments) if it["measured_ms"]}
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        dlbricks(Path(folder), "run", *arguments.models, "--level", arguments.level, "--json")
        seconds = time.monotonic() - start
        found = [it for it in estimates(Path(folder), arguments) if it["complete"] and it["model"] in known]
    whole = RUNS * math.fsum(known[it["model"]]["measured_ms"] for it in found) / 1000
    errors = [it["sequential_ms"] / known[it["model"]]["measured_ms"] - 1 for it in found]
    print(f"all bricks of {len(found)} models   {seconds:8.0f} s")
    print(f"each model {RUNS} times      {whole:8.0f} s, {whole / seconds:.1f} times as long")
    mean = math.fsum(map(abs, errors)) / len(errors)
    print(f"mean absolute error        {mean:8.1%}, worst {max(errors, key=abs):+.1%}")
    return 0 if whole / seconds >= PROMISED else 1


def estimates(data: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The estimates of the models by what a data folder holds."""
    told = dlbricks(data, "estimate", *arguments.models, "--level", arguments.level, "--json")
    found: list[dict[str, Any]] = json.loads(told)
    return found


def dlbricks(data: Path, *words: str) -> str:
    """Runs the command line as a person would."""
    command = [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(data), *words]
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, check=False).stdout


if __name__ == "__main__":
    sys.exit(main())
