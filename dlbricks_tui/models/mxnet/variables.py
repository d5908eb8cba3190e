"""The variables of an MXNet file: their roles, and the shapes of the data inputs."""

import re
from collections.abc import Collection, Mapping
from enum import Enum

from dlbricks_tui.models.composites import LAYER_ATTRIBUTE
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.input_shapes import listed, read_shape, refuse_too_large
from dlbricks_tui.models.mxnet.neutral import bound_once, schema
from dlbricks_tui.models.mxnet.symbol_file import VARIABLE, SymbolFile, SymbolNode

# MXNet counts elements in 32 bits.
MOST_ELEMENTS = 2**31 - 1

SHAPE_ATTRIBUTE = "__shape__"
_LEARNED_SUFFIXES = ("weight", "bias", "gamma", "beta", "mean", "var", "scale", "const", "state", "parameters", "label")


class Role(str, Enum):
    """The role of a variable."""

    INPUT = "input"
    # Includes labels and recurrent states: bound once, never fed by a layer.
    WEIGHT = "weight"
    CONSTANT = "constant"


def variable_roles(file: SymbolFile, named_inputs: Collection[str] = ()) -> dict[int, Role]:
    """Return the role of each variable by node number.

    `named_inputs` are names that the user or a manifest calls inputs. They count more than a guess by name, and less
    than the declaration of an operator.
    """
    bound, beside_computed = _where_read(file)
    composites = {node.attributes.get(LAYER_ATTRIBUTE) for node in file.nodes if node.op != VARIABLE}
    roles: dict[int, Role] = {}
    for number, node in enumerate(file.nodes):
        if node.op != VARIABLE:
            continue
        layer = node.attributes.get(LAYER_ATTRIBUTE)
        if node.name in named_inputs and number not in bound:
            roles[number] = Role.INPUT
        elif layer is not None:
            # An array in a layer of operators is one of its weights.
            roles[number] = Role.WEIGHT if layer in composites else Role.CONSTANT
        elif number in bound or node.name.lower().endswith(_LEARNED_SUFFIXES):
            roles[number] = Role.WEIGHT
        else:
            # A variable of known shape that joins a computed tensor is a weight.
            fixed = number in beside_computed and SHAPE_ATTRIBUTE in node.attributes
            roles[number] = Role.WEIGHT if fixed else Role.INPUT
    return roles


def _where_read(file: SymbolFile) -> tuple[set[int], set[int]]:
    """Return the variables that an operator declares to be weights, and those that join a computed tensor."""
    bound: set[int] = set()
    beside_computed: set[int] = set()
    nodes = file.nodes
    for node in nodes:
        variables = [entry.node for entry in node.inputs if nodes[entry.node].op == VARIABLE]
        if not variables:
            continue
        if len(variables) < len(node.inputs):
            beside_computed.update(variables)
        for entry, is_bound in zip(node.inputs, bound_once(node.op, len(node.inputs)), strict=True):
            if is_bound and nodes[entry.node].op == VARIABLE:
                bound.add(entry.node)
    return bound, beside_computed


# Input shapes of published networks whose files do not declare them. The first pattern found in the model's name
# counts.
KNOWN_NETWORKS: tuple[tuple[re.Pattern[str], Shape], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), shape)
    for pattern, shape in (
        # Except for the end of "mobilenet" or "googlenet".
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
    file: SymbolFile,
    roles: Mapping[int, Role],
    given: Mapping[str, Shape],
    known: Mapping[str, Shape],
    where: str,
    batch_size: int | None = None,
) -> dict[int, Shape]:
    """Return the known shapes of data inputs by node number.

    `given` are shapes from the user, for variables of the file; `known` are those of a manifest. A batch size replaces
    the first axis of each data input.
    """
    inputs = [number for number, role in roles.items() if role is Role.INPUT]
    names = {file.nodes[number].name for number in roles}
    for name, shape in given.items():
        if not shape:
            raise ModelError(f"{where}: MXNet has no single numbers as inputs; give {name[:80]!r} a shape of sizes")
        if name not in names:
            there = listed([file.nodes[number].name for number in inputs]) or "none"
            raise ModelError(f"{where} has no input {name[:80]!r}; its inputs are: {there}")
    # Users may also give the shape of a weight.
    shapes = {number: given[file.nodes[number].name] for number in roles if file.nodes[number].name in given}
    for number in inputs:
        node = file.nodes[number]
        found = shapes.get(number) or known.get(node.name)
        declared = None if found else declared_axes(node)
        if declared is not None and all(axis > 0 for axis in declared[1:]):
            # An open batch axis means one image.
            found = (max(declared[0], 1), *declared[1:])
        if found is None and len(inputs) == 1 and node.name == "data":
            usual = next((shape for pattern, shape in KNOWN_NETWORKS if pattern.search(where)), None)
            found = usual if usual is not None and _is_image(file, number) else None
        if found is not None:
            shapes[number] = found if batch_size is None else (batch_size, *found[1:])
    refuse_too_large(
        {file.nodes[number].name: shape for number, shape in shapes.items()}, MOST_ELEMENTS, "MXNet", where
    )
    return shapes


def declared_axes(node: SymbolNode) -> Shape | None:
    """Return the declared sizes, 0 or less for an open axis; None where the number of axes is unknown."""
    return read_shape(node.attributes.get(SHAPE_ATTRIBUTE, ""))


def _is_image(file: SymbolFile, number: int) -> bool:
    """Return true if the first convolution behind the input has a kernel of two axes."""
    reached = {number}
    for position, node in enumerate(file.nodes):
        if any(entry.node in reached for entry in node.inputs):
            known = schema(node.op)
            if known is not None and known.name == "Convolution":
                return len(read_shape(node.attributes.get("kernel", "")) or ()) == 2
            reached.add(position)
    return False
