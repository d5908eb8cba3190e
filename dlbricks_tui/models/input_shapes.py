"""Which shape each data input of a model has: as told, as the file says, or as its network is known to take."""

import re
from collections.abc import Mapping

from dlbricks_tui.models.errors import MissingShapeError, ModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.literals import LiteralError, parse_tuple
from dlbricks_tui.models.mxnet_file import SymbolFile
from dlbricks_tui.models.mxnet_ops import schema
from dlbricks_tui.models.mxnet_variables import Role, variable_roles

MOST_ELEMENTS = 2**31 - 1

# What published networks take where their file does not say; the first pattern found in the file's name counts.
KNOWN_NETWORKS: tuple[tuple[re.Pattern[str], Shape], ...] = tuple(
    (re.compile(pattern), shape)
    for pattern, shape in (
        (r"lenet|mnist", (1, 1, 28, 28)),
        (r"cifar", (1, 3, 32, 32)),
        (r"ssd\D*300", (1, 3, 300, 300)),
        (r"ssd\D*512", (1, 3, 512, 512)),
        (r"yolo", (1, 3, 416, 416)),
        (r"inception[-_. ]?(v?3|v?4|resnet)|xception", (1, 3, 299, 299)),
        (r"alexnet|vgg|res-?ne[xs]?t|inception|googlenet|squeezenet|mobilenet|densenet", (1, 3, 224, 224)),
        (r"senet|shufflenet|efficientnet|caffenet|nin\b|dpn|mnasnet|ghostnet|hrnet", (1, 3, 224, 224)),
    )
)


def parse_input(text: str) -> tuple[str, Shape]:
    """`NAME=1,3,224,224` as a person gives it on the command line."""
    name, separator, axes = text.partition("=")
    try:
        shape = parse_tuple(axes) if separator and name else None
    except LiteralError:
        shape = None
    if not isinstance(shape, tuple) or not shape or not all(isinstance(axis, int) and axis > 0 for axis in shape):
        raise ModelError(f"--input {text[:80]!r} is not NAME=1,3,224,224")
    return name, tuple(axis for axis in shape if isinstance(axis, int))


def input_shapes(
    file: SymbolFile, given: Mapping[str, Shape], known: Mapping[str, Shape], where: str
) -> dict[int, Shape]:
    """The shape of each data input by node number, as far as anything tells it.

    `given` is what the person says and must name variables of the file; `known` is what a manifest says.
    """
    variables = {node.name: number for number, node in enumerate(file.nodes) if node.is_variable}
    roles = variable_roles(file, {*given, *known})
    inputs = [number for number, role in roles.items() if role is Role.INPUT]
    for name, shape in given.items():
        if name not in variables:
            listed = ", ".join(file.nodes[number].name for number in inputs)
            raise ModelError(f"{where} has no input {name[:80]!r}; its inputs are: {listed or 'none'}")
        _check_size(shape, name, where)
    shapes = {variables[name]: shape for name, shape in given.items()}
    for number in inputs:
        if number in shapes:
            continue
        node = file.nodes[number]
        found = known.get(node.name) or _declared(node.attributes)
        if found is None and len(inputs) == 1 and node.name == "data" and _is_image(file, number):
            found = next((shape for pattern, shape in KNOWN_NETWORKS if pattern.search(where.lower())), None)
        if found is not None:
            _check_size(found, node.name, where)
            shapes[number] = found
    return shapes


def missing_shapes(names: list[str], where: str) -> MissingShapeError:
    """The complaint that some inputs have no shape."""
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    example = f"--input {names[0]}=1,3,224,224"
    return MissingShapeError(f"{where} does not say the shape of: {shown}; give each, such as {example}")


def _declared(attributes: Mapping[str, str]) -> Shape | None:
    try:
        shape = parse_tuple(attributes.get("__shape__", ""))
    except LiteralError:
        return None
    if not isinstance(shape, tuple) or not shape:
        return None
    axes = [axis for axis in shape if isinstance(axis, int)]
    if len(axes) < len(shape) or any(axis <= 0 for axis in axes[1:]):
        return None
    # An open batch axis is the common way to say "any"; one image is what is measured.
    return (axes[0] if axes[0] > 0 else 1, *axes[1:])


def _is_image(file: SymbolFile, number: int) -> bool:
    """Whether a convolution over two axes is somewhere behind the input: the walk stops at the first one."""
    reached = {number}
    for position, node in enumerate(file.nodes):
        if not any(entry.node in reached for entry in node.inputs):
            continue
        found = schema(node.op)
        if found is not None and found.name == "Convolution":
            return node.attributes.get("kernel", "").count(",") == 1
        reached.add(position)
    return False


def _check_size(shape: Shape, name: str, where: str) -> None:
    elements = 1
    for axis in shape:
        elements *= axis
    if elements > MOST_ELEMENTS:
        shown = "x".join(map(str, shape))[:80]
        raise ModelError(f"{where}: input {name[:80]!r} of shape {shown} has more elements than MXNet can hold (2^31)")
