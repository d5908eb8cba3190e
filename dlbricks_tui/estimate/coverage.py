"""The layers of a model that an estimate knows, and the bricks that are left to measure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.parts import Part, Standing
from dlbricks_tui.models.graph import LayerGraph

# Operators with layers inside, which run as often as the inputs say.
_CONTROL_FLOW = frozenset(["onnx.If", "onnx.Loop", "onnx.Scan", "_foreach", "_while_loop", "_cond"])


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of layers.

    `bridged`: missing and unmeasurable layers with a predicted latency. `own_carrier`: measured layers that were timed
    in this very model, so that its end-to-end latency is no independent check of them.
    """

    measured: int
    missing: int
    unmeasurable: int
    bridged: int
    own_carrier: int = 0

    @property
    def layers(self) -> int:
        """All layers of the model."""
        return self.measured + self.missing + self.unmeasurable

    @property
    def complete(self) -> bool:
        """True if every layer was measured."""
        return self.measured == self.layers


@dataclass(frozen=True, slots=True)
class Remaining:
    """The bricks that a run would still measure, and about how long that takes; None if not known."""

    pairs: tuple[Pair, ...]
    seconds: float | None


def coverage_of(parts: Iterable[Part], graph: LayerGraph) -> Coverage:
    """Return the counts of all layers of the parts; a layer in several parts counts once."""
    carriers: defaultdict[str, set[int]] = defaultdict(set)
    measured: set[int] = set()
    unmeasurable: set[int] = set()
    missing: set[int] = set()
    bridged: set[int] = set()
    for part in parts:
        (measured if part.known else unmeasurable if part.reason else missing).update(part.layers)
        if part.standing is Standing.BRIDGED:
            bridged.update(part.layers)
        if part.measured is not None and part.measured.carrier:
            carriers[part.measured.carrier].update(part.layers)
    own = carriers.get(whole_model(graph).key, ()) if carriers else ()
    return Coverage(len(measured), len(missing), len(unmeasurable), len(bridged), len(own))


def obstacle_in(graph: LayerGraph, parts: Sequence[Part]) -> str:
    """Return the reason why no estimate of these parts is possible, even after a run; empty if one is.

    A sum without layers that may take most of the time would mislead.
    """
    without = [part for part in parts if part.reason and not part.counts]
    for part in without:
        for index in part.layers:
            layer = graph.layers[index]
            if layer.op in _CONTROL_FLOW:
                op = layer.op.removeprefix("onnx.").lstrip("_")
                return f"layer {layer.name!r} ({op}) runs layers inside it, and cannot be measured by itself"
    if any(not part.counts and not part.reason for part in parts):
        # These are known after a run.
        return ""
    known_ms = sum(milliseconds(part.paid_ps) for part in parts)
    left_out_ms = sum(part.times * part.most_ms for part in without)
    if left_out_ms <= known_ms:
        return ""
    layers = len({index for part in without for index in part.layers})
    return (
        f"{layers} of {len(graph.layers)} layers cannot be measured by themselves, and may take longer than all others"
    )


def remaining_of(parts: Sequence[Part]) -> Remaining:
    """Return the missing bricks; the time assumes the median number of samples of the measured ones."""
    missing = {part.pair: part for part in parts if not part.known and not part.reason}
    counts = sorted(part.measured.samples for part in parts if part.measured is not None)
    if not counts:
        return Remaining(tuple(missing), 0.0 if not missing else None)
    samples = counts[len(counts) // 2]
    guessed_ms = sum(part.latency.value_ms or part.most_ms for part in missing.values())
    return Remaining(tuple(missing), samples * guessed_ms / 1000)
