"""What the calibrations of a data folder have found, and how much of that is chance.

usage: python -m benchmarks.calibrations DATA-DIR

DATA-DIR is of this host; nothing is measured now. There is a line for each calibration for MXNet whose run is still
there: what a call took, its constants, of bricks that were timed warm, of cold ones, and the shares of the way from
cold and from warm bricks to their twins, the mean absolute error of the networks that they are of, each with no part
in the fit, and by how much the constants vary (standard deviation) if samples are drawn again by chance from those that
were taken, with as many of each program, and with twenty of each.
"""

import argparse
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median, stdev
from typing import NamedTuple

from dlbricks_tui.estimate.calibration import Correction, Example, fitted
from dlbricks_tui.measure.calibrating import RULE, example_of, networks
from dlbricks_tui.measure.events import Calibrated, Calibrating, CalibrationFailed, RoundDone
from dlbricks_tui.measure.jobs import JobKey, Subject
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.stopping import samples_of
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.events import EventReader
from dlbricks_tui.runs.run_folder import RunFolder
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import MXNET, Format
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.store.queries import records_of
from dlbricks_tui.store.records import Calibration
from dlbricks_tui.store.store import Store

# What all constants take on a line.
WIDE = 43
NAMES = MXNET.calibration_constants
FEW, DRAWS = 20, 50


class Sampled(NamedTuple):
    """What was sampled of a network's programs, by their numbers in its plan, and what calls took meanwhile."""

    programs: defaultdict[int, list[float]]
    calls_ms: list[float]

    @property
    def call_ms(self) -> float:
        """What a call took in most rounds."""
        return median(self.calls_ms) if self.calls_ms else 0.0


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA-DIR")
    data = DataFolder(parser.parse_args().data.absolute())
    subjects = {level: subjects_at(level, data) for level in Level}
    print(f"{'when':20} {'level':8} {'constants':>{WIDE}} {'error':>8} {'by chance':>{WIDE}} {f'of {FEW}':>{WIDE}}")
    for calibration, found in calibrations(data):
        examples = [subjects[calibration.level][name] for name in found]
        residuals = [abs(residual) for _, residual in calibration.residuals]
        values = [constants(calibration)]
        values += [by_chance(examples, list(found.values()), most) for most in (None, FEW)]
        said = ["".join(map(shown, NAMES, each)) for each in values]
        print(
            f"{calibration.when[:19]:20} {calibration.level.value:8} {said[0]:>{WIDE}} {mean(residuals):8.1%} "
            f"{said[1]:>{WIDE}} {said[2]:>{WIDE}}",
            flush=True,
        )
    return 0


def subjects_at(level: Level, data: DataFolder) -> Mapping[str, Subject]:
    """The networks that systems are calibrated on, by their names."""

    @contextmanager
    def opened(cache: Path) -> Iterator[Loader]:
        with WorkerFramework(Registry(data.path).default(), cache / "log") as framework:
            yield Loader(cache, framework, framework)

    with tempfile.TemporaryDirectory() as folder:
        return {it.name: it for it in networks(Path(folder), Format.MXNET, opened, level)}


def calibrations(data: DataFolder) -> Iterator[tuple[Calibration, Mapping[str, Sampled]]]:
    """Those for MXNet, oldest first, with the samples of their networks."""
    with Store(data.store) as store:
        known = sorted(records_of(store.generation, Calibration), key=lambda calibration: calibration.when)
    by_run: defaultdict[str, list[Calibration]] = defaultdict(list)
    for calibration in known:
        if dict(calibration.constants).keys() == set(NAMES):
            by_run[calibration.run].append(calibration)
    for run, of_run in by_run.items():
        yield from zip(of_run, samples_in(RunFolder(data.runs / run).events_file), strict=False)


def samples_in(events: Path) -> Iterator[Mapping[str, Sampled]]:
    """What was sampled for each calibration of a run that came to its end."""
    found: dict[str, Sampled] = {}
    network = ""
    for event in EventReader(events).new():
        match event:
            case Calibrating():
                network = event.network
                found[network] = Sampled(defaultdict(list), [])
            case RoundDone() if network:
                for number, samples_ms in event.samples_ms:
                    found[network].programs[number] += samples_ms
                if event.null_call_ms is not None:
                    found[network].calls_ms.append(event.null_call_ms)
            case Calibrated():
                yield {name: sampled for name, sampled in found.items() if sampled.programs}
                found, network = {}, ""
            case CalibrationFailed():
                found, network = {}, ""


def constants(found: Calibration | Correction) -> list[float]:
    """Those that a calibration for MXNet has, in the order of their names."""
    values = dict(found.constants)
    return [values[name] for name in NAMES]


def shown(name: str, value: float) -> str:
    """A constant of that name in microseconds, or as the share that it is."""
    return f"{1000 * value:6.1f} us" if name.endswith("_ms") else f"{value:5.2f}"


def by_chance(subjects: Sequence[Subject], samples: Sequence[Sampled], most: int | None) -> list[float]:
    """How much each constant varies if samples are drawn again, no more than so many of each program."""
    chance = random.Random(1)
    found_of = [
        (subject, {jobs[number].key: taken for number, taken in found.programs.items()}, found.call_ms)
        for subject, found in zip(subjects, samples, strict=True)
        for jobs in [plan((subject,), Known(), RULE, end_to_end=True).jobs]
    ]
    corrections = [fitted([drawn(*each, most, chance) for each in found_of], NAMES) for _ in range(DRAWS)]
    return [stdev(each) for each in zip(*map(constants, corrections), strict=True)]


def drawn(
    subject: Subject,
    samples: Mapping[JobKey, Sequence[float]],
    call_ms: float,
    most: int | None,
    chance: random.Random,
) -> Example:
    """A network by samples that are drawn by chance from those that were taken."""
    statistics = {
        target: samples_of(chance.choices(taken, k=min(most or len(taken), len(taken))), RULE).statistics
        for target, taken in samples.items()
    }
    return example_of(subject, statistics, NAMES, call_ms)


if __name__ == "__main__":
    sys.exit(main())
