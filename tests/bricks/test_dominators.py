from hypothesis import given

from dlbricks_tui.bricks.dominators import DominatorTree
from dlbricks_tui.models.graph import LayerGraph
from tests.bricks.graphs import graphs


def dominators_of(graph: LayerGraph, vertex: int) -> list[int]:
    """The layers without which no path from the model's inputs comes to the vertex, by trying each."""
    found = []
    for removed in range(vertex):
        reached: list[bool] = []
        for layer, sources in enumerate(graph.predecessors[: vertex + 1]):
            reached.append(layer != removed and (not sources or any(reached[source] for source in sources)))
        if not reached[vertex]:
            found.append(removed)
    return found


@given(graphs())
def test_the_tree_hangs_each_layer_below_the_last_one_on_every_path_to_it(graph: LayerGraph) -> None:
    tree = DominatorTree(len(graph.layers))
    for vertex, sources in enumerate(graph.predecessors):
        dominators = dominators_of(graph, vertex)
        assert tree.add(vertex, sources) == (dominators[-1] if dominators else tree.root)
        assert tree.depth[vertex] == len(dominators) + 1
