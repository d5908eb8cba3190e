"""Compare predicted with measured gains of what-ifs, as a table.

usage: python -m benchmarks.proofs [--runtime R,...] [--threads N] [--kinds K,...] [--promising] [--data FOLDER]
                                   MODEL [MODEL ...]

For each model and runtime, `dlbricks analyze` measures what the what-ifs lack and proves them all; with --promising
only those predicted to gain more than 5 %. A kind is to be trusted if nine in ten of these gains have the right sign
and lie within 10 points.
With --data the results stay in that folder: a model whose what-ifs all have proofs there is not measured again. On a
quiet host with two cores, a model takes about four minutes on each runtime.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command_line import ROOT, command, told

WORTH, POINTS, PROMISED = 0.05, 0.10, 0.9


class Compared(NamedTuple):
    """A what-if with its predicted and its measured gain, each with its interval."""

    model: str
    runtime: str
    what_if: str
    kind: str
    predicted: float
    predicted_interval: Sequence[float]
    measured: float
    measured_interval: Sequence[float]

    @property
    def counts(self) -> bool:
        """True if the prediction promises something."""
        return self.predicted > WORTH

    @property
    def holds(self) -> bool:
        """True if the measured gain has the sign of the predicted one and lies within 10 points."""
        return self.measured > 0 and abs(self.measured - self.predicted) <= POINTS


def main() -> int:
    """Measure, prove and compare; exit status 1 if too few predictions hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--runtime", default="mxnet,onnxruntime,openvino")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--kinds")
    parser.add_argument("--promising", action="store_true")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, began = arguments.data or Path(folder), time.monotonic()
        found = [
            each
            for model in arguments.models
            for runtime in arguments.runtime.split(",")
            for each in compared(data, model, runtime, arguments)
        ]
        seconds = time.monotonic() - began
    show(found)
    sys.stderr.write(f"{len(found)} proofs in {seconds / 60:.0f} min: {' '.join(command(data)[3:])}\n")
    promising = [it for it in found if it.counts]
    return 0 if sum(it.holds for it in promising) >= PROMISED * len(promising) else 1


def compared(data: Path, model: str, runtime: str, arguments: argparse.Namespace) -> list[Compared]:
    """Return the what-ifs of a model that were proved; those with a proof in the store are not proved again."""
    what = ["analyze", model, "--runtime", runtime]
    what += [] if arguments.threads is None else ["--threads", str(arguments.threads)]
    of_kinds = [] if arguments.kinds is None else ["--kinds", arguments.kinds]
    known = told(data, *what)
    if not any(it["proof"] for it in what_ifs_of(known)):
        carry_out(data, *what, *of_kinds, "--measure")
        known = told(data, *what)
    unproved = [
        it["id"]
        for it in what_ifs_of(known)
        if it["possible"] and it["proof"] is None and (it["gain"] > WORTH or not arguments.promising)
    ]
    if unproved:
        carry_out(data, *what, *of_kinds, "--prove", ",".join(unproved))
    predictions = {it["id"]: it for it in what_ifs_of(known)}
    return [
        Compared(
            model,
            runtime,
            it["id"],
            it["kind"],
            predictions[it["id"]]["gain"],
            predictions[it["id"]]["interval"],
            it["proof"]["gain"],
            it["proof"]["interval"],
        )
        for it in what_ifs_of(told(data, *what) if unproved else known)
        if it["proof"] is not None and it["id"] in predictions
    ]


def what_ifs_of(analyses: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Return the what-ifs of all analyses; none if there is none."""
    return [it for each in analyses or () for it in each["what_ifs"]]


def carry_out(data: Path, *words: str) -> None:
    """Run a command and wait for it; what it could not do is missing in the store."""
    subprocess.run(command(data, *words), cwd=ROOT, check=False, stdout=subprocess.DEVNULL)


def show(found: Iterable[Compared]) -> None:
    """Print a row for each what-if, then a row for each kind."""
    found = list(found)
    rows: list[Sequence[Any]] = [
        ("model", "runtime", "what-if", "predicted", "measured", "off by"),
        ("---", "---", "---", "--:", "--:", "--:"),
    ]
    for it in found:
        off = f"{100 * (it.measured - it.predicted):+.0f}"
        predicted = with_interval(it.predicted, it.predicted_interval)
        rows.append(
            (it.model, it.runtime, it.what_if, predicted, with_interval(it.measured, it.measured_interval), off)
        )
    by_kind: dict[str, list[Compared]] = defaultdict(list)
    for it in found:
        by_kind[it.kind].append(it)
    kinds: list[Sequence[Any]] = [("kind", "proofs", "predicted above 5 %", "hold"), ("---", "--:", "--:", "--:")]
    for kind, those in {**by_kind, "all": found}.items():
        promising = [it for it in those if it.counts]
        kinds.append((kind, len(those), len(promising), sum(it.holds for it in promising)))
    for table in (rows, kinds):
        for row in table:
            print(f"| {' | '.join(map(str, row))} |")
        print()


def with_interval(gain: float, interval: Sequence[float]) -> str:
    """Return a gain in percent with its interval."""
    low, high = interval
    return f"{100 * gain:+.0f} ({100 * low:+.0f} to {100 * high:+.0f})"


if __name__ == "__main__":
    sys.exit(main())
