"""What bricks add up to if each has to wake MXNet up by itself, and if they find it awake, beside their model.

usage: python -m benchmarks.waking [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, a file, or table1:ID. All of it is sampled in the same rounds of one
worker, and nothing is corrected; what a call that computes nothing takes is in the latency of the model, too.
"""

import sys

from benchmarks.chosen_models import Chosen, Sums, beside_model, chosen_models
from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.models.graph import LayerGraph

MODELS = ("mobilenet0.25", "squeezenet1.1")
ASLEEP, AWAKE = "asleep", "awake"


def main() -> int:
    """Prints a line for each model."""
    with chosen_models(__doc__, MODELS) as chosen:
        print(f"{'':24} {'model':>10} {ASLEEP:>10} {AWAKE:>10} {'a call':>10}")
        for graph in chosen.graphs:
            found = found_of(graph, chosen)
            shown_ms = (found.model_ms, found.bricks_ms[ASLEEP], found.bricks_ms[AWAKE], found.call_ms)
            print(f"{graph.name[:24]:24}" + "".join(f"{value_ms:8.3f} ms" for value_ms in shown_ms), flush=True)
    return 0


def found_of(graph: LayerGraph, chosen: Chosen) -> Sums:
    """What a model takes, and its bricks in both ways."""
    ways = {
        ASLEEP: lambda layers: sequence_program(graph, layers, awake=False),
        AWAKE: lambda layers: sequence_program(graph, layers),
    }
    return beside_model(graph, chosen, ways)


if __name__ == "__main__":
    sys.exit(main())
