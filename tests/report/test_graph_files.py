import re
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.explanation import layer_latencies
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.digraphs import layer_digraph
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.report.graph_files import drawable_digraph, write_dot, write_graphml
from dlbricks_tui.report.page import ReportError
from dlbricks_tui.store.selections import Way
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs
from tests.estimate.knowledge_of import measured

# A fork into a convolution and a relu, and their sum.
BRANCHED = built([Spec("conv", DATA), Spec("conv", after(0)), Spec("relu", after(0)), Spec("add", after(1, 2))])
CUTTINGS = st.builds(Cutting, st.integers(1, 3), st.sampled_from(Cut))


def estimated(decomposition: Decomposition) -> SystemEstimate:
    way = Way("a system", "a runtime", Level.WRITTEN, "")
    return SystemEstimate(way, estimate(decomposition, measured(decomposition)))


def read_graphml(path: Path) -> "nx.DiGraph":
    return nx.read_graphml(path, node_type=int, force_multigraph=False)


@given(graph=graphs(), cutting=CUTTINGS)
def test_graphml_that_networkx_reads_is_isomorphic_to_the_layer_graph(
    graph: LayerGraph, cutting: Cutting, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("export") / "model.graphml"
    write_graphml(path, drawable_digraph(decompose(graph, cutting), None))
    digraph = layer_digraph(graph)
    assert nx.is_isomorphic(
        read_graphml(path),
        digraph,
        node_match=lambda one, two: (one["op"], one["kind"]) == (two["layer"].op, two["layer"].kind.value),
        edge_match=lambda one, two: one["tensors"].count("float32") == len(two["tensors"]),
    )


def test_a_shape_that_depends_on_data_is_marked(tmp_path: Path) -> None:
    layers = (*BRANCHED.layers[:-1], replace(BRANCHED.layers[-1], is_recorded=True))
    write_graphml(tmp_path / "model.graphml", drawable_digraph(decompose(replace(BRANCHED, layers=layers)), None))
    marks = read_graphml(tmp_path / "model.graphml").nodes(data="recorded", default=False)
    assert [mark for _, mark in marks] == [False, False, False, True]


def test_nodes_have_the_facts_of_their_layers_and_edges_have_shapes(tmp_path: Path) -> None:
    decomposition = decompose(BRANCHED)
    write_graphml(tmp_path / "model.graphml", drawable_digraph(decomposition, None))
    found = read_graphml(tmp_path / "model.graphml")
    first = decomposition.occurrences[0]
    assert found.nodes[0] == {
        "name": "layer0",
        "title": "conv 8",
        "op": "conv",
        "kind": "convolution",
        "times": 1,
        "outputs": "1x8 float32",
        "sequence": 0,
        "brick": first.brick.key,
        "context": first.context,
    }
    assert found.edges[0, 1] == {"tensors": "1x8 float32"}
    assert found.graph["level"] == "written"


def test_known_latencies_and_the_critical_path_are_exported(tmp_path: Path) -> None:
    decomposition = decompose(BRANCHED)
    known = estimated(decomposition)
    write_graphml(tmp_path / "model.graphml", drawable_digraph(decomposition, known))
    found = read_graphml(tmp_path / "model.graphml")
    assert dict(found.nodes(data="latency_ms")) == layer_latencies(known.estimate)
    assert {index for index, critical in found.nodes(data="critical") if critical} == set(
        known.estimate.critical_layers
    )
    assert (found.graph["system"], found.graph["runtime"]) == ("a system", "a runtime")


def test_dot_has_a_line_for_each_layer_and_each_edge(tmp_path: Path) -> None:
    decomposition = decompose(BRANCHED)
    write_dot(tmp_path / "model.dot", drawable_digraph(decomposition, estimated(decomposition)))
    text = (tmp_path / "model.dot").read_text()
    assert text.startswith('digraph "generated" {\n') and text.endswith("}\n")
    assert re.findall(r"^  (\d+) \[label=", text, re.MULTILINE) == ["0", "1", "2", "3"]
    edges = re.findall(r"^  (\d+) -> (\d+) \[label=\"1x8 float32\"\];$", text, re.MULTILINE)
    assert edges == [("0", "1"), ("0", "2"), ("1", "3"), ("2", "3")]
    assert len(re.findall(r"label=\"layer\d\\n[\w ]+\\n[\d.]+ ms\"", text)) == 4
    assert text.count("penwidth") == len(estimated(decomposition).estimate.critical_layers)


@pytest.mark.parametrize("name", ['a "quoted" name', "back\\slash\\", "two\nlines", "\x1b[31m\x00", "<&>", "\ud800"])
def test_any_name_can_be_exported(name: str, tmp_path: Path) -> None:
    graph = chain("conv", "relu").named(name)
    digraph = drawable_digraph(decompose(graph), None)
    digraph.nodes[0]["name"] = digraph.graph["name"]
    write_graphml(tmp_path / "model.graphml", digraph)
    write_dot(tmp_path / "model.dot", digraph)
    assert read_graphml(tmp_path / "model.graphml").nodes[0]["name"] == digraph.graph["name"]
    # Of all quotation marks, those that begin and end texts come in pairs.
    for line in (tmp_path / "model.dot").read_text().splitlines():
        assert re.fullmatch(r'(?:[^"\\]|"(?:[^"\\]|\\.)*")*', line)


@pytest.mark.parametrize("place", ["", "missing/model.dot", "nul\0"])
def test_a_file_that_cannot_be_written_is_refused_in_one_line(place: str, tmp_path: Path) -> None:
    digraph = drawable_digraph(decompose(chain("conv")), None)
    for write in (write_dot, write_graphml):
        with pytest.raises(ReportError, match=r"^[^\n]* cannot be written: [^\n]*; name another file$"):
            write(tmp_path / place, digraph)
    assert list(tmp_path.iterdir()) == []
