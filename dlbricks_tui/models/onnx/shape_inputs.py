"""Inputs whose values set the shapes of an operator's results, and the shapes that depend on data."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from dlbricks_tui.models.onnx.model_file import OnnxFile, reads

if TYPE_CHECKING:
    from onnx import NodeProto

# By operator and place.
_PLACES: Mapping[str, frozenset[int]] = {
    "AffineGrid": frozenset({1}),
    "BlackmanWindow": frozenset({0}),
    "CenterCropPad": frozenset({1}),
    "Col2Im": frozenset({1, 2}),
    "Compress": frozenset({1}),
    "ConstantOfShape": frozenset({0}),
    "DFT": frozenset({1, 2}),
    "Expand": frozenset({1}),
    "GroupQueryAttention": frozenset({5, 6}),
    "HammingWindow": frozenset({0}),
    "HannWindow": frozenset({0}),
    "If": frozenset({0}),
    "Loop": frozenset({0, 1}),
    "MaxUnpool": frozenset({2}),
    "MelWeightMatrix": frozenset({0, 1}),
    "NonMaxSuppression": frozenset({2}),
    "OneHot": frozenset({1}),
    "Pad": frozenset({1, 3}),
    "Range": frozenset({0, 1, 2}),
    "Reshape": frozenset({1}),
    "Resize": frozenset({1, 2, 3}),
    "STFT": frozenset({1, 3}),
    "Slice": frozenset({1, 2, 3, 4}),
    "Split": frozenset({1}),
    "SplitToSequence": frozenset({1}),
    "Squeeze": frozenset({1}),
    "Tile": frozenset({1, 2}),
    "TopK": frozenset({1}),
    "Unsqueeze": frozenset({1}),
    "Upsample": frozenset({1}),
}
_NONE: frozenset[int] = frozenset()
_REDUCTIONS = "Reduce"
# Operators whose results have as many elements as their data happens to have of a kind.
_COUNT_DATA = frozenset(
    {"BeamSearch", "Compress", "GreedySearch", "NonMaxSuppression", "NonZero", "StringSplit", "Unique"}
)
_READ_SHAPES = frozenset({"Shape", "Size"})
_RANDOM = frozenset({"Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike"})


def shape_places(op: str) -> frozenset[int]:
    """Return the places of inputs whose values set the shape of a result."""
    return frozenset({1}) if op.startswith(_REDUCTIONS) else _PLACES.get(op, _NONE)


def set_shapes(node: "NodeProto") -> list[str]:
    """Return the inputs of a node whose values set the shape of a result."""
    return [node.input[place] for place in shape_places(node.op_type) if place < len(node.input) and node.input[place]]


def depending_on_data(file: OnnxFile, uncertain: Collection[str], given: Iterable[str]) -> frozenset[str]:
    """Return those of some tensors whose shapes depend on data, and not only on the shapes of inputs.

    `given` are inputs with given values.
    """
    # Tensors whose values follow from shapes, stored arrays and given values.
    fixed = {*given, *(weight.name for weight in file.weights)}
    found: set[str] = set()
    for node in file.nodes:
        read, written = list(filter(None, reads(node))), list(filter(None, node.output))
        if node.op_type in _READ_SHAPES:
            fixed.update(written if found.isdisjoint(read) else ())
        elif fixed.issuperset(read) and node.op_type not in _RANDOM:
            fixed.update(written)
        if node.op_type in _COUNT_DATA or not found.isdisjoint(read) or not fixed.issuperset(set_shapes(node)):
            found.update(name for name in written if name in uncertain and name not in fixed)
    return frozenset(found)
