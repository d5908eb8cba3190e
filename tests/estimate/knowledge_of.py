"""Knowledge of the bricks of a graph, made up."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency, Pair, Predictor, Unmeasured


def latency_of(pair: Pair, doubt: float = 0.01) -> Latency:
    """Some latency that only the brick and context decide, with an interval of so many parts of it."""
    value_ms = 0.01 + int(sha256("".join(pair).encode()).hexdigest()[:6], 16) / 1e6
    return Latency(value_ms, value_ms * (1 - doubt), value_ms * (1 + doubt))


def measured(decomposition: Decomposition, without: Collection[Pair] = (), doubt: float = 0.01) -> Knowledge:
    """Every brick of the decomposition measured, but those left out and what takes no time."""
    graph = decomposition.graph
    pairs = {
        (it.brick.key, it.context)
        for it in decomposition.occurrences
        if any(graph.layers[index].operators and not graph.layers[index].unmeasurable for index in it.sequence.layers)
    }
    known = {pair: MeasuredLatency(latency_of(pair, doubt), pair, 25) for pair in sorted(pairs) if pair not in without}
    return Knowledge(known)


TWO_MS = Latency(2.0, 1.0, 4.0)


@dataclass(frozen=True)
class Guessing:
    """Predicts the same latency for each brick, but for those of some operators."""

    latency: Latency = TWO_MS
    unknown: Collection[str] = ()
    shared: float = 0.5

    def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        return [None if any(f'"op":"{op}"' in it.canonical for op in self.unknown) else self.latency for it in bricks]


def with_predictions(knowledge: Knowledge, predictor: Predictor | None = None) -> Knowledge:
    """Knowledge with a predictor of what was not measured."""
    return replace(knowledge, predictor=lambda: predictor or Guessing())
