"""What makes two layer sequences the same brick: operators, parameters, shapes, dtypes and topology."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Level, Origin, Params, TensorType, Wire

# A change of the canonical form is a new version: keys of different versions never meet.
CANONICAL_VERSION = 1

OperatorForm = tuple[str, Params, tuple[Wire, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Brick:
    """A unique layer sequence: its key, and the canonical form that the key is the hash of."""

    key: str
    canonical: str


def brick_of(graph: LayerGraph, layers: Sequence[int]) -> Brick:
    """The brick that a sequence of layers, given by their indices in order, is an occurrence of."""
    if len(layers) == 1:
        layer = graph.layers[layers[0]]
        return _brick(graph.level, layer_form(layer), layer.data, layer.weights)
    return _brick(graph.level, *_joined([graph.layers[index] for index in layers]))


def layer_form(layer: Layer) -> tuple[OperatorForm, ...]:
    """What a layer computes, without names; equal for equal layers whatever stands around them."""
    return tuple([(it.op, it.params, it.inputs, it.inner) for it in layer.operators])


def outer_feeds(layers: Sequence[Layer]) -> tuple[Feed, ...]:
    """The distinct data inputs of a sequence that come from outside it, in the order in which they are read."""
    inside = {layer.index for layer in layers}
    return tuple(dict.fromkeys(feed for layer in layers for feed in layer.feeds if feed.layer not in inside))


def _joined(
    layers: Sequence[Layer],
) -> tuple[tuple[OperatorForm, ...], tuple[TensorType, ...], tuple[TensorType, ...]]:
    """Several layers as one: operators numbered through, inner edges as wires between them."""
    data: dict[Feed, TensorType] = {}
    for layer in layers:
        data.update(zip(layer.feeds, layer.data, strict=True))
    feeds = {feed: number for number, feed in enumerate(outer_feeds(layers))}
    forms: list[OperatorForm] = []
    weights: list[TensorType] = []
    first_operator: dict[int, int] = {}
    first_weight: dict[int, int] = {}
    inside = {layer.index: layer for layer in layers}
    for layer in layers:
        first_operator[layer.index], first_weight[layer.index] = len(forms), len(weights)

        def shifted(wire: Wire, owner: int) -> Wire:
            start = first_operator if wire.origin is Origin.OPERATOR else first_weight
            return wire._replace(number=wire.number + start[owner])

        def resolved(wire: Wire, layer: Layer = layer) -> Wire:
            if wire.origin is not Origin.DATA:
                return shifted(wire, layer.index)
            feed = layer.feeds[wire.number]
            if feed in feeds or feed.layer is None:
                return Wire(Origin.DATA, feeds[feed])
            return shifted(inside[feed.layer].results[feed.output], feed.layer)

        forms += [(it.op, it.params, tuple([resolved(wire) for wire in it.inputs]), it.inner) for it in layer.operators]
        weights += layer.weights
    return tuple(forms), tuple([data[feed] for feed in feeds]), tuple(weights)


@lru_cache(maxsize=1 << 16)
def _brick(
    level: Level, forms: tuple[OperatorForm, ...], data: tuple[TensorType, ...], weights: tuple[TensorType, ...]
) -> Brick:
    document = {
        "version": CANONICAL_VERSION,
        "level": level.value,
        "operators": [_operator_document(*form) for form in forms],
        "data": data,
        "weights": weights,
    }
    canonical = json.dumps(document, separators=(",", ":"), sort_keys=True)
    return Brick(hashlib.sha256(canonical.encode()).hexdigest(), canonical)


def _operator_document(op: str, params: Params, inputs: Sequence[Wire], inner: Sequence[str]) -> dict[str, object]:
    document: dict[str, object] = {"op": op, "inputs": inputs}
    if params:
        document["params"] = dict(params)
    if inner:
        document["inner"] = inner
    return document
