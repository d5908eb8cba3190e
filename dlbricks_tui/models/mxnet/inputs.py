"""Which shape each data input of an MXNet model has: as told, as the file says, or as its network is known to take."""

import re
from collections.abc import Mapping

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.input_shapes import listed, read_shape, refuse_too_large
from dlbricks_tui.models.mxnet.layer_graph import MOST_ELEMENTS
from dlbricks_tui.models.mxnet.operators import schema
from dlbricks_tui.models.mxnet.symbol_file import SymbolFile, SymbolNode
from dlbricks_tui.models.mxnet.variables import SHAPE_ATTRIBUTE, Role

# What published networks take where their file does not say; the first pattern found in the model's name counts.
KNOWN_NETWORKS: tuple[tuple[re.Pattern[str], Shape], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), shape)
    for pattern, shape in (
        # Not the end of "mobilenet" or "googlenet".
        (r"(?<![a-z])lenet|mnist", (1, 1, 28, 28)),
        (r"cifar", (1, 3, 32, 32)),
        (r"ssd\D*300", (1, 3, 300, 300)),
        (r"ssd\D*512", (1, 3, 512, 512)),
        (r"yolo", (1, 3, 416, 416)),
        (r"inception[-_. ]?(v?3|v?4|resnet)|xception", (1, 3, 299, 299)),
        (r"alexnet|vgg|res-?ne[xs]?t|inception|googlenet|squeezenet|mobilenet|densenet", (1, 3, 224, 224)),
        (r"senet|shufflenet|efficientnet|caffenet|(?<![a-z])nin(?![a-z])|dpn|mnasnet|ghostnet", (1, 3, 224, 224)),
    )
)


def input_shapes(
    file: SymbolFile, roles: Mapping[int, Role], given: Mapping[str, Shape], known: Mapping[str, Shape], where: str
) -> dict[int, Shape]:
    """The shape of each data input by node number, as far as anything tells it.

    `given` is what the person says and must name variables of the file; `known` is what a manifest says.
    """
    inputs = [number for number, role in roles.items() if role is Role.INPUT]
    names = {file.nodes[number].name for number in roles}
    for name in given:
        if name not in names:
            there = listed([file.nodes[number].name for number in inputs]) or "none"
            raise ModelError(f"{where} has no input {name[:80]!r}; its inputs are: {there}")
    # A shape may be given for a learned array, too, where nothing else tells it.
    shapes = {number: given[file.nodes[number].name] for number in roles if file.nodes[number].name in given}
    for number in inputs:
        node = file.nodes[number]
        found = shapes.get(number) or known.get(node.name) or _declared(node)
        if found is None and len(inputs) == 1:
            found = _of_known_network(file, number, where)
        if found is not None:
            shapes[number] = found
    refuse_too_large(
        {file.nodes[number].name: shape for number, shape in shapes.items()}, MOST_ELEMENTS, "MXNet", where
    )
    return shapes


def declared_axes(node: SymbolNode) -> Shape | None:
    """The sizes that the file says, 0 or less for an open axis; None where not even their number is said."""
    return read_shape(node.attributes.get(SHAPE_ATTRIBUTE, ""))


def _declared(node: SymbolNode) -> Shape | None:
    shape = declared_axes(node)
    if shape is None or any(axis <= 0 for axis in shape[1:]):
        return None
    # An open batch axis is the common way to say "any"; one image is what is measured.
    return (max(shape[0], 1), *shape[1:])


def _of_known_network(file: SymbolFile, number: int, name: str) -> Shape | None:
    if file.nodes[number].name != "data":
        return None
    found = next((shape for pattern, shape in KNOWN_NETWORKS if pattern.search(name)), None)
    return found if found is not None and _is_image(file, number) else None


def _is_image(file: SymbolFile, number: int) -> bool:
    """Whether the first convolution behind the input moves over two axes."""
    reached = {number}
    for position, node in enumerate(file.nodes):
        if any(entry.node in reached for entry in node.inputs):
            known = schema(node.op)
            if known is not None and known.name == "Convolution":
                return len(read_shape(node.attributes.get("kernel", "")) or ()) == 2
            reached.add(position)
    return False
