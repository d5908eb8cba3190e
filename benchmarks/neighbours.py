"""What layers that follow one another take together, beside what each of them takes alone: what a brick does not see.

usage: python -m benchmarks.neighbours [--level LEVEL] [MODEL ...]

MODEL is a name that `dlbricks models` lists, or table1:ID. Each two layers of a model of which the second one alone
reads the first become one sequence; all sequences run in one worker, in rounds. For each two kinds of operators it
prints how many such pairs the model has, what they take together, and what their halves take.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.chosen_models import Layers, chosen_models, latencies_ms
from dlbricks_tui.models.graph import LayerGraph

MODELS = ("table1:10", "resnet50_v1")


def main() -> int:
    """Prints a table for each model."""
    with chosen_models(__doc__, MODELS) as chosen:
        for graph in chosen.graphs:
            pairs = list(pairs_of(graph))
            alone = [(index,) for index in sorted({index for pair in pairs for index in pair})]
            tell(graph, pairs, latencies_ms(graph, [*pairs, *alone], chosen.runtime, chosen.folder / "log"))
    return 0


def pairs_of(graph: LayerGraph) -> Iterator[Layers]:
    """The layers of which one computes something, and another one alone reads it and computes something, too."""
    for layer in graph.layers:
        readers = set(graph.successors[layer.index])
        if layer.operators and len(readers) == 1:
            (reader,) = readers
            if graph.layers[reader].operators:
                yield layer.index, reader


def tell(graph: LayerGraph, pairs: Sequence[Layers], latency_ms: dict[Layers, float]) -> None:
    """Prints what was found of a model."""
    print(f"{graph.name}, {graph.level.value}")
    print(f"{'':36} {'pairs':>6} {'together':>12} {'first':>12} {'second':>12} {'missing':>12}")
    kinds: dict[str, list[Layers]] = defaultdict(list)
    for pair in pairs:
        kinds[", ".join(graph.layers[index].op for index in pair)].append(pair)
    for kind, those in sorted(kinds.items(), key=lambda item: -sum(latency_ms[pair] for pair in item[1])):
        together, first, second = (
            sum(latency_ms[part] for part in parts)
            for parts in (those, [pair[:1] for pair in those], [pair[1:] for pair in those])
        )
        missing = together - first - second
        figures = "".join(f"{figure:10.2f} ms" for figure in (together, first, second, missing))
        print(f"{kind[:36]:36} {len(those):6}{figures}")


if __name__ == "__main__":
    sys.exit(main())
