"""What models take beside the sums of their bricks, timed with warm caches and with cold ones.

usage: python -m benchmarks.caches [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, or table1:ID. In rounds, in one worker: the model, its bricks after they
have just run, and its bricks after 64 MiB of something else went through the caches. Printed is by how much their sums
miss the model; the last line has the mean absolute errors.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping

from benchmarks.chosen_models import Chosen, Sums, beside_model, chosen_models
from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.models.graph import LayerGraph

MODELS = ("squeezenet1.1", "mobilenet0.5", "mobilenetv2_1.0", "resnet50_v1")
# How much of the way from warm to cold.
WAYS: Mapping[str, float] = {"warm": 0.0, "a third": 1 / 3, "half-way": 0.5, "cold": 1.0}
WARM, COLD = "warm", "cold"


def main() -> int:
    """Prints a line for each model."""
    with chosen_models(__doc__, MODELS) as chosen:
        print(f"{'':28} {'end to end':>12}" + "".join(f"{way:>10}" for way in WAYS))
        errors: dict[str, list[float]] = defaultdict(list)
        for graph in chosen.graphs:
            sums = sums_of(graph, chosen)
            for way, share in WAYS.items():
                errors[way].append(error(sums, share))
            shown = "".join(f"{errors[way][-1]:+10.1%}" for way in WAYS)
            print(f"{graph.name[:28]:28} {sums.model_ms:9.2f} ms{shown}", flush=True)
        print(f"{'mean absolute':41}" + "".join(f"{sum(map(abs, it)) / len(it):10.1%}" for it in errors.values()))
    return 0


def sums_of(graph: LayerGraph, chosen: Chosen) -> Sums:
    """What a model takes, and its bricks with warm caches and with cold ones."""
    ways = {
        WARM: lambda layers: sequence_program(graph, layers, cold=False),
        COLD: lambda layers: sequence_program(graph, layers, cold=True),
    }
    return beside_model(graph, chosen, ways)


def error(sums: Sums, share: float) -> float:
    """By how much bricks that lie so far from warm to cold miss the model."""
    warm_ms, cold_ms = sums.bricks_ms[WARM], sums.bricks_ms[COLD]
    return (warm_ms + share * (cold_ms - warm_ms)) / sums.model_ms - 1


if __name__ == "__main__":
    sys.exit(main())
