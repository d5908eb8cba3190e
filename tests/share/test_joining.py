"""Networks that are joined from excerpts."""

from pathlib import Path

import pytest
from onnx.helper import make_node

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import carrier_program
from dlbricks_tui.models.graph import Feed, LayerGraph
from dlbricks_tui.share.suites import packing
from dlbricks_tui.share.suites.packing import joined, joined_excerpts
from tests.models.onnx_models import floats, loaded, model, small


def of_relus(folder: Path, count: int, width: int) -> LayerGraph:
    """Return a chain of a fully connected layer and relus."""
    names = ["x", "y0", *(f"y{number + 1}" for number in range(count))]
    nodes = [make_node("Gemm", ["x", "w"], ["y0"], transB=1)]
    nodes += [make_node("Relu", [names[place]], [names[place + 1]]) for place in range(1, count + 1)]
    return loaded(folder, model(nodes, {"x": (1, 8)}, [names[-1]], [floats("w", (width, 8))]))


def keys(graph: LayerGraph) -> list[str]:
    return [brick_of(graph, (layer.index,)).key for layer in graph.layers]


@pytest.fixture
def graphs(tmp_path: Path) -> list[LayerGraph]:
    return [loaded(tmp_path, small()), of_relus(tmp_path, 2, 4), loaded(tmp_path, small())]


def test_a_joined_network_has_the_bricks_of_its_parts_in_their_order(graphs: list[LayerGraph]) -> None:
    assert keys(joined(graphs)) == [key for graph in graphs for key in keys(graph)]


def test_parts_share_no_tensor_and_no_weight(graphs: list[LayerGraph]) -> None:
    network = joined(graphs)
    first = len(graphs[0].layers)
    assert all(feed.layer is None or feed.layer >= first for layer in network.layers[first:] for feed in layer.feeds)
    arrays = [network.layers[index].array(0) for index in (0, first + len(graphs[1].layers))]
    assert len(set(arrays)) == 2
    assert len(network.inputs) == len({given.name for given in network.inputs}) == 3
    assert len(network.heads) == 3


def test_a_joined_network_is_a_program_with_all_weights(graphs: list[LayerGraph]) -> None:
    program = carrier_program(joined(graphs)).program
    weights = sum(len(layer.weights) for graph in graphs for layer in graph.layers)
    assert len(program.network.weights) == weights
    assert len(program.network.inputs) == 3


def test_layers_at_an_edge_do_not_stand_for_bricks_that_are_inside_of_another_excerpt(tmp_path: Path) -> None:
    # The relu is at an edge of the first chain, and inside of the second.
    short, long = of_relus(tmp_path, 1, 4), of_relus(tmp_path, 2, 4)
    (network,) = joined_excerpts([short, long], [])
    at_edges = {(index, network.graph.layers[index].op) for index in network.edges}
    assert at_edges == {(1, "relu"), (4, "relu")}


def test_a_brick_that_is_at_edges_only_is_timed_there(tmp_path: Path) -> None:
    (network,) = joined_excerpts([of_relus(tmp_path, 1, 4)], [])
    assert not network.edges


def test_networks_are_of_about_equal_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_WARM_BYTES", 2_000)
    excerpts = [of_relus(tmp_path, 1, 8) for _ in range(23)]
    sizes = [len(it.graph.layers) for it in joined_excerpts(excerpts, [])]
    assert len(sizes) > 2
    assert sum(sizes) == 46
    assert max(sizes) <= min(sizes) + 2


def test_excerpts_of_large_models_are_in_other_networks(tmp_path: Path) -> None:
    warm, cold = of_relus(tmp_path, 1, 4), of_relus(tmp_path, 1, 5)
    networks = joined_excerpts([warm], [cold])
    assert [keys(it.graph) for it in networks] == [keys(warm), keys(cold)]
    assert [it.graph.name for it in networks] == ["excerpts 1", "excerpts 2"]


def test_outputs_of_all_parts_stay_outputs(graphs: list[LayerGraph]) -> None:
    network = joined(graphs)
    last = [Feed(4, 0), Feed(7, 0), Feed(12, 0)]
    assert list(network.heads) == last
