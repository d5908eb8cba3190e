"""What a brick may take before anybody has measured it: to order the work, to share out memory, to know what hangs."""

import math
from collections.abc import Sequence
from itertools import chain

from dlbricks_tui.estimate.bridging import features_of
from dlbricks_tui.models.graph import Layer

# What any of today's machines manages with two cores, within a factor of some tens.
_MULTIPLICATIONS_PER_MS = 5e7
_ELEMENTS_PER_MS = 1e6
_CALL_MS = 0.01


def expected_ms(canonical: str) -> float:
    """A guess from the shapes of a brick alone."""
    features = features_of(canonical)
    if features is None:
        return _CALL_MS
    # Where there is no matrix of weights, the work is as many elements as the data has.
    work_ms = math.exp(features.work) / _MULTIPLICATIONS_PER_MS
    return _CALL_MS + work_ms + (math.exp(features.data) + math.exp(features.weights)) / _ELEMENTS_PER_MS


def memory_bytes(layers: Sequence[Layer]) -> int:
    """What the weights of some layers, what they are fed and all that they make take, at the same time."""
    own = {layer.index for layer in layers}
    fed = {
        feed: tensor
        for layer in layers
        for feed, tensor in zip(layer.feeds, layer.data, strict=True)
        if feed.layer not in own
    }
    made = (tensor for layer in layers for operator in layer.operators for tensor in operator.outputs)
    learned = (tensor for layer in layers for tensor in layer.weights)
    return sum(tensor.size_bytes for tensor in chain(learned, fed.values(), made))
