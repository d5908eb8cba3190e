"""Programs compared."""

import json
from collections.abc import Mapping
from typing import Any

from dlbricks_tui.runtime.protocol import ArrayType, Network, Program


def nameless(program: Program) -> Any:
    """The work of a program, without the names of its nodes."""
    return [network and _nameless(network) for network in (program.network, program.producer, program.prelude)]


def _nameless(network: Network) -> Any:
    document = json.loads(network.symbol)
    place = {node["name"]: number for number, node in enumerate(document["nodes"])}

    def arrays(found: Mapping[str, ArrayType]) -> Any:
        return [(place[name], array) for name, array in found.items()]

    nodes = [{**node, "name": ""} for node in document["nodes"]]
    return nodes, document["heads"], arrays(network.inputs), arrays(network.weights)
