from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.contexts import context_key
from dlbricks_tui.bricks.cutting import Cut, cut
from dlbricks_tui.bricks.excerpts import excerpt
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.models.graph import Feed, LayerGraph
from tests.bricks.graphs import DATA, Spec, after, built, graphs
from tests.bricks.programs import nameless


@given(graphs(), st.sampled_from(Cut), st.sampled_from(LayerOrder), st.integers(1, 4))
def test_a_sequence_in_an_excerpt_has_the_same_brick_context_and_program(
    graph: LayerGraph, how: Cut, order: LayerOrder, granularity: int
) -> None:
    layouts = output_layouts(graph)
    for sequence in cut(graph, granularity, how, order):
        alone = excerpt(graph, sequence.layers, layouts)
        assert alone.brick == brick_of(graph, sequence.layers)
        assert alone.context == context_key(graph, sequence.layers, layouts)
        assert nameless(alone.program) == nameless(sequence_program(graph, sequence.layers))


def test_an_excerpt_reaches_back_to_what_sets_the_layout() -> None:
    graph = built([Spec(op, after(index - 1) if index else DATA) for index, op in enumerate(("pool", "conv", "relu"))])
    alone = excerpt(graph, (2,), output_layouts(graph))
    assert [layer.op for layer in alone.graph.layers] == ["conv", "relu"]
    assert alone.layers == (1,)


def test_an_excerpt_contains_no_names() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0))], "secret{}".format)
    alone = excerpt(graph, (1,), output_layouts(graph))
    assert "secret" not in repr(alone)


def test_the_heads_of_an_excerpt_keep_inputs_needed_afterwards() -> None:
    split = Spec("split", DATA)
    kept = built([split, Spec("add", (Feed(0, 0), Feed(0, 1))), Spec("relu", (Feed(0, 0),))])
    assert excerpt(kept, (1,), output_layouts(kept)).kept == {Feed(None, 0)}
    spent = built([split, Spec("add", (Feed(0, 0), Feed(0, 1)))])
    assert not excerpt(spent, (1,), output_layouts(spent)).kept
