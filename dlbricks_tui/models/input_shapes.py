"""Shapes of data inputs and their batch size: as users write them and as messages show them; they are remembered."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from dlbricks_tui.atomic_write import in_turn, write_atomically
from dlbricks_tui.models.errors import MissingShapeError, ModelError
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.literals import LiteralError, numbers_of, parse_tuple
from dlbricks_tui.regular_files import open_regular, read_json

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
        raise ModelError(f"--input {text[:80]!r} is not NAME=1,3,224,224")
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
    examples = {name: example_shape(axes) for name, axes in declared.items()}
    said = {name: _as_declared(axes) for name, axes in declared.items()}
    problem = f"{where} does not say the shape of: {listed([f'{name[:80]}{text}' for name, text in said.items()])}"
    return MissingShapeError(problem, examples)


def example_shape(axes: Sequence[int | str] | None, length: int = _LENGTH, side: int = _SIDE) -> Shape:
    """Return a shape that a user might give: as many axes as the file declares, with the declared sizes.

    Open axes have this length if they are those of a sequence, and this side if they are those of an image.
    """
    image = (1, 3, side, side)
    if axes is None:
        return image
    axes = axes[:MOST_AXES]
    usual = image if len(axes) == len(image) else (1, *(length,) * len(axes))[: len(axes)]
    return tuple([_example_size(axis, guess, length) for axis, guess in zip(axes, usual, strict=True)])


def _example_size(axis: int | str, guess: int, length: int) -> int:
    if isinstance(axis, int):
        return axis if axis > 0 else guess
    if names_a_batch(axis):
        return 1
    return length if names_a_length(axis) else guess


def names_a_batch(axis: str) -> bool:
    """Return whether the name of an open axis says that it counts images or sentences."""
    return axis.lower().startswith("batch")


def names_a_length(axis: str) -> bool:
    """Return whether the name of an open axis says that it is the length of a sequence."""
    return _NAME_OF_LENGTH.search(axis) is not None


def spelled(given: Mapping[str, Numbers]) -> str:
    """Return shapes or values as users write them: `data=1,3,224,224 state=2,1,128`."""
    return " ".join(f"{name[:80]}={','.join(map(str, numbers))}" for name, numbers in given.items())


def _as_declared(axes: Sequence[int | str] | None) -> str:
    if not axes:
        return ""
    return f" ({', '.join(_size(axis) for axis in axes[:MOST_AXES])})"


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    shown = ", ".join(name[:200] for name in names[:MOST_LISTED])
    return f"{shown} and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else shown


def _size(axis: int | str) -> str:
    open_axis = axis <= 0 if isinstance(axis, int) else not axis
    return "?" if open_axis else str(axis)[:80]


SHAPES_FILE, VALUES_FILE = "input-shapes.json", "input-values.json"
_PIECE_BYTES = 2**20

Item = TypeVar("Item")


def _ignore(source: ModelSource, given: Mapping[str, Numbers]) -> None:
    pass


class ShapeMemory:
    """Shapes and values of inputs by the content of the model file, so that copies and renamed files share them.

    Where their files cannot be read or written, users have to give them again.
    """

    def __init__(self, data: Path, tell: Callable[[ModelSource, Mapping[str, Numbers]], None] = _ignore) -> None:
        """`tell` is called once for each model whose remembered shapes are used, and once for its values."""
        self._shapes: _Remembered[Shape] = _Remembered(data / SHAPES_FILE, _shape)
        self._values: _Remembered[Numbers] = _Remembered(data / VALUES_FILE, numbers_of)
        self._tell = tell
        self._reported: set[tuple[Path, tuple[str, ...]]] = set()

    def recall(self, source: ModelSource, names: tuple[str, ...]) -> Mapping[str, Shape] | None:
        """Return the remembered shapes of these inputs; None if one of them is not known."""
        shapes = self._shapes.of(source)
        if not all(name in shapes for name in names):
            return None
        return {name: shapes[name] for name in names}

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
        if not given:
            return
        with suppress(OSError):
            key = _content_of(source.path)
            if self._read().get(key, {}).items() >= given.items():
                return
            with in_turn(self._file):
                known = self._read()
                known[key] = {**known.get(key, {}), **given}
                write_atomically(self._file, f"{json.dumps(known, indent=1)}\n")

    def forget(self, source: ModelSource) -> bool:
        """Forget what is known of a model; return whether there was anything."""
        if not self.of(source):
            return False
        with in_turn(self._file):
            known = self._read()
            known.pop(_content_of(source.path), None)
            write_atomically(self._file, f"{json.dumps(known, indent=1)}\n")
        return True

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
    digest = hashlib.sha256()
    with suppress(OSError), open_regular(path) as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
