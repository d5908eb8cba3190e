"""Compare the time left that runs announce with the time that they then take.

usage: python -m benchmarks.time_left [--fifty | --simulate] [RUN_FOLDER ...]

A small run, one that ends at its time budget, and with --fifty one of the fifty models (10 to 20 minutes) are made from
nothing; of the folders of earlier runs the events are read. With --simulate nothing is timed: on hosts whose latencies
are made up, the fifty take what their rounds take. The promise: at any moment between 10 and 90 % of a run, what is
announced is within a factor of 1.5 of what it takes. Exit status 1 if it is broken.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from random import Random

from benchmarks.command_line import dlbricks
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.measure.carriers import COPIES, carrier_jobs, carrier_seconds, groups, round_seconds, usual_rounds
from dlbricks_tui.measure.jobs import cut_model
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.time_left import BEFORE_ROUNDS, Agenda, Stage, most_seconds_per_carrier, stages
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.library import TABLE1_PREFIX, Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.events import RunEvents, RunProgress
from dlbricks_tui.runtime.registry import Registry

RUNS = {
    "a small run": ("squeezenet1.1", "--end-to-end"),
    "a time budget": ("resnet18_v1", "mobilenet1.0", "inceptionv3", "--end-to-end", "--time-budget", "40"),
}
FIFTY = ("table1", "--end-to-end")
FIRST, LAST, FACTOR = 0.1, 0.9, 1.5
_STEPS = 200
# Shares of what shapes suggest, and the powers of latencies by which large models are quicker or slower.
HOSTS = ((0.35, 1.0), (0.35, 0.85), (1.0, 1.0), (0.2, 1.05), (0.5, 0.7))
_MEMORY_BYTES = 8 << 30
# To load a program, besides some passes through it.
LOAD_SECONDS, PASSES_TO_LOAD = 0.04, 1.5


def main() -> int:
    """Make the runs, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="RUN_FOLDER", help="earlier runs, in place of new ones"
    )
    parser.add_argument("--fifty", action="store_true", help="run the fifty models, too")
    parser.add_argument("--simulate", action="store_true", help="simulate the fifty models on hosts that are made up")
    arguments = parser.parse_args()
    if arguments.simulate:
        of_fifty = _stages_of_the_fifty()
        found = [_simulated(of_fifty, number, *host) for number, host in enumerate(HOSTS, 1)]
    else:
        found = [reported(it.name, it) for it in arguments.folders] or list(_of_new_runs(arguments.fifty))
    return 0 if all(found) else 1


def _stages_of_the_fifty() -> Sequence[Stage]:
    with tempfile.TemporaryDirectory() as name:
        data = Path(name)
        with WorkerFramework(Registry(data).default(), data / "framework.log") as framework:
            loader = Loader(data, framework)
            graphs = [loader.load(it) for it in Library(SAMPLE_MODELS, data).find(TABLE1_PREFIX)]
    models = [cut_model(decompose(it)) for it in graphs]
    jobs = plan(models, Known(), Adaptive(), end_to_end=True, method=Method.INSIDE).jobs
    carriers = carrier_jobs(models, {job.key.brick: job for job in jobs if not job.whole})
    return list(stages([job for job in jobs if job.whole], groups(carriers, _MEMORY_BYTES)))


def _simulated(of_fifty: Sequence[Stage], number: int, share: float, power: float) -> bool:
    """Print how far off announcements at the beginning of each stage are; return whether they keep the promise."""
    random = Random(number)
    most_seconds = most_seconds_per_carrier(sum(len(it.carriers_ms) for it in of_fifty))

    @cache
    def real_ms(guess_ms: float) -> float:
        return share * guess_ms * math.pow(guess_ms / 100, power - 1) * random.lognormvariate(0, 0.35)

    def apart(one_ms: float, other_ms: float) -> float:
        return abs(one_ms - other_ms)

    def seconds_of(stage: Stage) -> float:
        loaded_ms = [real_ms(it) for it in (*stage.wholes_ms, *stage.carriers_ms * COPIES)]
        loading = sum(LOAD_SECONDS + PASSES_TO_LOAD * it / 1000 for it in loaded_ms)
        if not stage.carriers_ms:
            timing = (BEFORE_ROUNDS.runs * round_seconds(real_ms(it)) for it in stage.wholes_ms)
            return loading + sum(max(BEFORE_ROUNDS.seconds, it) for it in timing)
        rounds = {it: usual_rounds(real_ms(it), most_seconds) * random.uniform(0.8, 1.2) for it in stage.carriers_ms}
        carriers = sum(carrier_seconds(real_ms(it)) * times for it, times in rounds.items())
        # A model leaves the rounds with the carrier that is most like it.
        like = [(it, min(rounds, key=partial(apart, it))) for it in stage.wholes_ms]
        return loading + carriers + sum(round_seconds(real_ms(whole)) * rounds[it] for whole, it in like)

    took = [seconds_of(it) for it in of_fifty]
    agenda, left, ratios = Agenda(of_fifty), sum(took), list[float]()
    for stage, seconds in zip(of_fifty, took, strict=True):
        if FIRST <= 1 - left / sum(took) <= LAST:
            ratios.append(agenda.seconds / left)
        for guess_ms in stage.carriers_ms or stage.wholes_ms:
            agenda.learn(guess_ms, real_ms(guess_ms))
        agenda.end_stage(seconds)
        left -= seconds
    return _told(f"the fifty, simulated {number}", sum(took), ratios)


def _of_new_runs(fifty: bool) -> Iterator[bool]:
    for name, what in {**RUNS, **({"the fifty": FIFTY} if fifty else {})}.items():
        with tempfile.TemporaryDirectory() as data:
            dlbricks(Path(data), "run", *what)
            (folder,) = DataFolder(Path(data)).runs.iterdir()
            yield reported(name, folder)


def reported(name: str, folder: Path) -> bool:
    """Print how far off a run was; return whether it kept the promise."""
    return _told(name, *announced(folder))


def _told(name: str, seconds: float, ratios: Sequence[float]) -> bool:
    kept = [it for it in ratios if 1 / FACTOR <= it <= FACTOR]
    worst = max(ratios, key=lambda it: max(it, 1 / it if it else float("inf")), default=0.0)
    share = len(kept) / len(ratios) if ratios else 0.0
    print(
        f"{name:<24}{seconds:>7.0f} s  {share:>5.0%} of its middle within a factor of {FACTOR}, worst {worst:.2f} times"
    )
    return share == 1


def announced(folder: Path) -> tuple[float, list[float]]:
    """Return the seconds of a run, and at evenly spread moments of its middle what it announced over what it took."""
    progress, told = RunProgress(), list[tuple[float, float | None]]()
    events = RunEvents(RunFolder(folder).events_file).new()
    began, ended = (datetime.fromisoformat(events[place].when) for place in (0, -1))
    for event in events:
        progress.take(event)
        told.append(((datetime.fromisoformat(event.when) - began).total_seconds(), progress.seconds_left))
    whole, ratios, place = (ended - began).total_seconds(), list[float](), 0
    for step in range(_STEPS + 1):
        now = whole * (FIRST + (LAST - FIRST) * step / _STEPS)
        while place + 1 < len(told) and told[place + 1][0] <= now:
            place += 1
        when, left = told[place]
        if left is not None:
            ratios.append(max(0.0, left - (now - when)) / (whole - now))
    return whole, ratios


if __name__ == "__main__":
    sys.exit(main())
