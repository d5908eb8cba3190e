"""Try constants of the method `alone` on networks with known latencies, and print the fitted values.

usage: python -m benchmarks.constants [--level LEVEL] [--system SYSTEM] DATA-DIR MODEL ...

DATA-DIR has what runs have measured of these models, by their bricks and end to end, on this host or on the one of that
name. Nothing is measured now. A line for each model has its latency, the sum of its bricks over that, and by how much
its estimate is wrong by each choice of constants when the model has no part in the fit. The last lines have the mean
absolute errors and the constants of the last choice, which is the one that runs go by. The priors in
`dlbricks_tui/estimate/calibration.py` are their medians over the groups and hosts of the committed samples.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from benchmarks.averages import FEWEST, Network, networks_in
from dlbricks_tui.estimate.calibration import CALL_MS, Example, fitted
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.measure.stopping import Adaptive, samples_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.calibration import example_of
from dlbricks_tui.runtime.traits import MXNET

CHOICES: Mapping[str, Sequence[str]] = {
    "none": (),
    "call": (CALL_MS,),
    "warm": (CALL_MS, "warm_brick_ms"),
    "today": MXNET.calibration_constants,
}


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA-DIR")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--system")
    parser.add_argument("--level", choices=[level.value for level in Level], default=Level.FUSED.value)
    arguments = parser.parse_args()
    data = DataFolder(arguments.data.absolute())
    found = list(networks_in(data, arguments.models, Level(arguments.level), arguments.system))
    if len(found) < FEWEST:
        sys.exit(f"{len(found)} networks are known in both ways, and {FEWEST} are needed")
    tell(found)
    return 0


def tell(found: Sequence[Network]) -> None:
    """Prints what was found."""
    corrections = {choice: fitted([example(it, names) for it in found], names) for choice, names in CHOICES.items()}
    print(f"{'':32} {'latency':>9} {'bricks':>7}" + "".join(f"{choice:>8}" for choice in CHOICES))
    for number, it in enumerate(example(network, ()) for network in found):
        errors = "".join(f"{each.residuals[number]:+8.1%}" for each in corrections.values())
        print(f"{it.name[:32]:32} {it.measured_ms:6.2f} ms {it.composed_ms / it.measured_ms:7.3f}{errors}")
    means = "".join(f"{mean(map(abs, each.residuals)):8.1%}" for each in corrections.values())
    print(f"{'mean absolute':50}{means}")
    print(", ".join(f"{name} {value:.4f}" for name, value in corrections["today"].constants))


def example(network: Network, names: Sequence[str]) -> Example:
    """Return a network as an example to fit these constants to."""
    statistics = {target: samples_of(samples, Adaptive()).statistics for target, samples in network.samples.items()}
    return example_of(network.model, statistics, names, network.call_ms)


if __name__ == "__main__":
    sys.exit(main())
