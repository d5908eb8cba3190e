"""Which variables of an MXNet file are data inputs, which are learned, and which are layers."""

from collections.abc import Collection
from enum import Enum

from dlbricks_tui.models.mxnet_file import SymbolFile
from dlbricks_tui.models.mxnet_ops import LABEL_ROLES, LEARNED_ROLES, schema

LAYER_ATTRIBUTE = "__layer__"
_LEARNED_SUFFIXES = ("weight", "bias", "gamma", "beta", "mean", "var", "scale", "const", "state", "parameters", "label")


class Role(str, Enum):
    """What a variable is for."""

    INPUT = "input"
    # Also labels and recurrent states: bound once, never fed by a layer.
    WEIGHT = "weight"
    CONSTANT = "constant"


def variable_roles(file: SymbolFile, named_inputs: Collection[str] = ()) -> dict[int, Role]:
    """The role of every variable by its node number; `named_inputs` are known to be data inputs."""
    learned: set[int] = set()
    beside_computed: set[int] = set()
    for node in file.nodes:
        found = schema(node.op)
        computed = any(not file.nodes[entry.node].is_variable for entry in node.inputs)
        for position, entry in enumerate(node.inputs):
            if not file.nodes[entry.node].is_variable:
                continue
            if found is not None and found.role(position) in LEARNED_ROLES | LABEL_ROLES:
                learned.add(entry.node)
            elif computed:
                beside_computed.add(entry.node)
    roles: dict[int, Role] = {}
    for number, node in enumerate(file.nodes):
        if not node.is_variable:
            continue
        if node.name in named_inputs:
            roles[number] = Role.INPUT
        elif LAYER_ATTRIBUTE in node.attributes:
            roles[number] = Role.CONSTANT
        elif number in learned or node.name.lower().endswith(_LEARNED_SUFFIXES):
            roles[number] = Role.WEIGHT
        else:
            # A variable of known shape that joins a computed tensor is a learned vector, not something to be fed.
            fixed = number in beside_computed and "__shape__" in node.attributes
            roles[number] = Role.WEIGHT if fixed else Role.INPUT
    return roles
