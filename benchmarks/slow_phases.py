"""Compare figures of models measured alone with those beside a program that takes a core for half of each minute.

usage: python -m benchmarks.slow_phases [--minutes M] [--on S] [--off S] [--threads N] [MODEL ...]

Each model is measured in two data folders: alone, then beside the other program. The promise: no figure is more than
10 % off unless its interval holds the other one, or a sentence says that it is in doubt. Exit status 1 if one is.

Without models these are the sample ONNX models and the light networks of the onnx package, about 18. When the time is
over, the models so far are reported.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command_line import told
from benchmarks.onnx_models import LIGHT, opened
from dlbricks_tui.folders import SAMPLE_MODELS

MOST_APART = 0.1
BURNER = """
import sys, time
on, off = map(float, sys.argv[1:])
while True:
    end = time.monotonic() + on
    while time.monotonic() < end: pass
    time.sleep(off)
"""


class Figures(NamedTuple):
    """The estimate and the measured latency of a model, each with its interval, and the doubts about them."""

    estimate: tuple[float, float, float]
    measured: tuple[float, float, float]
    doubts: Sequence[str]


def main() -> int:
    """Measure all models alone, then beside the other program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--minutes", type=float, default=40.0, help="the longest time for all models")
    parser.add_argument("--on", type=float, default=30.0, help="seconds in which the other program computes")
    parser.add_argument("--off", type=float, default=30.0, help="seconds in which it sleeps")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    until = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as folder:
        models = arguments.models or written(Path(folder) / "models")
        threads = ("--threads", str(arguments.threads))
        # Half of the time for either part.
        now = time.monotonic()
        alone = dict(measured(Path(folder) / "alone", models, threads, now + (until - now) / 2))
        with burning(arguments.on, arguments.off):
            beside = dict(measured(Path(folder) / "beside", list(alone), threads, until))
        return report(alone, beside, len(models))


def written(folder: Path) -> list[str]:
    """Write the light networks, and return them and the sample models."""
    import onnx

    folder.mkdir(parents=True)
    for path in sorted(LIGHT.glob("*.onnx")):
        onnx.save(opened(onnx.load(path)), folder / path.name)
    return [str(path) for path in (*sorted((SAMPLE_MODELS / "onnx").glob("*.onnx")), *sorted(folder.glob("*.onnx")))]


@contextmanager
def burning(on_seconds: float, off_seconds: float) -> Iterator[None]:
    """Let another program take a core, on and off, inside of the `with` block."""
    with subprocess.Popen([sys.executable, "-c", BURNER, str(on_seconds), str(off_seconds)]) as burner:
        try:
            yield
        finally:
            burner.kill()


def measured(data: Path, models: Sequence[str], threads: Sequence[str], until: float) -> Iterator[tuple[str, Figures]]:
    """Yield the figures of each model until the time is over."""
    for model in models:
        if time.monotonic() > until:
            return
        answer = told(data, "run", model, *threads, "--runtime", "onnxruntime", "--end-to-end", "--quiet")
        found = answer["models"][0] if answer and answer["models"] else {}
        if found.get("sequential_ms") and found.get("measured_ms"):
            print(f"{Path(model).stem} in {data.name}: {found['measured_ms']:.3f} ms", file=sys.stderr, flush=True)
            yield model, figures_of(found)


def figures_of(found: dict[str, Any]) -> Figures:
    """Return the figures in a JSON document of `dlbricks run`."""
    return Figures(
        (found["sequential_ms"], *found["interval_ms"]),
        (found["measured_ms"], *found["measured_interval_ms"]),
        found["doubts"],
    )


def report(alone: dict[str, Figures], beside: dict[str, Figures], models: int) -> int:
    """Print the difference of each figure, and what covers it; return the exit status."""
    print(f"{'model':24} {'figure':10} {'alone ms':>10} {'beside ms':>10} {'apart':>9}  covered by")
    silent = 0
    for model, now in beside.items():
        was = alone[model]
        for name, one, other in (("estimate", was.estimate, now.estimate), ("measured", was.measured, now.measured)):
            apart = other[0] / one[0] - 1
            by = covered(one[0], other, now.doubts)
            silent += abs(apart) > MOST_APART and not by
            print(f"{Path(model).stem:24} {name:10} {one[0]:10.3f} {other[0]:10.3f} {apart:+9.1%}  {by or '-'}")
    print(f"{len(beside)} of {models} models; {silent} figures are more than {MOST_APART:.0%} off and do not say so")
    return 1 if silent else 0


def covered(alone_ms: float, beside: tuple[float, float, float], doubts: Sequence[str]) -> str:
    """Return what tells that a figure may be as much off as it is; empty if nothing does."""
    _, low_ms, high_ms = beside
    if low_ms <= alone_ms <= high_ms:
        return "interval"
    return "remark" if doubts else ""


if __name__ == "__main__":
    sys.exit(main())
