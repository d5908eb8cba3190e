"""How well constants of several kinds make up for what bricks miss, on the networks that systems are calibrated on.

usage: python -m benchmarks.constants [--level LEVEL] [DATA-DIR MODEL ... [--system SYSTEM]]

Each network is measured by bricks and end to end in a run of its own; or the constants are tried on what a data folder
knows of these models, on this host or on the one of that name, and nothing is measured. The first columns say what it
touches in one inference and what its bricks add up to, over end to end, the others by how much its estimate is wrong
when it has no part in the fit of the constants: one that is the same for each sequence, one that grows with what the
model touches, two that grow with the latency of the brick, up to 0.3 ms and up to half of that; the former of these two
with another one for cold bricks; and what runs go by: these two, the first of them the less the less the model touches,
with a share of the way from cold bricks to their twins, of that from warm ones to evicted ones, and of that from warm
ones to resident ones, and one call of the runtime. `no twins` is the same without these shares, `cold's` with the first
of them alone, and `evicted` with the first two; those to the left of it know of no call.
The last line has the mean absolute errors.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.averages import FEWEST, networks_in
from dlbricks_tui.estimate.calibration import CALL_MS, EVICTED_SHARE, STAYS_SHARE, Example, fitted
from dlbricks_tui.measure.calibrating import example_of
from dlbricks_tui.measure.calibration_nets import SUFFIXES, calibration_nets
from dlbricks_tui.measure.jobs import JobKey, Subject
from dlbricks_tui.measure.stopping import Adaptive, samples_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import MXNET, Format
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.store.records import Statistics

KINDS = {
    "same": ("per_sequence_ms",),
    "touched": ("per_forgotten_sequence_ms",),
    "latency": ("per_evicted_sequence_ms",),
    "steeper": ("per_displaced_sequence_ms",),
    "cold too": ("per_warm_sequence_ms", "per_cold_sequence_ms"),
    "no twins": (CALL_MS, "per_lost_sequence_ms", "per_cold_sequence_ms"),
    "cold's": (CALL_MS, "per_lost_sequence_ms", "per_cold_sequence_ms", STAYS_SHARE),
    "evicted": (CALL_MS, "per_lost_sequence_ms", "per_cold_sequence_ms", STAYS_SHARE, EVICTED_SHARE),
    "today": MXNET.calibration_constants,
}


class Found(NamedTuple):
    """A network, what is known of its bricks and of it, and what a call took in its rounds."""

    subject: Subject
    statistics: Mapping[JobKey, Statistics]
    call_ms: float

    def example(self, constants: Sequence[str]) -> Example:
        """What the network tells of these constants."""
        return example_of(self.subject, self.statistics, constants, self.call_ms)


def main() -> int:
    """Prints a table for each level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA-DIR", nargs="?")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--system")
    parser.add_argument("--level", choices=[level.value for level in Level], action="append")
    arguments = parser.parse_args()
    if arguments.system and not arguments.data:
        parser.error("what another system has measured is in a data folder: name it, and its models")
    for level in map(Level, arguments.level or Level):
        if arguments.data:
            tell(level, list(stored(DataFolder(arguments.data.absolute()), arguments.models, level, arguments.system)))
            continue
        with tempfile.TemporaryDirectory() as folder:
            nets = calibration_nets(Format.MXNET).items()
            tell(level, [measured(Path(folder, name), name, content, level) for name, content in nets])
    return 0


def stored(data: DataFolder, models: Sequence[str], level: Level, system: str | None) -> Iterator[Found]:
    """Those of the models that a data folder knows in both ways, and what it knows of their bricks and of them."""
    for subject, samples, call_ms in networks_in(data, models, level, system):
        yield Found(subject, {it: samples_of(taken, Adaptive()).statistics for it, taken in samples.items()}, call_ms)


def measured(folder: Path, name: str, content: bytes, level: Level) -> Found:
    """A network, and what a run finds of its bricks and of it."""
    folder.mkdir()
    path = folder / f"{name.replace(' ', '_')}{SUFFIXES[Format.MXNET]}"
    path.write_bytes(content)
    data = DataFolder(folder / "data")
    words = ("run", str(path), "--level", level.value, "--end-to-end", "--calibrate", "never")
    command = [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(data.path), *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    (network,) = stored(data, [str(path)], level, None)
    return network


def tell(level: Level, found: list[Found]) -> None:
    """Prints what was found at a level."""
    if len(found) < FEWEST:
        sys.exit(f"{len(found)} networks are known in both ways at level {level.value}, and {FEWEST} are needed")
    errors = {kind: fitted([it.example(names) for it in found], names).residuals for kind, names in KINDS.items()}
    print(f"{level.value:30} {'touches':>9} {'bricks':>9}" + "".join(f"{kind:>9}" for kind in KINDS))
    for number, it in enumerate(found):
        example = it.example(KINDS["latency"])
        touched_mb = it.subject.decomposition.graph.touched_bytes / 1e6
        print(
            f"{example.name:20} {example.measured_ms:6.2f} ms {touched_mb:6.1f} MB "
            f"{example.composed_ms / example.measured_ms:9.3f}"
            + "".join(f"{residuals[number]:+9.1%}" for residuals in errors.values())
        )
    means = (sum(map(abs, residuals)) / len(residuals) for residuals in errors.values())
    print(f"{'mean absolute':50}" + "".join(f"{mean:9.1%}" for mean in means), flush=True)


if __name__ == "__main__":
    sys.exit(main())
