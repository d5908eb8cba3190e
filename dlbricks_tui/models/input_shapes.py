"""Shapes and values of inputs: as users write them and as messages show them; they are remembered.

Values are settings of a model: a sampling rate, for example.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from dlbricks_tui.files import in_turn, read_json, write_atomically
from dlbricks_tui.models.content import digest_of
from dlbricks_tui.models.errors import MissingShapeError, ModelError
from dlbricks_tui.models.graph import GraphInput, Numbers, Shape, TensorType
from dlbricks_tui.models.neutral import MOST_NUMBERS, LiteralError, numbers_of, parse_tuple

if TYPE_CHECKING:
    from dlbricks_tui.models.library import ModelSource

# The limit of numpy, and so of MXNet and ONNX Runtime.
MOST_AXES = 32
MOST_LISTED = 8
# How users write the shape of a single number.
_SCALAR = ("", "()", "[]")
# Examples for axes of unknown size: an image, or sequences.
_SIDE = 224
_LENGTH = 128
_NAME_OF_LENGTH = re.compile("seq|len", re.IGNORECASE)


def parse_input(text: str) -> tuple[str, Shape]:
    """Parse `NAME=1,3,224,224` from the command line; `NAME=` is a single number."""
    name, _, axes = text.rpartition("=")
    shape = () if axes.strip() in _SCALAR else read_shape(axes)
    if not name or shape is None or any(axis <= 0 for axis in shape):
        sizes = "" if shape is None else ", of sizes from 1 on: an input without elements is not measured"
        raise ModelError(f"--input {text[:80]!r} is not NAME=1,3,224,224{sizes}")
    return name, shape


def read_shape(text: str) -> Shape | None:
    """Parse numbers between commas, with or without brackets; return None for anything else."""
    try:
        axes = parse_tuple(text) or ()
    except LiteralError:
        return None
    shape = tuple([axis for axis in axes if isinstance(axis, int)])
    return shape if shape and len(shape) == len(axes) else None


def refuse_too_large(shapes: Mapping[str, Shape], most_elements: int, holder: str, where: str) -> None:
    """Raise ModelError for an input of more axes or elements than `holder`, a framework, can hold."""
    for name, shape in shapes.items():
        if len(shape) > MOST_AXES:
            raise ModelError(
                f"{where}: input {name[:80]!r} has {len(shape):,} axes; {holder} can hold at most {MOST_AXES}"
            )
        if any(size < 0 for size in shape) or prod(shape) > most_elements:
            problem = f"has more elements than {holder} can hold (2^{most_elements.bit_length()})"
            raise ModelError(f"{where}: input {name[:80]!r} of shape {short_shape(shape)} {problem}")


def short_shape(shape: Shape) -> str:
    """Return a shape as messages show it."""
    return "x".join(map(str, shape[:MOST_AXES]))[:80]


def missing_shapes(declared: Mapping[str, Sequence[int | str] | None], where: str) -> MissingShapeError:
    """Return the error that inputs have no shape, with the sizes and axis names that the file declares.

    None stands for an input whose number of axes is unknown.
    """
    said = []
    for name, axes in declared.items():
        sizes = [
            "?" if (axis <= 0 if isinstance(axis, int) else not axis) else str(axis)[:80]
            for axis in (axes or ())[:MOST_AXES]
        ]
        said.append(f"{name[:80]} ({', '.join(sizes)})" if sizes else name[:80])
    examples = {name: example_shape(axes) for name, axes in declared.items()}
    return MissingShapeError(f"{where} does not say the shape of: {listed(said)}", examples)


def example_shape(axes: Sequence[int | str] | None, length: int = _LENGTH, side: int = _SIDE) -> Shape:
    """Return a shape that a user might give: as many axes as the file declares, with the declared sizes.

    Open axes have this length if they are those of a sequence, and this side if they are those of an image.
    """
    image = (1, 3, side, side)
    if axes is None:
        return image
    axes = axes[:MOST_AXES]
    if len(axes) == len(image) and axes[3] in (1, 3, 4) and not (isinstance(axes[1], int) and axes[1] > 0):
        # Its colours come last.
        image = (1, side, side, 3)
    usual = image if len(axes) == len(image) else (1, *(length,) * len(axes))[: len(axes)]
    found = []
    for axis, guess in zip(axes, usual, strict=True):
        if isinstance(axis, int):
            found.append(axis if axis > 0 else guess)
        else:
            found.append(1 if names_a_batch(axis) else length if names_a_length(axis) else guess)
    return tuple(found)


def names_a_batch(axis: str) -> bool:
    """Return whether the name of an open axis says that it counts images or sentences."""
    return axis.lower().startswith("batch")


def names_a_length(axis: str) -> bool:
    """Return whether the name of an open axis says that it is the length of a sequence."""
    return _NAME_OF_LENGTH.search(axis) is not None


def spelled(given: Mapping[str, Numbers]) -> str:
    """Return shapes or values as users write them: `data=1,3,224,224 state=2,1,128`."""
    return " ".join(f"{name[:80]}={','.join(map(str, numbers))}" for name, numbers in given.items())


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    shown = ", ".join(name[:200] for name in names[:MOST_LISTED])
    return f"{shown} and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else shown


_LONGEST_NUMBER = 64
_SETTINGS = frozenset({"int64", "int32"})
_EXAMPLE = "NAME=16000, NAME=1,2,3 or NAME=text"

# The least and the largest number by data type.
_WHOLE_NUMBERS: Mapping[str, tuple[int, int]] = {
    "bool": (0, 1),
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
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
    texts = [it[1:-1] if len(it) > 1 and it[0] == it[-1] == '"' else it for it in parts]
    return name, known if len(known) == len(parts) else tuple(texts)


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


def value_advice(inputs: Iterable[GraphInput], failure: str) -> str:
    """Return the advice to give the values of inputs that may be settings or divisors; empty if there are none.

    It follows the message that a model fails on synthetic inputs.
    """
    divides = "by zero" in failure
    sizes = {
        it.name: prod(shape)
        for it in inputs
        if not it.value and (shape := it.type.shape) is not None and it.type.dtype in _SETTINGS
        # One number, a list of sizes, or what may divide.
        if divides or prod(shape) == 1 or (len(shape) == 1 and shape[0] <= MOST_LISTED)
    }
    if not sizes:
        return ""
    # One number fills an input.
    given = {name: ("NUMBER",) * (size if size <= MOST_LISTED else 1) for name, size in [*sizes.items()][:MOST_LISTED]}
    options = " ".join(f"--value {name[:80]}={','.join(numbers)}" for name, numbers in given.items())
    return f"; if {listed([*sizes])} must have a certain value, give it: {options}"


def _number(text: str) -> int | float | None:
    if len(text) > _LONGEST_NUMBER:
        return None
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        number = float(text)
        if math.isfinite(number):
            return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return None


class StatedInputs(NamedTuple):
    """Shapes and values by the names of inputs."""

    shapes: Mapping[str, Shape]
    values: Mapping[str, Numbers]


SHAPES_FILE, VALUES_FILE = "input-shapes.json", "input-values.json"

Item = TypeVar("Item")


class ShapeMemory:
    """Shapes and values of inputs by the content of the model file, so that copies and renamed files share them.

    Where their files cannot be read or written, users have to give them again.
    """

    def __init__(
        self, data: Path, tell: Callable[[ModelSource, Mapping[str, Numbers]], object] = lambda source, given: None
    ) -> None:
        """`tell` is called once for each model whose remembered shapes are used, and once for its values."""
        self._shapes: _Remembered[Shape] = _Remembered(data / SHAPES_FILE, _shape)
        self._values: _Remembered[Numbers] = _Remembered(data / VALUES_FILE, numbers_of)
        self._tell = tell
        self._reported: set[tuple[Path, tuple[str, ...]]] = set()

    def recall_shapes(self, source: ModelSource) -> Mapping[str, Shape]:
        """Return all remembered shapes of inputs; they count only where the file does not say them."""
        return self._shapes.of(source)

    def recall_values(self, source: ModelSource) -> Mapping[str, Numbers]:
        """Return the remembered values of inputs."""
        return self._values.of(source)

    def used(self, source: ModelSource, given: Mapping[str, Numbers]) -> None:
        """Report that these remembered shapes or values are used, once per model."""
        what = source.path, tuple(sorted(given))
        if what not in self._reported:
            self._reported.add(what)
            self._tell(source, given)

    def remember(
        self, source: ModelSource, shapes: Mapping[str, Shape], values: Mapping[str, Numbers] | None = None
    ) -> None:
        """Remember these shapes and values for the next time that the model is read."""
        self._shapes.add(source, shapes)
        self._values.add(source, values or {})

    def forget(self, source: ModelSource) -> bool:
        """Forget the shapes and values of a model; return whether there were any."""
        shapes, values = self._shapes.forget(source), self._values.forget(source)
        return shapes or values


class _Remembered(Generic[Item]):
    """A file with the shapes and values that users gave for the inputs of models."""

    def __init__(self, file: Path, read: Callable[[object], Item]) -> None:
        """`read` checks one item of the file, and raises ValueError for an invalid one."""
        self._file = file
        self._check = read

    def of(self, source: ModelSource) -> Mapping[str, Item]:
        """Return what is known of a model, by input name."""
        known = self._read()
        # Without any items the model file need not be read.
        return known.get(_content_of(source.path), {}) if known else {}

    def add(self, source: ModelSource, given: Mapping[str, Item]) -> None:
        """Add these to what is known of a model."""
        if not given or self.of(source).items() >= given.items():
            return
        with suppress(OSError):
            self._change(source, given)

    def forget(self, source: ModelSource) -> bool:
        """Forget what is known of a model; return whether there was anything."""
        if not self.of(source):
            return False
        self._change(source, {})
        return True

    def _change(self, source: ModelSource, given: Mapping[str, Item]) -> None:
        """Add these to what is known of a model, or forget all of it."""
        with in_turn(self._file):
            known, key = self._read(), _content_of(source.path)
            held = known.pop(key, {})
            if given:
                known[key] = {**held, **given}
            write_atomically(self._file, f"{json.dumps(known, indent=1)}\n")

    def _read(self) -> dict[str, dict[str, Item]]:
        try:
            document = read_json(self._file)
            return {
                str(key): {str(name): self._check(item) for name, item in items.items()}
                for key, items in document.items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}


def _shape(axes: object) -> Shape:
    if not isinstance(axes, list) or not all(type(axis) is int and axis > 0 for axis in axes):
        raise ValueError("not a shape")
    return tuple(axes)


def _content_of(path: Path) -> str:
    with suppress(OSError):
        return digest_of(path, "sha256")
    return ""
