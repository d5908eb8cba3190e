"""A model's graph as a file for other programs (GraphML, DOT), a copy of its ONNX file with times, and its layout."""

import gzip
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

from dlbricks_tui.analysis.whole_models import Basis, WrittenTimes
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.estimate.compositions import from_picoseconds
from dlbricks_tui.estimate.explanation import layer_latencies
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.files import read_bytes, write_named
from dlbricks_tui.models.graph import Layer, LayerGraph, TensorType, digraph_of, layer_digraph
from dlbricks_tui.models.onnx_file import parse_onnx, read_onnx
from dlbricks_tui.printable import printable
from dlbricks_tui.report.page import ReportError
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.wording.answers import layer_title, shape_text

if TYPE_CHECKING:
    from onnx import ModelProto, StringStringEntryProto

Facts = dict[str, str | int | float | bool]


def drawable_digraph(decomposition: Decomposition, found: SystemEstimate | None) -> nx.DiGraph:
    """Return the layer graph with plain attributes: facts of layers, their latencies if known, and shapes on edges."""
    digraph = layer_digraph(decomposition.graph)
    latencies = {} if found is None else layer_latencies(found.estimate)
    critical = frozenset(() if found is None else found.estimate.critical_layers)
    graph, how = decomposition.graph, decomposition.cutting
    digraph.graph.update(name=printable(graph.name), level=graph.level.value, granularity=how.granularity)
    digraph.graph.update(cut=how.cut.value, order=how.order.value)
    if found is not None:
        digraph.graph.update(system=printable(found.way.system), runtime=printable(found.way.runtime))
    for index, facts in digraph.nodes(data=True):
        facts.update(_of_layer(facts.pop("layer")))
        if index in latencies:
            facts.update(latency_ms=latencies[index], critical=index in critical)
    # Where sequences overlap, a layer gets the last one that contains it.
    for occurrence in decomposition.occurrences:
        for index in reversed(occurrence.sequence.layers):
            facts = digraph.nodes[index]
            facts.update(sequence=occurrence.sequence.index, brick=occurrence.brick.key, context=occurrence.context)
    for _, _, facts in digraph.edges(data=True):
        facts["tensors"] = ", ".join(map(_tensor, facts["tensors"].values()))
    return digraph


def written_digraph(written: LayerGraph, times: WrittenTimes, cutting: Cutting) -> nx.DiGraph:
    """Return the digraph of a file in an execution, with the time of each layer and where the time comes from."""
    digraph = drawable_digraph(decompose(written, cutting), None)
    for index, found in enumerate(times.layers):
        digraph.nodes[index].update(latency_ms=found.latency_ms, basis=found.basis.value)
    return digraph


def write_digraph(digraph: nx.DiGraph, graphml: Path | None, dot: Path | None) -> None:
    """Write a digraph to the files that are named."""
    if graphml:
        write_graphml(graphml, digraph)
    if dot:
        write_dot(dot, digraph)


def write_graphml(path: Path, digraph: nx.DiGraph) -> None:
    """Write a digraph as GraphML."""
    content = BytesIO()
    nx.write_graphml_xml(digraph, content)
    _write(path, content.getvalue())


def write_dot(path: Path, digraph: nx.DiGraph) -> None:
    """Write a digraph in the language of Graphviz; thick lines surround the layers of the critical path."""
    lines = [f"digraph {_quoted(digraph.graph['name'])} {{", '  node [shape=box, fontname="sans-serif"];']
    for index, facts in digraph.nodes(data=True):
        label = [facts["name"], facts["title"], *([f"{facts['latency_ms']:.4g} ms"] if "latency_ms" in facts else [])]
        attributes = [f"{name}={_quoted(value)}" for name, value in {"label": label, **facts}.items()]
        attributes += ["penwidth=3"] if facts.get("critical") is True else []
        lines.append(f"  {index} [{', '.join(attributes)}];")
    for source, reader, facts in digraph.edges(data=True):
        lines.append(f"  {source} -> {reader} [label={_quoted(facts['tensors'])}];")
    _write(path, "\n".join([*lines, "}", ""]).encode())


