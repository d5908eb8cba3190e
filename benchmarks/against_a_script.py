"""Whether we time whole models as a script does that knows nothing of us: both in turns, in processes of their own.

usage: python -m benchmarks.against_a_script [MODEL ...]

MODEL is a name that `dlbricks models` lists or table1:ID. The script is benchmarks/plain_mxnet.py: MXNet's own loader
and defaults. Two processes differ by two or three percent whatever they run, by how their memory comes to lie: each way
is tried in several, and what is compared is the median of all. Exit status 1 if they differ by more than a percent.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from dlbricks_tui.bricks.programs import model_program
from dlbricks_tui.models.framework import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, Sample
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.settings import SAMPLE_MODELS

MODELS = ("table1:16", "table1:10", "table1:14", "table1:7", "table1:2")
SCRIPT = Path(__file__).parent / "plain_mxnet.py"
PROCESSES, TURNS, RUNS = 5, 6, 5
PATIENCE_SECONDS = 600.0
MOST_APART = 0.01


def main() -> int:
    """Times each model in both ways."""
    apart = 0
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        for name in sys.argv[1:] or MODELS:
            ours, theirs = timed(name, data)
            difference = ours / theirs - 1
            apart += abs(difference) > MOST_APART
            print(f"{name:16} ours {ours:9.3f} ms  the script {theirs:9.3f} ms  {difference:+.2%}", flush=True)
    return 1 if apart else 0


def timed(name: str, data: Path) -> tuple[float, float]:
    """The medians of both, over all processes."""
    (source,) = Library(SAMPLE_MODELS, data).find_all([name])
    runtime = Registry(data).default({})
    with WorkerFramework(runtime, data / "framework.log") as framework:
        graph = Loader(data / "cache", framework).load(source, Level.FUSED)
    command = [sys.executable, str(SCRIPT), str(source.path), json.dumps(dict(source.inputs))]
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(PROCESSES):
        with (
            Worker(runtime, data / "worker.log") as worker,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            ) as script,
        ):
            assert script.stdin is not None
            assert script.stdout is not None
            worker.ask(Load("model", model_program(graph)), PATIENCE_SECONDS)
            for _ in range(TURNS):
                (durations_ns,) = worker.ask(Sample(("model",), 3, RUNS), PATIENCE_SECONDS).durations_ns
                ours += [duration / 1e6 for duration in durations_ns]
                print(3 + RUNS, file=script.stdin, flush=True)
                theirs += json.loads(script.stdout.readline())[3:]
            script.stdin.close()
    return statistics.median(ours), statistics.median(theirs)


if __name__ == "__main__":
    sys.exit(main())
