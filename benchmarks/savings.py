"""Compare the time of one run of all bricks of the fifty models with running each model 100 times.

usage: python -m benchmarks.savings [--level LEVEL] [--method METHOD] [--runtime R] [--threads N] [MODEL ...]

Both are run here, one after the other, from nothing. The bricks come first, and a table says where their time goes;
its lines add up to the wall clock. Then each model is timed end to end some times, as often as a run does; what 100
times take is reckoned from that, without the time to load it. The estimates are compared with the same latencies, and
so are those without what was measured in the model itself.
"""

import argparse
import math
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from benchmarks.command_line import dlbricks, told
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.measure.events import RoundDone, RoundRepeated
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.events import EstimateChanged, ModelLoading, Planned, ProgramLoaded, ProgramMeasured, RunEvents

RUNS = 100
PROMISED = 25.0
# What a run was at before it told of an event.
WORK: Mapping[type[Event], str] = {
    ModelLoading: "reading models",
    Planned: "reading models",
    ProgramLoaded: "loading programs",
    RoundDone: "rounds",
    RoundRepeated: "repeated rounds",
    ProgramMeasured: "keeping results",
    EstimateChanged: "keeping results",
}
OTHER = "all else"


def main() -> int:
    """Runs the bricks and compares; exit status 1 if less is saved than promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["table1"])
    parser.add_argument("--level", choices=[level.value for level in Level], default=Level.FUSED.value)
    parser.add_argument("--method", choices=[method.value for method in Method], default=Method.INSIDE.value)
    parser.add_argument("--runtime", help="a runtime or a framework, such as onnxruntime")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    what = (*arguments.models, "--level", arguments.level)
    if arguments.runtime is not None:
        what += ("--runtime", arguments.runtime)
    settings = {} if arguments.threads is None else {"OMP_NUM_THREADS": str(arguments.threads)}
    asked = ("run", *what, "--method", arguments.method)
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        dlbricks(Path(folder), *asked, "--no-end-to-end", settings=settings)
        seconds = time.monotonic() - start
        spent = seconds_by_work(Path(folder), seconds)
        dlbricks(Path(folder), *asked, "--end-to-end", settings=settings)
        estimates = told(Path(folder), "estimate", *what, settings=settings) or []
        found = [it for it in estimates if it["complete"] and it["measured_ms"]]
        judged = told(Path(folder), "estimate", *what, "--accuracy", settings=settings) or []
    whole = RUNS * math.fsum(it["measured_ms"] for it in found) / 1000
    errors = [it["sequential_ms"] / it["measured_ms"] - 1 for it in found]
    for work, of_it in spent.items():
        print(f"  {work:25}{of_it:8.0f} s")
    print(f"all bricks of {len(found)} models   {seconds:8.0f} s")
    print(f"each model {RUNS} times      {whole:8.0f} s, {whole / seconds:.1f} times as long")
    mean = math.fsum(map(abs, errors)) / len(errors)
    print(f"mean absolute error        {mean:8.1%}, worst {max(errors, key=abs):+.1%}")
    for it in judged:
        if it["by_others"]:
            median, within = it["by_others_median_error"], it["by_others_within_10_percent"]
            print(f"by other models alone: {it['by_others']}, median error {median:.1%}, {within:.0%} within 10 %")
    return 0 if whole / seconds >= PROMISED else 1


def seconds_by_work(data: Path, seconds: float) -> Mapping[str, float]:
    """The wall clock of the only run, by what it was at; what its events do not tell of is `OTHER`."""
    (run,) = DataFolder(data).runs.iterdir()
    events = RunEvents(RunFolder(run).events_file).new()
    spent: defaultdict[str, float] = defaultdict(float)
    for before, after in pairwise(events):
        spent[WORK.get(type(after), OTHER)] += (moment(after) - moment(before)).total_seconds()
    spent[OTHER] += seconds - math.fsum(spent.values())
    return spent


def moment(event: Event) -> datetime:
    """Return the time of an event."""
    return datetime.fromisoformat(event.when)


if __name__ == "__main__":
    sys.exit(main())
