"""How well constants of several kinds make up for what bricks miss, on the networks that systems are calibrated on.

usage: python -m benchmarks.constants [--level LEVEL]

Each network is measured by bricks and end to end in a run of its own. The first column says what its bricks add up
to, over end to end, the others by how much its estimate is wrong when it has no part in the fit of the constants: one
that is the same for each sequence, one that grows with what the model touches, two that grow with the latency of the
brick, up to 0.3 ms and up to half of that, and what runs go by: the former of these two, and another one for cold
bricks. The last line has the mean absolute errors.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dlbricks_tui.bench.calibrating import CONSTANTS, example_of
from dlbricks_tui.bench.calibration_nets import SUFFIXES, calibration_nets
from dlbricks_tui.bench.fingerprint import fingerprint
from dlbricks_tui.bench.jobs import Subject, Target, subject_of
from dlbricks_tui.bench.known import known_in
from dlbricks_tui.bench.plan import targets_of
from dlbricks_tui.bench.results import conditions_of
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.calibration import fitted
from dlbricks_tui.models.framework import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Format
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.store.records import Statistics
from dlbricks_tui.store.store import Store

KINDS = {
    "same": ("per_sequence_ms",),
    "touched": ("per_forgotten_sequence_ms",),
    "latency": ("per_evicted_sequence_ms",),
    "steeper": ("per_displaced_sequence_ms",),
    "cold too": CONSTANTS[Format.MXNET],
}

Found = tuple[Subject, Mapping[Target, Statistics]]


def main() -> int:
    """Prints a table for each level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", choices=[level.value for level in Level], action="append")
    for level in parser.parse_args().level or [level.value for level in Level]:
        with tempfile.TemporaryDirectory() as folder:
            nets = calibration_nets(Format.MXNET).items()
            tell(Level(level), [measured(Path(folder, name), name, content, Level(level)) for name, content in nets])
    return 0


def measured(folder: Path, name: str, content: bytes, level: Level) -> Found:
    """A network, and what a run finds of its bricks and of it."""
    folder.mkdir()
    path = folder / f"{name.replace(' ', '_')}{SUFFIXES[Format.MXNET]}"
    path.write_bytes(content)
    data = DataFolder(folder / "data")
    words = ("run", str(path), "--level", level.value, "--end-to-end", "--calibrate", "never")
    command = [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(data.path), *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    runtime = Registry(data.path).default()
    with WorkerFramework(runtime, folder / "log") as framework:
        graph = Loader(data.cache, framework, framework).load(source_of(path), level)
    subject = subject_of(decompose(graph))
    with Store(data.store) as store:
        conditions = conditions_of(fingerprint().id, runtime)
        known = known_in(store.generation, conditions, targets_of((subject,), end_to_end=True))
    return subject, known.measured


def tell(level: Level, found: list[Found]) -> None:
    """Prints what was found at a level."""
    errors = {
        kind: fitted([example_of(*each, constants) for each in found], constants).residuals
        for kind, constants in KINDS.items()
    }
    print(f"{level.value:30} {'bricks':>9}" + "".join(f"{kind:>9}" for kind in KINDS))
    for number, example in enumerate(example_of(*each, KINDS["latency"]) for each in found):
        print(
            f"{example.name:20} {example.measured_ms:6.2f} ms {example.composed_ms / example.measured_ms:9.3f}"
            + "".join(f"{residuals[number]:+9.1%}" for residuals in errors.values())
        )
    means = (sum(map(abs, residuals)) / len(residuals) for residuals in errors.values())
    print(f"{'mean absolute':40}" + "".join(f"{mean:9.1%}" for mean in means), flush=True)


if __name__ == "__main__":
    sys.exit(main())
