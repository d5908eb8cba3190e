"""Neutral operators: one name and one spelling of parameters for an operator that several file formats have.

`mxnet_operators.py` and `onnx_operators.py` translate. An operator of one format only keeps its own name behind that of
the format. Values are read in the spellings of all versions of MXNet: `(8L, 3L)`, `True`, `1`, `[1,1]`, `None`.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import copysign, inf
from struct import pack, unpack
from typing import NamedTuple

from dlbricks_tui.models.errors import FlawError
from dlbricks_tui.models.graph import Numbers, Params, ParamValue, Shape, TensorType

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None, "null": None, "": None}
_WHOLE = re.compile(r"[+-]?[0-9]+L?\Z", re.IGNORECASE)
_REAL = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)\Z", re.IGNORECASE)
# Python takes long to read longer numbers.
_LONGEST_NUMBER = 64
# More numbers are data, and no command line holds them.
MOST_NUMBERS = 1024


class LiteralError(ValueError):
    """The text is not a value of the parameter's type."""


def parse_value(text: str, kind: str) -> ParamValue:
    """Parse the value of a parameter whose declared type is `kind`: bool, int, float, tuple or text."""
    text = text.strip()
    if kind == "text":
        return None if text in ("None", "") else text
    if kind == "tuple":
        return parse_tuple(text)
    word = text.lower()
    value = _WORDS[word] if word in _WORDS else _number(text)
    if value is None:
        return None
    if kind == "float":
        return float(value)
    if value not in (0, 1) if kind == "bool" else not float(value).is_integer():
        raise LiteralError(f"{text!r} is not {'true or false' if kind == 'bool' else 'a whole number'}")
    return bool(value) if kind == "bool" else int(value)


def parse_tuple(text: str) -> tuple[int | float | None, ...] | None:
    """Parse a tuple of numbers and Nones; a bare number is a tuple of one."""
    text = text.strip()
    if text in ("None", ""):
        return None
    inner = text[1:-1] if text[0] in "([" and text[-1] in ")]" else text
    parts = [part.strip() for part in inner.split(",")]
    if parts[-1] == "":
        parts.pop()
    numbers = [None if part == "None" else _number(part) for part in parts]
    return tuple([int(it) if isinstance(it, float) and it.is_integer() else it for it in numbers])


def numbers_of(document: object) -> Numbers:
    """Return the numbers or texts of a JSON document: one, or a list; raise ValueError for anything else."""
    items = document if isinstance(document, list) else [document]
    numbers = tuple(
        [it for it in items if type(it) is int or type(it) is str or (type(it) is float and math.isfinite(it))]
    )
    if not items or len(numbers) < len(items) or len(numbers) > MOST_NUMBERS:
        raise ValueError("not a number or a list of numbers")
    return numbers


def guess_value(text: str) -> ParamValue:
    """Parse the value of a parameter of unknown type."""
    text = text.strip()
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return parse_tuple(text) if text[0] in "([" else _number(text)
    except LiteralError:
        return text


def single_precision(value: float) -> float:
    """Return the shortest number with the same 32-bit value: MXNet also writes `0.001` as `0.0010000000474974513`."""
    held = _held_in_32_bits(value)
    # Nine digits always suffice. Adding zero removes the sign of a zero, which no operator distinguishes.
    spellings = (float(f"{held:.{digits}g}") for digits in range(6, 10))
    return next((short for short in spellings if _held_in_32_bits(short) == held), value) + 0.0


def _held_in_32_bits(value: float) -> float:
    try:
        (held,) = unpack("f", pack("f", value))
    except OverflowError:
        # Python 3.14 refuses such numbers, earlier versions take them for infinite.
        return copysign(inf, value)
    return float(held)


def _number(text: str) -> int | float:
    if len(text) <= _LONGEST_NUMBER:
        if _WHOLE.match(text):
            return int(text.rstrip("lL"))
        if _REAL.match(text):
            return single_precision(float(text))
    raise LiteralError(f"{text[:40]!r} is not a number")


Values = Mapping[str, ParamValue]

# Each shared operator with its parameters and their defaults, as in docs/reference/operators.md. A parameter with one
# value per axis has one default for all. None means no default.
_WINDOW: Values = {"kernel": None, "stride": 1, "pads": 0, "dilation": 1, "layout": None}
_NO_PARAMETERS: Values = {}
SHARED_OPS: Mapping[str, Values] = {
    "conv": {**_WINDOW, "groups": 1},
    "conv_transpose": {**_WINDOW, "groups": 1, "output_pads": 0, "target_shape": 0},
    "linear": {"keep_axes": False},
    "embedding": _NO_PARAMETERS,
    "batch_norm": {"epsilon": 1e-5, "axis": 1},
    "instance_norm": {"epsilon": 1e-5},
    "lrn": {"size": None, "alpha": 1e-4, "beta": 0.75, "bias": 1.0},
    "max_pool": {**_WINDOW, "rounding": "down"},
    "mean_pool": {**_WINDOW, "rounding": "down", "count_padding": False},
    "global_max_pool": {"layout": None},
    "global_mean_pool": {"layout": None},
    **dict.fromkeys(("relu", "sigmoid", "tanh", "softplus", "softsign"), _NO_PARAMETERS),
    "leaky_relu": {"alpha": 0.01},
    "elu": {"alpha": 1.0},
    **dict.fromkeys(("prelu", "selu", "gelu"), _NO_PARAMETERS),
    "clip": {"min": None, "max": None},
    **dict.fromkeys(("exp", "log", "sqrt", "square", "identity"), _NO_PARAMETERS),
    "dropout": {"ratio": 0.5},
    "softmax": {"axis": None},
    **dict.fromkeys(("add", "sub", "mul", "div", "sum"), _NO_PARAMETERS),
    "concat": {"axis": 1},
    "flatten": _NO_PARAMETERS,
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


def shared(op: str, values: Values) -> Neutral:
    """Return a shared operator, given all its parameters."""
    return Neutral(op, without_defaults(values, SHARED_OPS[op]))


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


class InnerForms:
    """Writes the canonical forms of the subgraphs of one model's operators.

    A form within a form has its quotes escaped, so each level of nesting doubles them.
    """

    def __init__(self) -> None:
        self._left = _MOST_INNER_FORMS

    def spell(self, form: Sequence[object]) -> str:
        """Return the form as text; raise FlawError if the forms of the model take too much memory."""
        text = json.dumps(form, separators=(",", ":"))
        self._left -= len(text)
        if self._left < 0:
            raise FlawError("the graphs inside its operators are too large, or nest too deep")
        return text


# Characters. A network of 100,000 fused operators has a third of them.
_MOST_INNER_FORMS = 64 * 2**20
