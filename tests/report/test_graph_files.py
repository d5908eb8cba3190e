"""Graphs as files for other programs, as drawings, and as copies with times."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import networkx as nx
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.whole_models import Basis, WrittenTime, WrittenTimes
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.explanation import layer_latencies
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.graph import LayerGraph, Level, layer_digraph
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.report.graph_files import (
    GraphLayout,
    drawable_digraph,
    lay_out,
    write_annotated_copy,
    write_dot,
    write_graphml,
)
from dlbricks_tui.report.page import ReportError
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.store.selections import Way
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs
from tests.estimate.knowledge_of import measured
from tests.estimate.table1 import table1
from tests.models.table_framework import TableFramework

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


def test_nodes_have_the_facts_of_their_layers_and_edges_have_shapes(tmp_path: Path) -> None:
    layers = (*BRANCHED.layers[:-1], replace(BRANCHED.layers[-1], is_recorded=True))
    decomposition = decompose(replace(BRANCHED, layers=layers))
    known = estimated(decomposition)
    write_graphml(tmp_path / "model.graphml", drawable_digraph(decomposition, known))
    found = read_graphml(tmp_path / "model.graphml")
    first = decomposition.occurrences[0]
    of_layer = {
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
    assert of_layer.items() <= found.nodes[0].items()
    assert found.edges[0, 1] == {"tensors": "1x8 float32"}
    assert found.graph["level"] == "written"
    # Shapes that depend on data, known latencies and the critical path.
    assert [mark for _, mark in found.nodes(data="recorded", default=False)] == [False, False, False, True]
    assert dict(found.nodes(data="latency_ms")) == layer_latencies(known.estimate)
    critical = {index for index, is_critical in found.nodes(data="critical") if is_critical}
    assert critical == set(known.estimate.critical_layers)
    assert (found.graph["system"], found.graph["runtime"]) == ("a system", "a runtime")
    write_graphml(tmp_path / "unknown.graphml", drawable_digraph(decompose(BRANCHED), None))
    assert read_graphml(tmp_path / "unknown.graphml").nodes[0] == of_layer


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


# A module of two branches and a shortcut around it.
MODULE = ((), (0,), (1,), (2,), (1,), (3, 4, 0))


@st.composite
def any_sources(draw: st.DrawFn) -> tuple[tuple[int, ...], ...]:
    """Each layer reads some of those before it."""
    count = draw(st.integers(0, 24))
    return tuple(
        tuple(sorted(draw(st.sets(st.integers(0, layer - 1), max_size=3)))) if layer else () for layer in range(count)
    )


def check(predecessors: tuple[tuple[int, ...], ...], layout: GraphLayout) -> None:
    places = list(zip(layout.ranks, layout.lanes, strict=True))
    assert len(set(places)) == len(predecessors), "two layers stand in one place"
    assert [(wire.source, wire.reader) for wire in layout.wires] == [
        (source, reader) for reader, sources in enumerate(predecessors) for source in sources
    ]
    for wire in layout.wires:
        assert wire.points[0] == places[wire.source]
        assert wire.points[-1] == places[wire.reader]
        assert [rank for rank, _ in wire.points] == sorted(rank for rank, _ in wire.points)
        passed = {(rank, wire.points[1][1]) for rank in range(wire.points[0][0] + 1, wire.points[-1][0])}
        assert not passed & set(places), "an edge runs through a layer"


@given(any_sources())
def test_layers_have_distinct_places_and_no_edge_crosses_a_layer(predecessors: tuple[tuple[int, ...], ...]) -> None:
    check(predecessors, lay_out(predecessors))


def test_the_longest_path_is_straight_unless_another_spine_is_chosen() -> None:
    layout = lay_out(MODULE)
    assert [layout.lanes[layer] for layer in (0, 1, 2, 3, 5)] == [0] * 5
    assert layout.lanes[4] != 0
    assert layout.ranks == (0, 1, 2, 3, 2, 4)
    layout = lay_out(MODULE, spine=(0, 1, 4, 5))
    assert [layout.lanes[layer] for layer in (0, 1, 4, 5)] == [0] * 4
    assert layout.lanes[2] == layout.lanes[3] != 0


@pytest.mark.parametrize("number", ["4", "9", "14", "42", "47"])
def test_models_of_table_1_are_laid_out_in_lines_that_end_where_little_is_cut(number: str) -> None:
    predecessors = table1()[number].predecessors
    layout = lay_out(predecessors, line=46)
    check(predecessors, layout)
    begins = (*layout.breaks, max(layout.ranks) + 1)
    assert all(0 < later - earlier <= 46 for earlier, later in pairwise(begins))


@pytest.fixture
def crnn(tmp_path: Path) -> LayerGraph:
    """A sample in its ONNX file."""
    (source,) = Library(SAMPLE_MODELS, tmp_path, Format.ONNX).find("crnn")
    return Loader(tmp_path, TableFramework()).load(source, Level.WRITTEN)


def one_ms_each(graph: LayerGraph) -> WrittenTimes:
    return WrittenTimes(tuple(WrittenTime(1_000_000_000, Basis.ROOFLINE) for _ in graph.layers), 0)


def test_nodes_and_model_have_their_times(crnn: LayerGraph, tmp_path: Path) -> None:
    written = tmp_path / "times.onnx"
    left = write_annotated_copy(written, crnn, one_ms_each(crnn), {"system": "here"})
    found = onnx.load(str(written), load_external_data=False)
    by_node = [{it.key: it.value for it in node.metadata_props} for node in found.graph.node]
    times = [float(facts["dlbricks.latency_ms"]) for facts in by_node if facts]
    assert sum(times) == pytest.approx(len(crnn.layers))
    assert left == sum(not facts for facts in by_node)
    assert {facts["dlbricks.basis"] for facts in by_node if facts} == {"roofline"}
    assert sum(float(facts["dlbricks.share"]) for facts in by_node if facts) == pytest.approx(1.0, abs=0.01)
    of_model = {it.key: it.value for it in found.metadata_props}
    assert float(of_model["dlbricks.latency_ms"]) == pytest.approx(len(crnn.layers))
    assert of_model["dlbricks.system"] == "here"


def test_the_copy_has_the_nodes_and_weights_of_the_file_and_its_times_are_replaced(
    crnn: LayerGraph, tmp_path: Path
) -> None:
    assert crnn.file is not None
    first, second = tmp_path / "first.onnx", tmp_path / "second.onnx"
    write_annotated_copy(first, crnn, one_ms_each(crnn), {"system": "here"})
    found = onnx.load(str(first), load_external_data=False)
    for node in found.graph.node:
        del node.metadata_props[:]
    assert found.graph == onnx.load(str(crnn.file), load_external_data=False).graph
    write_annotated_copy(second, crnn.with_key("first", first), one_ms_each(crnn), {"system": "there"})
    facts = [(it.key, it.value) for it in onnx.load(str(second), load_external_data=False).metadata_props]
    assert len(facts) == len(dict(facts)) and ("dlbricks.system", "there") in facts


def test_the_file_of_the_model_is_not_replaced_and_one_that_cannot_be_written_is_named(
    crnn: LayerGraph, tmp_path: Path
) -> None:
    assert crnn.file is not None
    before = crnn.file.read_bytes()
    with pytest.raises(ReportError, match="own file: name another file"):
        write_annotated_copy(crnn.file, crnn, one_ms_each(crnn), {})
    assert crnn.file.read_bytes() == before
    with pytest.raises(ReportError, match="name another file"):
        write_annotated_copy(tmp_path / "none" / "times.onnx", crnn, one_ms_each(crnn), {})
