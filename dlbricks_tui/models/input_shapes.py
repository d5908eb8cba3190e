"""Shapes of data inputs as a person gives them, and what is said where they are missing."""

from collections.abc import Mapping, Sequence
from math import prod

from dlbricks_tui.models.errors import MissingShapeError, ModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.literals import LiteralError, parse_tuple

# What numpy can hold, and with it MXNet and ONNX Runtime.
MOST_AXES = 32


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


def missing_shapes(names: Sequence[str], where: str) -> MissingShapeError:
    """The complaint that some inputs have no shape."""
    example = f"--input {names[0][:80]}=1,3,224,224"
    problem = f"{where} does not say the shape of: {listed(names)}; give each, such as {example}"
    return MissingShapeError(problem, names)


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(name[:80] for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
