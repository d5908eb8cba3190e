"""Which variables of an MXNet file are data inputs, which are learned, and which are layers."""

from collections.abc import Collection
from enum import Enum

from dlbricks_tui.models.mxnet.operators import bound_once
from dlbricks_tui.models.mxnet.symbol_document import VARIABLE
from dlbricks_tui.models.mxnet.symbol_file import SymbolFile

LAYER_ATTRIBUTE = "__layer__"
SHAPE_ATTRIBUTE = "__shape__"
_LEARNED_SUFFIXES = ("weight", "bias", "gamma", "beta", "mean", "var", "scale", "const", "state", "parameters", "label")


class Role(str, Enum):
    """What a variable is for."""

    INPUT = "input"
    # Also labels and recurrent states: bound once, never fed by a layer.
    WEIGHT = "weight"
    CONSTANT = "constant"


def variable_roles(file: SymbolFile, named_inputs: Collection[str] = ()) -> dict[int, Role]:
    """The role of every variable by its node number.

    `named_inputs` are what a person or a manifest calls an input: that counts for more than a guess by name, and for
    less than what an operator declares.
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
            # An array that stands in a layer of operators is one of its weights.
            roles[number] = Role.WEIGHT if layer in composites else Role.CONSTANT
        elif number in bound or node.name.lower().endswith(_LEARNED_SUFFIXES):
            roles[number] = Role.WEIGHT
        else:
            # A variable of known shape that joins a computed tensor is a learned vector, not something to be fed.
            fixed = number in beside_computed and SHAPE_ATTRIBUTE in node.attributes
            roles[number] = Role.WEIGHT if fixed else Role.INPUT
    return roles


def _where_read(file: SymbolFile) -> tuple[set[int], set[int]]:
    """The variables that some operator declares to be learned, and those that stand beside a computed tensor."""
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
