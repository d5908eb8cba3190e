"""Shapes of data inputs as a person gives them, and what is said where they are missing."""

from collections.abc import Mapping, Sequence
from math import prod

from dlbricks_tui.models.errors import MissingShapeError, ModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.literals import LiteralError, parse_tuple

# What numpy can hold, and with it MXNet and ONNX Runtime.
MOST_AXES = 32
MOST_LISTED = 8
# What a person might give for axes that nothing tells: an image, or sequences of some length.
_IMAGE: Shape = (1, 3, 224, 224)
_LENGTH = 128


def parse_input(text: str) -> tuple[str, Shape]:
    """`NAME=1,3,224,224` as a person gives it on the command line."""
    name, _, axes = text.rpartition("=")
    shape = read_shape(axes) if name else None
    if shape is None or any(axis <= 0 for axis in shape):
        raise ModelError(f"--input {text[:80]!r} is not NAME=1,3,224,224")
    return name, shape


def read_shape(text: str) -> Shape | None:
    """Numbers between commas, perhaps in brackets; None for anything else."""
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
    """A shape as messages show it."""
    return "x".join(map(str, shape[:MOST_AXES]))[:80]


def missing_shapes(declared: Mapping[str, Sequence[int | str] | None], where: str) -> MissingShapeError:
    """The complaint that some inputs have no shape; with each what the file says: sizes, and names of open axes.

    None stands for an input of which not even the number of axes is known.
    """
    examples = {name: example_shape(axes) for name, axes in declared.items()}
    said = {name: _as_declared(axes) for name, axes in declared.items()}
    problem = f"{where} does not say the shape of: {listed([f'{name[:80]}{text}' for name, text in said.items()])}"
    return MissingShapeError(problem, examples)


def example_shape(axes: Sequence[int | str] | None) -> Shape:
    """A shape of as many axes as the file says, with the sizes that it says: what a person might give."""
    if not axes:
        return _IMAGE
    axes = axes[:MOST_AXES]
    usual = _IMAGE if len(axes) == len(_IMAGE) else (1, *(_LENGTH,) * (len(axes) - 1))
    pairs = zip(axes, usual, strict=True)
    return tuple([axis if isinstance(axis, int) and axis > 0 else guess for axis, guess in pairs])


def spelled(shapes: Mapping[str, Shape]) -> str:
    """Shapes as a person gives them: `data=1,3,224,224 state=2,1,128`."""
    return " ".join(f"{name[:80]}={','.join(map(str, shape))}" for name, shape in shapes.items())


def _as_declared(axes: Sequence[int | str] | None) -> str:
    if not axes:
        return ""
    return f" ({', '.join(_size(axis) for axis in axes[:MOST_AXES])})"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(name[:200] for name in names[:MOST_LISTED])
    return f"{shown} and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else shown


def _size(axis: int | str) -> str:
    open_axis = axis <= 0 if isinstance(axis, int) else not axis
    return "?" if open_axis else str(axis)[:80]
