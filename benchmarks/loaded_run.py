"""Measure how far a run is off when another program takes one core for 30 s in the middle of it.

usage: python -m benchmarks.loaded_run [--seconds S] [MODEL ...]

Each model is measured three times, in data folders of their own: with the load, which begins when the rounds have
begun, and before and after it on the quiet host, as two quiet runs differ, too. The promise: rounds under load are
repeated, and estimates stay within 2 % of the mean of the quiet ones. Exit status 1 if one does not.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean

from benchmarks.command_line import command, quietly

MODELS = ("table1:16", "table1:14", "table1:20")
# The words of the progress lines while bricks are sampled, and of the count at the end.
SAMPLED, REPEATED = "so far", re.compile(r"([\d,]+) rounds? repeated")
LOAD = "import sys, time\nend = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end: pass"
MOST_APART = 0.02


def main() -> int:
    """Measures each model quiet and loaded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--seconds", type=float, default=30.0)
    arguments = parser.parse_args()
    apart = 0
    for model in arguments.models:
        before_ms, _ = measured(model, 0.0)
        loaded_ms, repeated = measured(model, arguments.seconds)
        after_ms, _ = measured(model, 0.0)
        difference = loaded_ms / fmean((before_ms, after_ms)) - 1
        apart += abs(difference) > MOST_APART
        print(
            f"{model:12} loaded for {arguments.seconds:.0f} s {loaded_ms:9.3f} ms, quiet {before_ms:9.3f} ms before "
            f"and {after_ms:9.3f} after: {difference:+.2%}, {repeated} rounds repeated",
            flush=True,
        )
    return 1 if apart else 0


def measured(model: str, load_seconds: float) -> tuple[float, int]:
    """The sum of the model's bricks, and how many rounds were repeated."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        told = list[str]()
        load: subprocess.Popen[bytes] | None = None
        # The calibration is not what is looked at: it would take up most of the time under load.
        words = ("run", model, "--calibrate", "never", "--fixed-runs", "100", "--end-to-end")
        with subprocess.Popen(
            command(data, *words), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as run:
            assert run.stdout is not None
            for line in run.stdout:
                told.append(line)
                if load_seconds and load is None and SAMPLED in line:
                    load = subprocess.Popen([sys.executable, "-c", LOAD, str(load_seconds)])
        if load is not None:
            load.wait()
        (estimate,) = json.loads(quietly(data, "estimate", model, "--json"))
        return float(estimate["sequential_ms"]), _repeated(told)


def _repeated(lines: list[str]) -> int:
    found = [count for line in lines for count in REPEATED.findall(line)]
    return int(found[-1].replace(",", "")) if found else 0


if __name__ == "__main__":
    sys.exit(main())
