"""Neutral operators: one name and one spelling of parameters for an operator that several file formats have.

`mxnet/neutral.py` and `onnx/neutral.py` translate. An operator of one format only keeps its own name behind the name of
the format.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dlbricks_tui.models.graph import Params, ParamValue, Shape, TensorType

Values = Mapping[str, ParamValue]

# Each shared operator with its parameters and their defaults, as in docs/reference/operators.md. A parameter with one
# value per axis has one default for all. None means no default.
_WINDOW: Values = {"kernel": None, "stride": 1, "pads": 0, "dilation": 1, "layout": None}
SHARED_OPS: Mapping[str, Values] = {
    "conv": {**_WINDOW, "groups": 1},
    "conv_transpose": {**_WINDOW, "groups": 1, "output_pads": 0, "target_shape": 0},
    "linear": {"keep_axes": False},
    "embedding": {},
    "batch_norm": {"epsilon": 1e-5, "axis": 1},
    "instance_norm": {"epsilon": 1e-5},
    "lrn": {"size": None, "alpha": 1e-4, "beta": 0.75, "bias": 1.0},
    "max_pool": {**_WINDOW, "rounding": "down"},
    "mean_pool": {**_WINDOW, "rounding": "down", "count_padding": False},
    "global_max_pool": {"layout": None},
    "global_mean_pool": {"layout": None},
    "relu": {},
    "sigmoid": {},
    "tanh": {},
    "softplus": {},
    "softsign": {},
    "leaky_relu": {"alpha": 0.01},
    "elu": {"alpha": 1.0},
    "prelu": {},
    "selu": {},
    "gelu": {},
    "clip": {"min": None, "max": None},
    "exp": {},
    "log": {},
    "sqrt": {},
    "square": {},
    "identity": {},
    "dropout": {"ratio": 0.5},
    "softmax": {"axis": None},
    "add": {},
    "sub": {},
    "mul": {},
    "div": {},
    "sum": {},
    "concat": {"axis": 1},
    "flatten": {},
    "reshape": {"shape": None},
    "transpose": {"axes": None},
    "pad": {"pads": None, "mode": "constant", "value": 0.0},
    "broadcast_to": {"shape": None},
    "reduce_mean": {"axes": None, "keep_axes": False},
    "reduce_sum": {"axes": None, "keep_axes": False},
    "reduce_max": {"axes": None, "keep_axes": False},
    "upsample_nearest": {"scale": None},
}


@dataclass(frozen=True, slots=True)
class Site:
    """The place of an operator in a graph: the types of its inputs and outputs."""

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]

    @property
    def rank(self) -> int | None:
        """The number of axes of the first input."""
        shape = self.inputs[0].shape if self.inputs else None
        return None if shape is None else len(shape)

    @property
    def result(self) -> Shape | None:
        return self.outputs[0].shape if self.outputs else None

    @property
    def computes_with_floats(self) -> bool:
        return bool(self.inputs) and "float" in self.inputs[0].dtype


class Neutral(NamedTuple):
    """An operator under its neutral name, without parameters that have their default value."""

    op: str
    params: Params


class Translated(NamedTuple):
    """A shared operator with all its parameters."""

    op: str
    values: Values

    @property
    def neutral(self) -> Neutral:
        return Neutral(self.op, without_defaults(self.values, SHARED_OPS[self.op]))


def from_the_front(axis: ParamValue, rank: int | None) -> ParamValue:
    """Return an axis, or a tuple of them, counted from the first one on."""
    if isinstance(axis, tuple):
        return tuple([from_the_front(item, rank) for item in axis])
    if rank is not None and isinstance(axis, int) and -rank <= axis < 0:
        return axis + rank
    return axis


def plain_name(op: str) -> str:
    """Return the name of an operator without its framework or domain."""
    return op.rpartition(".")[2].removeprefix("_contrib_").strip("_")


def without_defaults(values: Mapping[str, ParamValue], defaults: Mapping[str, ParamValue]) -> Params:
    """Return the parameters that differ from their defaults, sorted by name."""
    kept = {key: value for key, value in values.items() if value is not None and value != defaults.get(key)}
    # A single default holds for all axes.
    per_axis = {key: value for key, value in kept.items() if not isinstance(defaults.get(key), tuple)}
    for key, value in per_axis.items():
        if isinstance(value, tuple) and all(item == defaults.get(key) for item in value):
            del kept[key]
    return tuple(sorted(kept.items()))


class InnerGraphsTooLargeError(Exception):
    """The subgraphs of a model's operators would fill the memory. The caller adds the model's name."""

    def __init__(self) -> None:
        super().__init__("the graphs inside its operators are too large, or nest too deep")


class InnerForms:
    """Writes the canonical forms of the subgraphs of one model's operators.

    A form within a form has its quotes escaped, so each level of nesting doubles them.
    """

    def __init__(self) -> None:
        self._left = _MOST_INNER_FORMS

    def spell(self, form: Sequence[object]) -> str:
        """Return the form as text; raise InnerGraphsTooLargeError if the forms of the model take too much memory."""
        text = json.dumps(form, separators=(",", ":"))
        self._left -= len(text)
        if self._left < 0:
            raise InnerGraphsTooLargeError
        return text


# Characters. A network of 100,000 fused operators has a third of them.
_MOST_INNER_FORMS = 64 * 2**20
