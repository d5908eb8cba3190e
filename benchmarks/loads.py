"""Measure the difference in latency between two loads of one network in one worker.

usage: python -m benchmarks.loads [--threads N] [--loads N] [--rounds N] [MODEL ...]

Each model is loaded N times (default: 4) into one worker, and its copies run in turns. A line for each model says what
each copy takes, relative to their mean. The last line says which share 95 % of the differences between two loads do not
exceed, less what rounds vary by chance.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev

from benchmarks.carriers import MILLISECOND, MODELS, PATIENCE_SECONDS, graph_of, source_named
from dlbricks_tui.bricks.programs import model_program
from dlbricks_tui.measure.jobs import untimed_runs
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, Program, Sample
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.statistics import trimmed_mean

TWO_SIDED_95 = 1.96


def main() -> int:
    """Prints a line for each model, then the difference between loads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--loads", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    squares: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model in args.models:
            source = source_named(model, folder)
            runtime = Registry(folder).runtime_for({source.format}).with_threads(args.threads)
            program = model_program(graph_of(source, Level.FUSED, runtime, folder))
            copies = _sampled(program, runtime.for_profiling(), folder, args.loads, args.rounds)
            squares += _squared_differences(copies)
            mean_ms = fmean(map(trimmed_mean, copies))
            told = ", ".join(f"{100 * (trimmed_mean(it) / mean_ms - 1):+5.1f} %" for it in copies)
            print(f"{model[-36:]:36} {mean_ms:8.3f} ms: {told}", flush=True)
    print(f"two loads differ by up to {100 * TWO_SIDED_95 * max(0.0, fmean(squares)) ** 0.5:.1f} % in 95 % of cases")
    return 0


def _sampled(program: Program, runtime: Runtime, folder: Path, loads: int, rounds: int) -> list[list[float]]:
    names = [f"copy {number}" for number in range(loads)]
    with Worker(runtime, folder / "log") as worker:
        for name in names:
            worker.ask(Load(name, program, check_values=False), PATIENCE_SECONDS)
        ((first_ns,),) = worker.ask(Sample((names[0],), 1, 1), PATIENCE_SECONDS).durations_ns
        untimed = untimed_runs(first_ns / MILLISECOND, whole=True)
        taken: list[list[float]] = [[] for _ in names]
        for _ in range(rounds):
            for name, samples_ms in zip(names, taken, strict=True):
                ((duration_ns,),) = worker.ask(Sample((name,), untimed, 1), PATIENCE_SECONDS).durations_ns
                samples_ms.append(duration_ns / MILLISECOND)
    return taken


def _squared_differences(copies: Sequence[Sequence[float]]) -> list[float]:
    """Squares of the relative differences between two copies, less those that the rounds explain by chance."""
    found = []
    for one, other in combinations(copies, 2):
        ratios = [first / second - 1 for first, second in zip(one, other, strict=True)]
        found.append((trimmed_mean(one) / trimmed_mean(other) - 1) ** 2 - stdev(ratios) ** 2 / len(ratios))
    return found


if __name__ == "__main__":
    sys.exit(main())
