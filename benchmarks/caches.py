"""What models take beside the sums of their bricks, timed with warm caches and with cold ones.

usage: python -m benchmarks.caches [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, a file, or table1:ID. In rounds, in one worker: the model, its bricks
after they have just run, and its bricks after 64 MiB of something else went through the caches. Printed is by how much
the sums miss the model: with all bricks warm, with those cold whose context says so, and with all bricks cold. Nothing
is corrected. The last line has the mean absolute errors.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping
from functools import partial

from benchmarks.chosen_models import Chosen, beside_model, chosen_models
from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.models.graph import LayerGraph

MODELS = ("squeezenet1.1", "mobilenet0.5", "mobilenetv2_1.0", "resnet50_v1")
# Whether bricks are timed cold; None: as their contexts say.
WAYS: Mapping[str, bool | None] = {"warm": False, "contexts": None, "cold": True}


def main() -> int:
    """Prints a line for each model."""
    with chosen_models(__doc__, MODELS) as chosen:
        print(f"{'':28} {'end to end':>12}" + "".join(f"{way:>10}" for way in WAYS))
        errors: dict[str, list[float]] = defaultdict(list)
        for graph in chosen.graphs:
            model_ms, sums_ms = sums_of(graph, chosen)
            for way in WAYS:
                errors[way].append(sums_ms[way] / model_ms - 1)
            shown = "".join(f"{errors[way][-1]:+10.1%}" for way in WAYS)
            print(f"{graph.name[:28]:28} {model_ms:9.2f} ms{shown}", flush=True)
        print(f"{'mean absolute':41}" + "".join(f"{sum(map(abs, it)) / len(it):10.1%}" for it in errors.values()))
    return 0


def sums_of(graph: LayerGraph, chosen: Chosen) -> tuple[float, Mapping[str, float]]:
    """What a model takes, and its bricks in each way."""
    sums = beside_model(graph, chosen, {way: partial(sequence_program, graph, cold=cold) for way, cold in WAYS.items()})
    return sums.model_ms, sums.bricks_ms


if __name__ == "__main__":
    sys.exit(main())
