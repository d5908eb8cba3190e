"""Compare our end-to-end latencies with those of a plain MXNet script, in turns and in separate processes.

usage: python -m benchmarks.against_a_script [MODEL ...]

MODEL is a name that `dlbricks models` lists or table1:ID. The script is benchmarks/plain_mxnet.py: MXNet's own loader
and defaults. Two processes differ by two or three percent whatever they run, by how their memory comes to lie, and a
host that others share changes within a second: so each turn of ours is compared with the script's beside it, after as
many runs untimed, each going first in turn. The middle of all turns stands for a pair of processes, and what is printed
is the mean of all pairs with its standard error. Exit status 1 if that is more than 3 %.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.bricks.programs import model_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.measure.jobs import untimed_runs
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, Sample
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime

MODELS = ("table1:16", "table1:10", "table1:14", "table1:7", "table1:2")
SCRIPT = Path(__file__).parent / "plain_mxnet.py"
WHOLE = "model"
PATIENCE_SECONDS = 600.0
PAIRS, RUNS = 10, 5
# Quick models vary most and cost least: turns go on for so long, and there are so many at least.
PAIR_SECONDS, FEWEST_TURNS = 5.0, 6
MOST_APART = 0.03


class Turn(NamedTuple):
    """The median latencies of a model, one way right after the other."""

    ours_ms: float
    theirs_ms: float


class Ways(NamedTuple):
    """A process of either kind, with the model loaded."""

    worker: Worker
    script: "subprocess.Popen[str]"
    untimed: int

    def ours_ms(self) -> float:
        """Timed as runs do it."""
        (durations_ns,) = self.worker.ask(Sample((WHOLE,), self.untimed, RUNS), PATIENCE_SECONDS).durations_ns
        return statistics.median(durations_ns) / 1e6

    def theirs_ms(self) -> float:
        """Timed by the script, after as many runs that do not count."""
        assert self.script.stdin is not None
        assert self.script.stdout is not None
        print(self.untimed + RUNS, file=self.script.stdin, flush=True)
        taken_ms: list[float] = json.loads(self.script.stdout.readline())
        return statistics.median(taken_ms[self.untimed :])

    def turns(self) -> Iterator[Turn]:
        """Ours first, then the script first, and so on."""
        begun = time.monotonic()
        done = 0
        while done < FEWEST_TURNS or time.monotonic() - begun < PAIR_SECONDS:
            if done % 2:
                theirs_ms = self.theirs_ms()
                yield Turn(self.ours_ms(), theirs_ms)
            else:
                yield Turn(self.ours_ms(), self.theirs_ms())
            done += 1


def main() -> int:
    """Times each model in both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    models = parser.parse_args().models
    apart = 0
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        runtime = Registry(data).default({})
        for name in models:
            (source,) = Library(SAMPLE_MODELS, data).find_all([name])
            with WorkerFramework(runtime, data / "framework.log") as framework:
                graph = Loader(data / "cache", framework).load(source, Level.FUSED)
            pairs = [timed(source, graph, runtime, data) for _ in range(PAIRS)]
            turns = [turn for pair in pairs for turn in pair]
            ours_ms, theirs_ms = map(statistics.median, zip(*turns, strict=True))
            differences = [statistics.median(it.ours_ms / it.theirs_ms for it in pair) - 1 for pair in pairs]
            difference = statistics.mean(differences)
            doubt = statistics.stdev(differences) / math.sqrt(PAIRS)
            apart += abs(difference) > MOST_APART
            print(
                f"{name:16} ours {ours_ms:9.3f} ms  the script {theirs_ms:9.3f} ms  "
                f"{difference:+.2%} (standard error {doubt:.2%}, {len(turns)} turns)",
                flush=True,
            )
    return 1 if apart else 0


def timed(source: ModelSource, graph: LayerGraph, runtime: Runtime, data: Path) -> list[Turn]:
    """The turns of two new processes."""
    command = [sys.executable, str(SCRIPT), str(source.path), json.dumps(dict(source.inputs))]
    with (
        Worker(runtime, data / "worker.log") as worker,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as script,
    ):
        turns = list(Ways(worker, script, load_model(worker, graph)).turns())
        assert script.stdin is not None
        script.stdin.close()
    return turns


def load_model(worker: Worker, graph: LayerGraph) -> int:
    """Load a whole model, and return its number of untimed runs."""
    worker.ask(Load(WHOLE, model_program(graph), check_values=False), PATIENCE_SECONDS)
    ((first_ns,),) = worker.ask(Sample((WHOLE,), 1, 1), PATIENCE_SECONDS).durations_ns
    return untimed_runs(first_ns / 1e6, whole=True)


if __name__ == "__main__":
    sys.exit(main())
