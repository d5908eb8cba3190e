"""What a symbol file is made of, whoever writes it."""

from collections.abc import Sequence
from typing import Any

VARIABLE = "null"
# The oldest version whose format is today's; newer runtimes read it without conversion.
FORMAT_VERSION = 10500


class FreshNames:
    """Names that are not in use yet: MXNet binds arrays by name, so that two nodes of one name would share them."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def take(self, name: str) -> str:
        """The name, or one like it where something is called so already."""
        candidate, count = name, 1
        while candidate in self._used:
            count += 1
            candidate = f"{name}_{count}"
        self._used.add(candidate)
        return candidate


def symbol_document(nodes: Sequence[dict[str, Any]], heads: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """A file of these nodes, of which it puts out these (node, output)."""
    return {
        "nodes": nodes,
        "arg_nodes": [number for number, node in enumerate(nodes) if node["op"] == VARIABLE],
        "node_row_ptr": list(range(len(nodes) + 1)),
        "heads": [[*head, 0] for head in heads],
        "attrs": {"mxnet_version": ["int", FORMAT_VERSION]},
    }
