"""The branch of an `If` that runs in its place."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.models.digraphs import needed_for, topological_order
from dlbricks_tui.models.onnx.model_file import NAMES_OF_ONNX, graphs_inside, reads
from dlbricks_tui.models.onnx.stored_arrays import DamagedValueError, array_of

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto


@dataclass(frozen=True, slots=True)
class Branch:
    """The arrays and the nodes of a branch, in topological order, which write the outputs of the `If`."""

    weights: "tuple[TensorProto, ...]"
    nodes: "tuple[NodeProto, ...]"


class TakenNames:
    """The names of tensors and nodes so far."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        # The next number for a path that occurs several times.
        self._numbers: Counter[str] = Counter()

    def add(self, names: Iterable[str]) -> None:
        """Take these names."""
        self._names.update(names)

    def fresh(self, name: str, path: str) -> str:
        """Take a name, and return it: with the path before it if it is taken already."""
        fresh, inside = name, f"{path}/{name}"
        while fresh in self._names:
            number = self._numbers[inside]
            self._numbers[inside] += 1
            fresh = f"{inside}_{number}" if number else inside
        self._names.add(fresh)
        return fresh


def is_if(node: "NodeProto") -> bool:
    """Return true for an `If` of ONNX itself."""
    return bool(node.op_type == "If") and not node.domain and len(node.input) == 1


def holds(condition: "TensorProto") -> bool | None:
    """Return the condition of an `If` as a flag; None if it is not a single number."""
    try:
        array = array_of(condition)
    except DamagedValueError:
        return None
    return bool(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "biu" else None


def branch_of(node: "NodeProto", condition: bool, taken: TakenNames, domains: Container[str]) -> Branch:
    """Return the branch of an `If` that runs under a condition, and take its names.

    A name inside the branch that is taken already becomes a path, with the name of the `If` before it. `domains` are
    those whose version the file declares.
    """
    from onnx import NodeProto, TensorProto

    wanted_branch = "then_branch" if condition else "else_branch"
    graph = next((it.g for it in node.attribute if it.name == wanted_branch and it.HasField("g")), None)
    if graph is None:
        raise DamagedValueError(f"{_label(node)} has no {wanted_branch}")
    outputs = list(node.output)
    if len(graph.output) != len(outputs):
        raise DamagedValueError(f"a branch of {_label(node)} has another number of outputs than the node")
    for what, found in (("inputs", graph.input), ("sparse weights", graph.sparse_initializer)):
        if found:
            raise DamagedValueError(f"a branch of {_label(node)} has {what}, which are not supported")
    taken.add(filter(None, outputs))
    written = [name for it in graph.node for name in it.output if name]
    if len(set(written)) < len(written):
        raise DamagedValueError(f"a branch of {_label(node)} writes a tensor twice")
    path = node.name or next(filter(None, outputs), "if")
    # The names that tensors of the branch get outside of it. Each output of the `If` is one of them, or a copy.
    names: dict[str, str] = {}
    copies: list[tuple[str, str]] = []
    for made, wanted in zip(graph.output, outputs, strict=True):
        if wanted and made.name in written and made.name not in names:
            names[made.name] = wanted
        elif wanted:
            copies.append((made.name, wanted))
    weights = []
    for weight in graph.initializer:
        weights.append(TensorProto())
        weights[-1].CopyFrom(weight)
        weights[-1].name = names[weight.name] = names.get(weight.name) or taken.fresh(weight.name, path)
    for name in sorted(set(written).difference(names)):
        names[name] = taken.fresh(name, path)
    nodes = []
    for inner in graph.node:
        moved = NodeProto()
        moved.CopyFrom(inner)
        if moved.domain in NAMES_OF_ONNX:
            moved.domain = ""
        if moved.domain not in domains:
            raise DamagedValueError(
                f"{_label(inner)} is of the domain {moved.domain[:80]!r}, whose version the file does not declare"
            )
        moved.name = taken.fresh(inner.name, path) if inner.name else ""
        _rename_all(moved.input, names)
        _rename_all(moved.output, names)
        for nested in graphs_inside(moved):
            rename_reads(nested, names)
        nodes.append(moved)
    for number, (copied, wanted) in enumerate(copies):
        name, read = taken.fresh(f"copy{number}", path), names.get(copied, copied)
        nodes.append(NodeProto(op_type="Identity", name=name, input=[read], output=[wanted]))
    # The nodes that some output needs, in topological order.
    writers = {name: number for number, it in enumerate(nodes) for name in it.output if name}
    sources = [{writers[name] for name in reads(it) if name in writers} for it in nodes]
    order = topological_order(sources)
    if len(order) < len(nodes):
        raise DamagedValueError(f"a branch of {_label(node)} has a cycle")
    needed = needed_for((writers[name] for name in outputs if name in writers), sources)
    return Branch(tuple(weights), tuple([nodes[number] for number in order if number in needed]))


def rename_reads(graph: "GraphProto", names: Mapping[str, str]) -> None:
    """Rename the outer tensors that a subgraph reads. A name of its own hides the outer one."""
    own = {it.name for it in graph.input} | {it.name for it in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    outer = {old: new for old, new in names.items() if old not in own}
    if not outer:
        return
    for node in graph.node:
        _rename_all(node.input, outer)
        for inner in graphs_inside(node):
            rename_reads(inner, outer)
    for output in graph.output:
        output.name = outer.get(output.name, output.name)


def _rename_all(found: "list[str]", names: Mapping[str, str]) -> None:
    for place, name in enumerate(found):
        if name in names:
            found[place] = names[name]


def _label(node: "NodeProto") -> str:
    return repr((node.name or node.op_type)[:80])