def _of_layer(layer: Layer) -> Facts:
    facts: Facts = {
        "name": printable(layer.name),
        "title": printable(layer_title(layer)),
        "op": printable(layer.op),
        "kind": layer.kind.value,
        "times": layer.times,
        "outputs": ", ".join(map(_tensor, layer.outputs)),
    }
    if layer.is_recorded:
        facts["recorded"] = True
    return facts if layer.unmeasurable is None else {**facts, "unmeasurable": printable(layer.unmeasurable)}


def _tensor(found: TensorType) -> str:
    return f"{shape_text(found)} {printable(found.dtype)}"


def _quoted(value: object) -> str:
    """Return a text between quotation marks; a list becomes lines."""
    lines = value if isinstance(value, list) else [value]
    return '"' + "\\n".join(str(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'


def _write(path: Path, content: bytes) -> None:
    try:
        write_named(path, lambda file: file.write(content))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ReportError(f"{path} cannot be written: {reason}; name another file") from None


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge as a polyline of (rank, lane) points, from left to right."""

    source: int
    reader: int
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """A rank (how far to the right) and a lane (0 is the spine) for each layer; `breaks` are the lines' first ranks."""

    ranks: tuple[int, ...]
    lanes: tuple[int, ...]
    wires: tuple[DrawnEdge, ...]
    breaks: tuple[int, ...]


def lay_out(predecessors: Sequence[Sequence[int]], spine: Collection[int] = (), line: int = 48) -> GraphLayout:
    """Lay out a topologically sorted graph, with lines of at most `line` ranks."""
    digraph = digraph_of(predecessors)
    readers = [list(digraph[layer]) for layer in digraph]
    ranks = [0] * len(predecessors)
    for rank, layers in enumerate(nx.topological_generations(digraph)):
        for layer in layers:
            ranks[layer] = rank
    for layer, sources in enumerate(predecessors):
        # A stored array is placed next to its reader.
        if not sources and readers[layer]:
            ranks[layer] = max(0, min(ranks[reader] for reader in readers[layer]) - 1)
    chains = _chains(predecessors, set(spine or nx.dag_longest_path(digraph)))
    following = {source: reader for chain in chains for source, reader in pairwise(chain)}
    lanes, passing = _lanes(chains, following, readers, ranks)
    wires = []
    for reader, found in enumerate(predecessors):
        for source in found:
            begin, end = ranks[source], ranks[reader]
            beside = lanes[source] if following.get(source) == reader else passing[source]
            points = [(begin, lanes[source]), (begin + 1, beside), (end - 1, beside), (end, lanes[reader])]
            points = points if end > begin + 1 else [points[0], points[-1]]
            wires.append(DrawnEdge(source, reader, tuple(points)))
    # A line ends where it cuts few edges, in its last quarter.
    count_of_ranks = max(ranks, default=0) + 1
    crossing = [0] * (count_of_ranks + 1)
    for wire in wires:
        for rank in range(wire.points[0][0] + 1, wire.points[-1][0] + 1):
            crossing[rank] += 1
    breaks = [0]
    while count_of_ranks - breaks[-1] > line:
        last = breaks[-1] + line
        breaks.append(min(range(last, last - line // 4, -1), key=crossing.__getitem__))
    return GraphLayout(tuple(ranks), tuple(lanes), tuple(wires), tuple(breaks))


def _lanes(
    chains: Sequence[Sequence[int]],
    following: Mapping[int, int],
    readers: Sequence[Sequence[int]],
    ranks: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Return the lane of each layer, and the lane of its edges that pass other layers."""
    # The first and last rank of each that needs a lane: chains by number, passing edges by -1 - layer.
    wanted: list[tuple[int, int, int]] = []
    for number, chain in enumerate(chains):
        last = max([ranks[chain[-1]], *(ranks[reader] - 1 for reader in readers[chain[-1]])])
        wanted.append((ranks[chain[0]], last, number))
    for layer, found in enumerate(readers):
        far = [ranks[it] - 1 for it in found if it != following.get(layer) and ranks[it] > ranks[layer] + 1]
        # When a chain has ended, its lane is free for the edges of its last layer.
        if far and layer in following:
            wanted.append((ranks[layer] + 1, max(far), -1 - layer))
    given = dict(_fit(wanted))
    lanes = [0] * len(ranks)
    for number, chain in enumerate(chains):
        for layer in chain:
            lanes[layer] = given[number]
    return lanes, [given.get(-1 - layer, lane) for layer, lane in enumerate(lanes)]


def _chains(predecessors: Sequence[Sequence[int]], spine: set[int]) -> list[list[int]]:
    """Return chains of layers that each read the one before; every layer is in one, and the spine is first."""
    chains: list[list[int]] = [[]]
    open_end: dict[int, list[int]] = {}
    for layer, sources in enumerate(predecessors):
        if layer in spine:
            chains[0].append(layer)
            continue
        before = next((it for it in sources if it in open_end), None)
        chain = [] if before is None else open_end.pop(before)
        if not chain:
            chains.append(chain)
        chain.append(layer)
        open_end[layer] = chain
    return chains if chains[0] else chains[1:]


def _fit(wanted: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the free lane nearest to the spine for each, the shortest first, so that nested ones are inside."""
    taken: dict[int, list[tuple[int, int]]] = {}
    for first, last, number in sorted(wanted, key=lambda it: (it[2] != 0, it[1] - it[0], it[0], it[2])):
        for lane in [0] if number == 0 else (side * lane for lane in count(1) for side in (1, -1)):
            held = taken.setdefault(lane, [])
            if all(last < begin or end < first for begin, end in held):
                held.append((first, last))
                yield number, lane
                break


_GZIP_MAGIC = b"\x1f\x8b"
_PREFIX = "dlbricks."


def write_annotated_copy(path: Path, written: LayerGraph, times: WrittenTimes, facts: Mapping[str, str]) -> int:
    """Write a copy of an ONNX file with the time of each node, and facts about the model; return the nodes without one.

    Arrays outside of the file are not copied: the copy refers to them by the same relative paths. Nodes that the layers
    of the model do not stand for have no time, such as those that compute constants.
    """
    source = written.file
    if written.format is not Format.ONNX or source is None:
        raise ReportError(
            f"{written.name} was analysed from a file of {written.format.value}, and only ONNX files are copied with "
            "times: name a --runtime that runs ONNX files"
        )
    if path.exists() and path.samefile(source):
        raise ReportError(f"{path} is the model's own file: name another file for the copy")
    model = _read(source)
    by_output = {name: node for node in model.graph.node for name in node.output if name}
    total_ps = times.total_ps or 1
    annotated: set[int] = set()
    for outputs, layers in _outputs_of(source, written):
        node = next((by_output[name] for name in outputs if name in by_output), None)
        if node is None:
            continue
        annotated.add(id(node))
        held = [times.layers[index] for index in layers]
        taken_ps = sum(it.latency_ps for it in held)
        basis = next((it.basis for it in held if it.basis is not Basis.WHOLE), held[0].basis)
        share = f"{taken_ps / total_ps:.4f}"
        told = {"latency_ms": f"{from_picoseconds(taken_ps):.6g}", "share": share, "basis": basis.value}
        _annotate(node.metadata_props, told)
    _annotate(model.metadata_props, {"latency_ms": f"{from_picoseconds(times.total_ps):.6g}", **facts})
    _write(path, model.SerializeToString())
    return len(model.graph.node) - len(annotated)


def _read(source: Path) -> "ModelProto":
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    try:
        content = read_bytes(source)
        model = ModelProto()
        model.ParseFromString(gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content)
    except (OSError, DecodeError, EOFError) as error:
        raise ReportError(f"{source} cannot be copied: {error}") from None
    return model


def _outputs_of(source: Path, written: LayerGraph) -> Sequence[tuple[Sequence[str], Sequence[int]]]:
    """Return the outputs of each node that layers stand for, with these layers."""
    nodes = parse_onnx(read_onnx(source, source.name), source.name).nodes
    found: dict[int, list[int]] = {}
    for layer in written.layers:
        # The time of a layer of several nodes stands at the last one.
        for number in layer.nodes[-1:]:
            found.setdefault(number, []).append(layer.index)
    return [(nodes[number].output, layers) for number, layers in found.items() if number < len(nodes)]


def _annotate(properties: "MutableSequence[StringStringEntryProto]", facts: Mapping[str, str]) -> None:
    from onnx import StringStringEntryProto

    entries = {it.key: it.value for it in properties} | {f"{_PREFIX}{name}": value for name, value in facts.items()}
    del properties[:]
    properties.extend(StringStringEntryProto(key=name, value=value) for name, value in entries.items())
