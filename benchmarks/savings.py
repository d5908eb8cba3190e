"""What bricks save: the wall clock of one run of all bricks of the fifty models, beside running each model 100 times.

usage: python -m benchmarks.savings [--level LEVEL] [MODEL ...]

Both are run here, one after the other, from nothing. The bricks come first, with the start of the workers, loading,
calibration and rounds that are repeated. Then each model is timed end to end some times, as often as a run does; what
100 times take is reckoned from that, without the time to load it. The estimates are compared with the same latencies.
"""

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.command_line import dlbricks, told
from dlbricks_tui.models.graph import Level

RUNS = 100
PROMISED = 10.0


def main() -> int:
    """Runs the bricks and compares; exit status 1 if less is saved than promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["table1"])
    parser.add_argument("--level", choices=[level.value for level in Level], default=Level.FUSED.value)
    arguments = parser.parse_args()
    asked = ("run", *arguments.models, "--level", arguments.level)
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        dlbricks(Path(folder), *asked)
        seconds = time.monotonic() - start
        dlbricks(Path(folder), *asked, "--end-to-end")
        estimates = told(Path(folder), "estimate", *arguments.models, "--level", arguments.level) or []
        found = [it for it in estimates if it["complete"] and it["measured_ms"]]
    whole = RUNS * math.fsum(it["measured_ms"] for it in found) / 1000
    errors = [it["sequential_ms"] / it["measured_ms"] - 1 for it in found]
    print(f"all bricks of {len(found)} models   {seconds:8.0f} s")
    print(f"each model {RUNS} times      {whole:8.0f} s, {whole / seconds:.1f} times as long")
    mean = math.fsum(map(abs, errors)) / len(errors)
    print(f"mean absolute error        {mean:8.1%}, worst {max(errors, key=abs):+.1%}")
    return 0 if whole / seconds >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
