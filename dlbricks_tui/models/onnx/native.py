"""ONNX nodes as layers keep them: without names, and with the small values that are part of them."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import NativeNode
from dlbricks_tui.models.onnx.model_file import captured, graphs_inside

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

# What an input of a kept node is: nothing, a value that is kept with it, or a tensor from elsewhere.
_LEFT_OUT, _TOLD, _READ = "", "told", "read"
_NODE, _VERSION = "node", "version"
# What stands behind the domain of an operator, where it is not ONNX's own.
_OF_A_DOMAIN = "."


def native_node(node: "NodeProto", told: Mapping[int, str], version: int) -> NativeNode:
    """The node to keep; `told` are the values of some of what it reads as text, by place."""
    from onnx import NodeProto

    outer = captured(node)
    kept = NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
    places = [*node.input, *outer]
    kept.input.extend(_TOLD if place in told else _READ if name else _LEFT_OUT for place, name in enumerate(places))
    kept.output.extend(_READ if name else _LEFT_OUT for name in node.output)
    for graph in graphs_inside(kept):
        _rename(graph, {name: f"outer{number}" for number, name in enumerate(outer)})
    attributes = [(_NODE, text_of(kept)), (_VERSION, str(version))]
    attributes += [(f"{_TOLD}{place}", value) for place, value in sorted(told.items())]
    return NativeNode(f"{node.domain}{_OF_A_DOMAIN}{node.op_type}" if node.domain else node.op_type, tuple(attributes))


def plain_native(op: str) -> NativeNode:
    """A node of one input and one output, of whatever version the others are."""
    from onnx import NodeProto

    return NativeNode(op, ((_NODE, text_of(NodeProto(op_type=op, input=[_READ], output=[_READ]))),))


def version_among(natives: Iterable[NativeNode]) -> int | None:
    """Of which version ONNX's own operators among these are, None where there are none; in one file all are of one."""
    for native in natives:
        if _OF_A_DOMAIN not in native.op:
            found = dict(native.attributes).get(_VERSION)
            if found is not None:
                return int(found)
    return None


class NodeInPlace:
    """A kept node, to be written into a graph."""

    def __init__(self, native: NativeNode) -> None:
        from onnx import NodeProto

        self._attributes = dict(native.attributes)
        self._kept = NodeProto.FromString(b64decode(self._attributes[_NODE]))

    @property
    def version(self) -> int | None:
        """Of which version of its domain it is, None where that makes no difference."""
        found = self._attributes.get(_VERSION)
        return None if found is None else int(found)

    @property
    def op(self) -> str:
        """Which operator it is."""
        return str(self._kept.op_type)

    @property
    def domain(self) -> str:
        """Whose operator it is."""
        return str(self._kept.domain)

    @property
    def results(self) -> int:
        """How many outputs it has."""
        return sum(1 for what in self._kept.output if what)

    def written(self, name: str, read: Sequence[str], written: Sequence[str]) -> "tuple[NodeProto, list[TensorProto]]":
        """The node with these names for what it reads and writes, and the values that have to stand beside it."""
        from onnx import NodeProto, TensorProto

        waiting = iter(read)
        values: list[TensorProto] = []
        names = []
        for place, what in enumerate(self._kept.input):
            if what == _TOLD:
                value = TensorProto.FromString(b64decode(self._attributes[f"{_TOLD}{place}"]))
                value.name = f"{name}_told{place}"
                values.append(value)
                names.append(value.name)
            else:
                names.append(next(waiting) if what == _READ else "")
        node = NodeProto()
        node.CopyFrom(self._kept)
        node.name = name
        outer = len(captured(node))
        count = len(names) - outer
        for graph in graphs_inside(node):
            # What two of its kind have inside must not be called alike.
            _rename(graph, {f"outer{number}": names[count + number] for number in range(outer)})
        del node.input[:], node.output[:]
        node.input.extend(names[:count])
        results = iter(written)
        node.output.extend(next(results) if what else "" for what in self._kept.output)
        return node, values


def _rename(graph: "GraphProto", names: Mapping[str, str]) -> None:
    """Gives what a graph reads from around it other names; within one model none of them is used twice."""
    for node in graph.node:
        read = [names.get(name, name) for name in node.input]
        del node.input[:]
        node.input.extend(read)
        for inner in graphs_inside(node):
            _rename(inner, names)
    for output in graph.output:
        output.name = names.get(output.name, output.name)


def text_of(message: "NodeProto | TensorProto") -> str:
    """A node or value as text, from which it can be made again."""
    return b64encode(message.SerializeToString(deterministic=True)).decode()
