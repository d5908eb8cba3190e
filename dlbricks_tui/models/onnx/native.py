"""ONNX nodes as layers hold them: without names, and with the small values that they read."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import NativeNode
from dlbricks_tui.models.onnx.branches import rename_reads
from dlbricks_tui.models.onnx.model_file import graphs_inside, outer_tensors

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

# The inputs of a stored node: omitted, a value stored with it, or a tensor from elsewhere.
_LEFT_OUT, _STORED, _READ = "", "stored", "read"
_NODE, _VERSION = "node", "version"
# Separates the domain of an operator, unless it is ONNX's own.
_DOMAIN_END = "."


def native_node(node: "NodeProto", stored: Mapping[int, str], version: int) -> NativeNode:
    """Return the node to store; `stored` are the values of some inputs as text, by place."""
    from onnx import NodeProto

    outer = outer_tensors(node)
    kept = NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
    places = [*node.input, *outer]
    kept.input.extend(_STORED if place in stored else _READ if name else _LEFT_OUT for place, name in enumerate(places))
    kept.output.extend(_READ if name else _LEFT_OUT for name in node.output)
    for graph in graphs_inside(kept):
        rename_reads(graph, {name: f"outer{number}" for number, name in enumerate(outer)})
    attributes = [(_NODE, text_of(kept)), (_VERSION, str(version))]
    attributes += [(f"{_STORED}{place}", value) for place, value in sorted(stored.items())]
    return NativeNode(f"{node.domain}{_DOMAIN_END}{node.op_type}" if node.domain else node.op_type, tuple(attributes))


def plain_native(op: str, domain: str = "") -> NativeNode:
    """Return a node of one input and one output that suits any operator version."""
    from onnx import NodeProto

    node = NodeProto(op_type=op, domain=domain, input=[_READ], output=[_READ])
    return NativeNode(f"{domain}{_DOMAIN_END}{op}" if domain else op, ((_NODE, text_of(node)),))


def version_among(natives: Iterable[NativeNode]) -> int | None:
    """Return the version of ONNX's own operators among these, None without any. One file has one version."""
    for native in natives:
        if _DOMAIN_END not in native.op:
            found = dict(native.attributes).get(_VERSION)
            if found is not None:
                return int(found)
    return None


class NodeInPlace:
    """A stored node, to be written into a graph."""

    def __init__(self, native: NativeNode) -> None:
        from onnx import NodeProto

        self._attributes = dict(native.attributes)
        self._kept = NodeProto.FromString(b64decode(self._attributes[_NODE]))

    @property
    def version(self) -> int | None:
        """The version of its operator set, None if it makes no difference."""
        found = self._attributes.get(_VERSION)
        return None if found is None else int(found)

    @property
    def op(self) -> str:
        """The name of the operator."""
        return str(self._kept.op_type)

    @property
    def domain(self) -> str:
        """The domain of the operator."""
        return str(self._kept.domain)

    @property
    def results(self) -> int:
        """The number of outputs."""
        return sum(1 for what in self._kept.output if what)

    def written(self, name: str, read: Sequence[str], written: Sequence[str]) -> "tuple[NodeProto, list[TensorProto]]":
        """Return the node with these names for its inputs and outputs, and the values that it needs."""
        from onnx import NodeProto, TensorProto

        waiting = iter(read)
        values: list[TensorProto] = []
        names = []
        for place, what in enumerate(self._kept.input):
            if what == _STORED:
                value = TensorProto.FromString(b64decode(self._attributes[f"{_STORED}{place}"]))
                value.name = f"{name}_stored{place}"
                values.append(value)
                names.append(value.name)
            else:
                names.append(next(waiting) if what == _READ else "")
        node = NodeProto()
        node.CopyFrom(self._kept)
        node.name = name
        outer = len(outer_tensors(node))
        count = len(names) - outer
        for graph in graphs_inside(node):
            # Copies of a node need different names inside.
            rename_reads(graph, {f"outer{number}": names[count + number] for number in range(outer)})
        del node.input[:], node.output[:]
        node.input.extend(names[:count])
        results = iter(written)
        node.output.extend(next(results) if what else "" for what in self._kept.output)
        return node, values


def text_of(message: "NodeProto | TensorProto") -> str:
    """Return a node or value as text, from which it can be read again."""
    return b64encode(message.SerializeToString(deterministic=True)).decode()
