"""A model's graph as a file for other programs: GraphML or DOT.

networkx writes GraphML. This module writes DOT: networkx would need pydot, only to quote names.
"""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.analysis.written_times import WrittenTimes
from dlbricks_tui.atomic_write import write_named
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.estimate.explanation import layer_latencies
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.digraphs import layer_digraph
from dlbricks_tui.models.graph import Layer, TensorType
from dlbricks_tui.models.titles import layer_title, shape_text
from dlbricks_tui.printable import printable
from dlbricks_tui.report.writing import ReportError

if TYPE_CHECKING:
    import networkx

Facts = dict[str, str | int | float | bool]


def drawable_digraph(decomposition: Decomposition, found: SystemEstimate | None) -> "networkx.DiGraph":
    """Return the layer graph with plain attributes: facts of layers, their latencies if known, and shapes on edges."""
    digraph = layer_digraph(decomposition.graph)
    latencies = {} if found is None else layer_latencies(found.estimate)
    critical = frozenset(() if found is None else found.estimate.critical_layers)
    digraph.graph.update(_of_model(decomposition, found))
    for index, facts in digraph.nodes(data=True):
        facts.update(_of_layer(facts.pop("layer")))
        if index in latencies:
            facts.update(latency_ms=latencies[index], critical=index in critical)
    # A layer of overlapping sequences gets the one that begins there.
    for occurrence in decomposition.occurrences:
        for index in reversed(occurrence.sequence.layers):
            facts = digraph.nodes[index]
            facts.update(sequence=occurrence.sequence.index, brick=occurrence.brick.key, context=occurrence.context)
    for _, _, facts in digraph.edges(data=True):
        facts["tensors"] = ", ".join(map(_tensor, facts["tensors"].values()))
    return digraph


def add_written_times(digraph: "networkx.DiGraph", times: WrittenTimes) -> None:
    """Add the time of each written layer in an execution to a digraph of the file, and where the time comes from."""
    for index, found in enumerate(times.layers):
        digraph.nodes[index].update(latency_ms=found.latency_ms, basis=found.basis.value)


def write_graphml(path: Path, digraph: "networkx.DiGraph") -> None:
    """Write a digraph as GraphML."""
    import networkx as nx

    content = BytesIO()
    nx.write_graphml_xml(digraph, content)
    _write(path, content.getvalue())


def write_dot(path: Path, digraph: "networkx.DiGraph") -> None:
    """Write a digraph in the language of Graphviz; thick lines surround the layers of the critical path."""
    lines = [f"digraph {_quoted(digraph.graph['name'])} {{", '  node [shape=box, fontname="sans-serif"];']
    for index, facts in digraph.nodes(data=True):
        label = [facts["name"], facts["title"], *([f"{facts['latency_ms']:.4g} ms"] if "latency_ms" in facts else [])]
        lines.append(f"  {index} [{_attributes({'label': label, **facts})}{', penwidth=3' * _is_critical(facts)}];")
    for source, reader, facts in digraph.edges(data=True):
        lines.append(f"  {source} -> {reader} [label={_quoted(facts['tensors'])}];")
    _write(path, "\n".join([*lines, "}", ""]).encode())


def _of_model(decomposition: Decomposition, found: SystemEstimate | None) -> Facts:
    graph, how = decomposition.graph, decomposition.cutting
    facts: Facts = {
        "name": printable(graph.name),
        "level": graph.level.value,
        "granularity": how.granularity,
        "cut": how.cut.value,
        "order": how.order.value,
    }
    if found is not None:
        facts |= {"system": printable(found.way.system), "runtime": printable(found.way.runtime)}
    return facts


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


def _is_critical(facts: Mapping[str, object]) -> bool:
    return facts.get("critical") is True


def _attributes(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in facts.items())


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
