"""Layers of a language model that are written one by one, with types and without values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.models.graph import (
    Feed,
    GraphInput,
    Layer,
    LayerGraph,
    Level,
    NativeNode,
    Numbers,
    Operator,
    Origin,
    TensorType,
    Wire,
)
from dlbricks_tui.models.kinds import Kind, kind_of
from dlbricks_tui.models.neutral import Neutral
from dlbricks_tui.models.onnx.neutral import OnnxSite, native_node, neutral_onnx, text_of

if TYPE_CHECKING:
    from dlbricks_tui.runtime.traits import Traits

# The version of ONNX's own operators in graphs of language models.
OPSET = 21
MICROSOFT = "com.microsoft"
TABLES = frozenset({"Gather", "GatherBlockQuantized"})
# Stands for an input that is no written number.
_TENSOR = "tensor"


class ModelPart(str, Enum):
    """The parts of a language model, between which its time is shared out."""

    PRODUCTS = "products"
    EXPERTS = "experts"
    ATTENTION = "attention"
    NORMS = "norms"
    TABLE = "table"
    HEAD = "head"
    OTHER = "other"


class Made(NamedTuple):
    """A tensor that the graph reads or has computed."""

    feed: Feed
    type: TensorType


class StoredWeight(NamedTuple):
    """A weight; `array` tells it from others of its type."""

    array: Hashable
    type: TensorType


class Constant(NamedTuple):
    """A number, or several, that are part of an operator."""

    values: tuple[int | float, ...]
    dtype: str = "int64"
    is_single: bool = False


Read = Made | StoredWeight | Constant | None


class LayerWriter:
    """Collects layers, each one operator of ONNX, with the part that they belong to and how often the model has them.

    `part` and `times` count for the layers that are added next.
    """

    def __init__(self) -> None:
        self.part = ModelPart.OTHER
        self.times = 1
        self.parts: list[ModelPart] = []
        self.counts: list[int] = []
        self._layers: list[Layer] = []
        self._inputs: list[GraphInput] = []
        self._arrays: dict[Hashable, int] = {}

    def input(self, name: str, found: TensorType, value: Numbers = ()) -> Made:
        """Add an input of the graph; `value` repeats throughout it."""
        self._inputs.append(GraphInput(name, found, value))
        return Made(Feed(None, len(self._inputs) - 1), found)

    def add(
        self, op: str, read: Sequence[Read], made: Sequence[TensorType | None], domain: str = "", **attributes: Any
    ) -> list[Made]:
        """Add an operator and return its outputs; None stands for an input or output that it lacks."""
        tensors = [it for it in read if it is not None and not isinstance(it, Constant)]
        feeds: dict[Feed, TensorType] = {}
        # By the number of the array.
        weights: dict[int, TensorType] = {}
        wires = []
        for it in tensors:
            if isinstance(it, Made):
                feeds.setdefault(it.feed, it.type)
                wires.append(Wire(Origin.DATA, list(feeds).index(it.feed)))
            else:
                number = self._arrays.setdefault(it.array, len(self._arrays))
                weights.setdefault(number, it.type)
                wires.append(Wire(Origin.WEIGHT, list(weights).index(number)))
        outputs = tuple([it for it in made if it is not None])
        # ONNX's own operators may be shared ones, which depends on the types.
        types = () if domain else tuple([it.type for it in tensors])
        neutral, native = _spelled(
            op,
            domain,
            tuple([it if it is None or isinstance(it, Constant) else _TENSOR for it in read]),
            tuple([it is not None for it in made]),
            types,
            () if domain else outputs,
            tuple([(name, type(value), value) for name, value in attributes.items()]),
        )
        operator = Operator(neutral.op, neutral.params, tuple(wires), outputs, native, (), (neutral.op,))
        index = len(self._layers)
        self._layers.append(
            Layer(
                index=index,
                name=f"{op.lower()}{index}",
                op=operator.op,
                kind=Kind.EMBEDDING if op in TABLES and weights else kind_of(operator.op),
                operators=(operator,),
                feeds=tuple(feeds),
                data=tuple(feeds.values()),
                weights=tuple(weights.values()),
                results=tuple([Wire(Origin.OPERATOR, 0, place) for place in range(len(outputs))]),
                outputs=outputs,
                arrays=tuple(weights),
            )
        )
        self.parts.append(self.part)
        self.counts.append(self.times)
        return [Made(Feed(index, place), found) for place, found in enumerate(outputs)]

    def one(self, op: str, read: Sequence[Read], made: TensorType, domain: str = "", **attributes: Any) -> Made:
        """Add an operator with a single output."""
        return self.add(op, read, [made], domain, **attributes)[0]

    def graph(self, name: str, heads: Sequence[Made], traits: Traits) -> LayerGraph:
        """Return all layers; the runtime executes them as they are."""
        return LayerGraph(
            name, Level.FUSED, tuple(self._layers), tuple(self._inputs), tuple([it.feed for it in heads]), traits
        )


@lru_cache(maxsize=1 << 12)
def _spelled(
    op: str,
    domain: str,
    read: tuple[Constant | str | None, ...],
    made: tuple[bool, ...],
    types: tuple[TensorType, ...],
    outputs: tuple[TensorType, ...],
    attributes: tuple[tuple[str, type, Any], ...],
) -> tuple[Neutral, NativeNode]:
    """Return the neutral and the native form of an operator; most layers of a model, and of others, share them."""
    from numpy import dtype
    from onnx.helper import make_node, make_tensor, np_dtype_to_tensor_dtype

    node = make_node(
        op,
        ["" if it is None else f"in{place}" for place, it in enumerate(read)],
        [f"out{place}" if it else "" for place, it in enumerate(made)],
        domain=domain,
        **{name: value for name, _, value in attributes},
    )
    written = {place: it for place, it in enumerate(read) if isinstance(it, Constant)}
    version = 1 if domain else OPSET
    site = OnnxSite(types, outputs, version, {place: it.values for place, it in written.items()}, sum(made))
    texts = {}
    for place, it in written.items():
        shape = () if it.is_single else (len(it.values),)
        texts[place] = text_of(make_tensor("", np_dtype_to_tensor_dtype(dtype(it.dtype)), shape, it.values))
    return neutral_onnx(node, site), native_node(node, texts, version)


def float_type(*shape: int) -> TensorType:
    return TensorType(shape, "float32")
