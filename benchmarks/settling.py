"""How many runs a model needs until it takes what it takes in a loop, after its bricks have run, as in a round.

usage: python -m benchmarks.settling [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, table1:ID or a file. Its bricks run, then the model many times in a row,
and that again and again. Printed is what it takes in a loop, the median of the later half of its runs, and by how many
percent more it takes in the first run, in the second and so on.
"""

import sys
from collections.abc import Sequence
from itertools import pairwise
from statistics import mean, median

from benchmarks.chosen_models import (
    PATIENCE_SECONDS,
    WHOLE,
    Chosen,
    chosen_models,
    load_bricks,
    load_model,
    places_of,
    round_ms,
)
from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Sample

MODELS = ("squeezenet1.1", "mobilenet0.25", "mobilenetv2_1.0", "resnet18_v1")
TURNS, RUNS = 20, 40
# The runs that are shown together: from each of these to the one before the next.
FIRSTS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 30, RUNS + 1)


def main() -> int:
    """Prints a line for each model."""
    with chosen_models(__doc__, MODELS) as chosen:
        print(f"{'':30}{'in a loop':>12}" + "".join(f"{f'run {first}':>8}" for first in FIRSTS[:-1]))
        for graph in chosen.graphs:
            taken_ms = [median(runs) / 1e6 for runs in zip(*turns_ns(graph, chosen), strict=True)]
            loop_ms = median(taken_ms[RUNS // 2 :])
            more = [mean(taken_ms[first - 1 : after - 1]) / loop_ms - 1 for first, after in pairwise(FIRSTS)]
            print(f"{graph.name[:29]:30}{loop_ms:9.2f} ms" + "".join(f"{it:>+8.1%}" for it in more), flush=True)
    return 0


def turns_ns(graph: LayerGraph, chosen: Chosen) -> Sequence[Sequence[int]]:
    """What each run of the model took, turn by turn."""
    programs = {str(number): sequence_program(graph, it.layers) for number, it in enumerate(places_of(graph).values())}
    found: list[Sequence[int]] = []
    with Worker(chosen.runtime, chosen.folder / "log") as worker:
        load_model(worker, graph)
        untimed = load_bricks(worker, programs)
        for _ in range(TURNS):
            round_ms(worker, untimed)
            found += worker.ask(Sample((WHOLE,), 0, RUNS), PATIENCE_SECONDS).durations_ns
    return found


if __name__ == "__main__":
    sys.exit(main())
