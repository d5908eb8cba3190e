"""Values of inputs that are settings of a model: a sampling rate, for example."""

import math
from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import GraphInput, Numbers, TensorType
from dlbricks_tui.models.input_shapes import MOST_LISTED, listed, short_shape
from dlbricks_tui.models.literals import MOST_NUMBERS

_LONGEST_NUMBER = 64
_SETTINGS = frozenset({"int64", "int32"})
_EXAMPLE = "NAME=16000, NAME=1,2,3 or NAME=text"


class _Range(NamedTuple):
    least: int
    most: int


_WHOLE_NUMBERS: Mapping[str, _Range] = {
    "bool": _Range(0, 1),
    **{f"int{bits}": _Range(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": _Range(0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
_LARGEST_FLOATS: Mapping[str, float] = {"float16": 65504.0, "bfloat16": 3.3e38, "float32": 3.4e38, "float64": math.inf}


def parse_value_option(text: str) -> tuple[str, Numbers]:
    """Parse `NAME=16000`, `NAME=1,2,3` or `NAME=text` from the command line; a number in quotes is a text."""
    name, _, values = text.rpartition("=")
    parts = [part.strip() for part in values.split(",")] if name and len(values) < MOST_NUMBERS * 32 else []
    numbers = [_number(part) for part in parts]
    known = tuple([number for number in numbers if number is not None])
    if not any(parts):
        raise ModelError(f"--value {text[:80]!r} is not {_EXAMPLE}")
    if len(parts) > MOST_NUMBERS:
        raise ModelError(f"--value {name[:80]!r} has {len(parts):,} values; the limit is {MOST_NUMBERS:,}")
    return name, known if len(known) == len(parts) else tuple([_unquoted(part) for part in parts])


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def refuse_unknown_inputs(values: Mapping[str, Numbers], names: list[str], where: str) -> None:
    """Raise ModelError for a value of an input that the model lacks."""
    for name in values:
        if name not in names:
            raise ModelError(f"{where} has no input {name[:80]!r}; its inputs are: {listed(names) or 'none'}")


def refuse_unfit(values: Mapping[str, Numbers], types: Mapping[str, TensorType], where: str) -> None:
    """Raise ModelError for values of another count or type than their input. One number fills an input of any size."""
    for name, numbers in values.items():
        shape, dtype = types[name]
        label = f"{where}: input {name[:80]!r}"
        elements = prod(shape or ())
        if len(numbers) not in (1, elements):
            size = short_shape(shape or ()) or "a single number"
            fitting = "1" if elements == 1 else f"1 or {elements:,}"
            raise ModelError(f"{label} is {size}; its --value has {len(numbers):,} numbers, give {fitting}")
        if dtype in _WHOLE_NUMBERS:
            least, most = _WHOLE_NUMBERS[dtype]
            if not all(isinstance(number, int) and least <= number <= most for number in numbers):
                raise ModelError(f"{label} takes whole numbers from {least} to {most}; give such a --value")
        elif dtype not in _LARGEST_FLOATS:
            if dtype != "object":
                raise ModelError(f"{label} takes {dtype}, which --value cannot give")
        elif any(isinstance(number, str) or abs(number) > _LARGEST_FLOATS[dtype] for number in numbers):
            raise ModelError(f"{label} is {dtype}, which cannot hold the given --value")


def value_advice(inputs: Iterable[GraphInput]) -> str:
    """Return the advice to give the values of inputs that may be settings; empty if there are none.

    It follows the message that a model fails on synthetic inputs.
    """
    names = [
        it.name
        for it in inputs
        if not it.value and it.type.shape is not None and prod(it.type.shape) == 1 and it.type.dtype in _SETTINGS
    ]
    if not names:
        return ""
    options = " ".join(f"--value {name[:80]}=NUMBER" for name in names[:MOST_LISTED])
    return f"; if {listed(names)} must have a certain value, give it: {options}"


def _number(text: str) -> int | float | None:
    if len(text) > _LONGEST_NUMBER:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
