"""The identity of bricks: operators, parameters, shapes, data types and wiring, hashed to a key.

A whole model is one brick, too: by its key, end-to-end measurements are found whatever the model is called.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

from dlbricks_tui.models.composites import joined_layer
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Level, Params, TensorType, Wire

# Part of every key. It changes with the canonical form, so that keys of different forms are never equal.
CANONICAL_VERSION = 1

# Neutral name, parameters, inputs, graphs inside, and how often it runs in each run of the sequence.
OperatorForm = tuple[str, Params, tuple[Wire, ...], tuple[str, ...], int]
Forms = tuple[OperatorForm, ...]
Types = tuple[TensorType, ...]


@dataclass(frozen=True, slots=True)
class Brick:
    """A unique layer sequence: its key, and the canonical form that the key is the hash of."""

    key: str
    canonical: str


def brick_of(graph: LayerGraph, layers: Sequence[int]) -> Brick:
    """Return the brick of a sequence of layers, given by their indices in order."""
    members, paid = [graph.layers[index] for index in layers], times_paid(graph, layers)
    found = members[0]
    if len(members) > 1:
        # Bricks do not tell which layers share an array.
        found = joined_layer([replace(it, arrays=()) for it in members], (), lambda feed: feed)
    times = [layer.times // paid for layer in members for _ in layer.operators]
    forms = [(it.op, it.params, it.inputs, it.inner, runs) for it, runs in zip(found.operators, times, strict=True)]
    return _brick(graph.level, tuple(forms), found.data, found.weights)


@lru_cache(maxsize=1 << 12)
def operators_inside(graph: str) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Return the neutral names and parameters of the innermost operators in the canonical form of an inner graph."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    # The last entry names the outputs; variables are strings.
    for op, params, _, inner in (node for node in json.loads(graph)[:-1] if isinstance(node, list)):
        deeper = [part for each in inner for part in operators_inside(each)]
        found += deeper or [(op, dict(params))]
    return found


def outer_feeds(layers: Sequence[Layer]) -> tuple[Feed, ...]:
    """Return the distinct inputs of a sequence that come from outside of it, in the order in which they are read."""
    inside = {layer.index for layer in layers}
    return tuple(dict.fromkeys(feed for layer in layers for feed in layer.feeds if feed.layer not in inside))


def times_paid(graph: LayerGraph, layers: Sequence[int]) -> int:
    """Return how often a model runs a sequence of these layers.

    If its layers have different `times`, the sequence holds a layer `layer.times // times_paid` times.
    """
    return gcd(*(graph.layers[layer].times for layer in layers))


@lru_cache(maxsize=1 << 16)
def _brick(level: Level, forms: Forms, data: Types, weights: Types) -> Brick:
    document = {
        "version": CANONICAL_VERSION,
        "level": level.value,
        "operators": [_operator_document(*form) for form in forms],
        "data": data,
        "weights": weights,
    }
    return brick_in(document)


def brick_in(document: Mapping[str, object]) -> Brick:
    """Return the brick that a document describes."""
    canonical = json.dumps(document, separators=(",", ":"), sort_keys=True)
    return Brick(hashlib.sha256(canonical.encode()).hexdigest(), canonical)


def _operator_document(
    op: str, params: Params, inputs: Sequence[Wire], inner: Sequence[str], times: int
) -> dict[str, object]:
    document: dict[str, object] = {"op": op, "inputs": inputs}
    if params:
        document["params"] = dict(params)
    if inner:
        document["inner"] = inner
    if times > 1:
        document["times"] = times
    return document


def whole_model(graph: LayerGraph) -> Brick:
    """Return all layers of a model as one brick; equal models have equal ones."""
    return brick_of(graph, range(len(graph.layers)))


# The key of a part of a model begins with this.
_PART_OF = "part of "


class CarrierKeys(NamedTuple):
    """The keys that results state: of those timed in the whole model, and of those timed in a part of it."""

    whole: str
    part: str


def carrier_keys(model: LayerGraph) -> CarrierKeys:
    """Return the keys of the carriers of a model."""
    key = whole_model(model).key
    return CarrierKeys(key, _PART_OF + key)


def as_optimised(graph: LayerGraph) -> LayerGraph:
    """Return a model as the runtime times it when it optimises the file, where the fused layers are not known.

    Its layers stay as written. Its level, and so its key, differs from that of the model run as written.
    """
    return replace(graph, level=Level.FUSED)


def end_to_end_keys(graph: LayerGraph) -> Mapping[Level, str]:
    """Return the keys under which a model may have been timed end to end, by level.

    A model that is estimated from its written layers may have been timed by a runtime that optimises its file.
    """
    keys = {graph.level: whole_model(graph).key}
    if graph.level is Level.WRITTEN:
        keys[Level.FUSED] = whole_model(as_optimised(graph)).key
    return keys
