"""Symbol files written node by node, invalid ones too."""

from collections.abc import Sequence

from tests.models.symbols import Node, content, node


def symbol_of(nodes: Sequence[Node], *heads: tuple[int, int]) -> str:
    """Return a symbol file of these nodes."""
    return content(nodes, *heads).decode()


class Network:
    """A symbol file whose nodes name their inputs; an unknown name becomes a variable."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._index: dict[str, int] = {}

    def add(self, op: str, name: str, *inputs: str, **attributes: str) -> str:
        """Add a node under a name."""
        edges = [(self._find(source), 0) for source in inputs]
        self._index[name] = len(self.nodes)
        self.nodes.append(node(op, name, *edges, **attributes))
        return name

    def convolution(self, name: str, data: str) -> str:
        """Return a convolution that keeps the shape of an image with three channels."""
        weights = (f"{name}_weight", f"{name}_bias")
        return self.add("Convolution", name, data, *weights, kernel="(3, 3)", pad="(1, 1)", num_filter="3")

    def batch_norm(self, name: str, data: str) -> str:
        """Return a batch norm."""
        return self.add("BatchNorm", name, data, *(f"{name}_{role}" for role in ("gamma", "beta", "mean", "var")))

    def relu(self, name: str, data: str) -> str:
        """Return a relu that MXNet fuses with convolutions."""
        return self.add("Activation", name, data, act_type="relu")

    def linear(self, name: str, data: str) -> str:
        """Return a fully connected layer of ten outputs."""
        return self.add("FullyConnected", name, data, f"{name}_weight", f"{name}_bias", num_hidden="10")

    def symbol(self, *heads: str) -> str:
        """Return the file."""
        return symbol_of(self.nodes, *((self._index[head], 0) for head in heads))

    def _find(self, name: str) -> int:
        if name not in self._index:
            self.add("null", name)
        return self._index[name]
