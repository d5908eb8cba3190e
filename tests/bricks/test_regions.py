from collections import Counter
from collections.abc import Hashable, Iterator

import networkx as nx
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.regions import (
    Chain,
    Irregular,
    Leaf,
    Parallel,
    Region,
    RegionTree,
    Repeat,
    Repetition,
    layers_in,
    regions_of,
    repeated_runs,
    walk,
)
from dlbricks_tui.models.graph import LayerGraph, layer_digraph
from tests.bricks.graphs import (
    DATA,
    MANY_LAYERS,
    Branch,
    Spec,
    after,
    built,
    chain,
    graphs,
    laid_out,
    random_graphs,
    rewritten,
    series_parallel_branches,
    side_by_side,
    sound_graphs,
    topological_orders,
    wired,
)


def tree_of(graph: LayerGraph) -> RegionTree:
    return regions_of(graph.predecessors, [(layer.op, layer.outputs, len(layer.feeds)) for layer in graph.layers])


def drawn(graph: LayerGraph) -> str:
    """The regions in one line: `{a b|}` forks to a branch and an empty one, `<...>` is irregular, `[a b]x3` repeats."""

    def text(region: Region) -> str:
        if isinstance(region, Leaf):
            return graph.layers[region.layer].op
        if isinstance(region, Repeat):
            return f"[{text(region.parts[0])}]x{len(region.parts)}"
        inside = [text(child) for child in region.parts]
        if isinstance(region, Parallel):
            return "{" + "|".join(inside) + "}"
        return f"<{' '.join(inside)}>" if isinstance(region, Irregular) else " ".join(inside)

    return text(tree_of(graph).root)


def parts_in_series(chain: Chain) -> Iterator[Region]:
    """The parts of a chain, those of its repeats one by one."""
    for part in chain.parts:
        modules = part.parts if isinstance(part, Repeat) else (part,)
        for module in modules:
            yield from parts_in_series(module) if isinstance(module, Chain) else (module,)


@given(graphs())
def test_every_layer_is_one_leaf_after_its_inputs_and_counts_in_sizes_and_occurrences(graph: LayerGraph) -> None:
    tree = tree_of(graph)
    order = list(layers_in(tree.root))
    assert sorted(order) == list(range(len(graph.layers)))
    place = {layer: position for position, layer in enumerate(order)}
    assert all(place[writer] < place[reader] for writer, reader in graph.edges)
    regions = list(walk(tree.root))
    assert all(region.size == sum(1 for _ in layers_in(region)) for region in regions)
    assert tree.occurrences == Counter(region.key for region in regions)


@given(graphs())
def test_parts_in_series_read_only_the_part_before_or_bypass_it_and_branches_do_not_read_each_other(
    graph: LayerGraph,
) -> None:
    regions = list(walk(tree_of(graph).root))
    for region in regions:
        if isinstance(region, Chain):
            parts = list(parts_in_series(region))
            place = {layer: number for number, part in enumerate(parts) for layer in layers_in(part)}
            for writer, reader in graph.edges:
                if writer in place and reader in place:
                    distance = place[reader] - place[writer]
                    passed = parts[place[writer] + 1] if distance == 2 else None
                    assert distance in (0, 1) or (
                        isinstance(passed, Parallel) and any(not branch.parts for branch in passed.parts)
                    )
        if isinstance(region, Parallel):
            assert len(region.parts) > 1
            branch_of = {layer: number for number, it in enumerate(region.parts) for layer in layers_in(it)}
            for writer, reader in graph.edges:
                assert branch_of.get(writer) == branch_of.get(reader) or not {writer, reader} <= branch_of.keys()
    # What networkx cannot contract to one edge is irregular.
    is_irregular = any(isinstance(region, Irregular) for region in regions)
    assert is_irregular == (set(contracted(graph)) != {"entry", "exit"})


@given(random_graphs(max_size=16))
def test_irregular_regions_are_connected_and_have_no_layer_on_all_paths(graph: LayerGraph) -> None:
    digraph = layer_digraph(graph)
    for region in walk(tree_of(graph).root):
        if isinstance(region, Irregular):
            layers = set(layers_in(region))
            assert nx.is_weakly_connected(digraph.subgraph(layers))
            between = nx.DiGraph(digraph.subgraph(layers).edges)
            for layer in layers:
                if not layers.issuperset(graph.predecessors[layer]) or not graph.predecessors[layer]:
                    between.add_edge("entry", layer)
                if not layers.issuperset(graph.successors[layer]) or not graph.successors[layer]:
                    between.add_edge(layer, "exit")
            assert nx.immediate_dominators(between, "entry")["exit"] == "entry"


def contracted(graph: LayerGraph) -> nx.DiGraph:
    """A model after every layer with one source and one reader has become an edge."""
    left = nx.DiGraph(layer_digraph(graph))
    left.add_edges_from(("entry", layer) for layer, sources in enumerate(graph.predecessors) if not sources)
    left.add_edges_from((layer, "exit") for layer, readers in enumerate(graph.successors) if not readers)
    while True:
        inside = (node for node in left if left.in_degree(node) == left.out_degree(node) == 1)
        node = next(inside, None)
        if node is None:
            return left
        left.add_edges_from([(next(left.predecessors(node)), next(left.successors(node)))])
        left.remove_node(node)


def form_of(branch: Branch) -> tuple[Hashable, ...]:
    """A form that is equal for equal branches; the order of the branches inside does not count."""
    return tuple(
        it if isinstance(it, str) else (it[0], tuple(sorted((form_of(inner) for inner in it[1]), key=repr)))
        for it in branch
    )


@given(series_parallel_branches(), series_parallel_branches())
@example(("conv", "relu"), ("relu", "conv"))
@example((("add", (("conv",), ())),), (("add", (("conv",), ("conv",))),))
def test_two_branches_share_a_key_if_and_only_if_they_are_equal(one: Branch, other: Branch) -> None:
    assume(one and other)
    tree = tree_of(laid_out((("concat", (one, other)),)))
    (module,) = [part for part in tree.root.parts if isinstance(part, Parallel)]
    keys = [branch.key for branch in module.parts]
    assert (keys[0] == keys[1]) == (form_of(one) == form_of(other))


@given(sound_graphs(), st.data())
def test_equal_parts_share_their_keys_in_any_file_order(graph: LayerGraph, data: st.DataObject) -> None:
    tree = tree_of(side_by_side(graph, rewritten(graph, data.draw(topological_orders(graph)))))
    (all_side_by_side,) = tree.root.parts
    assert isinstance(all_side_by_side, Parallel)
    found: list[list[int]] = [[], []]
    for branch in all_side_by_side.parts:
        found[next(layers_in(branch)) >= len(graph.layers)].append(branch.key)
    assert sorted(found[0]) == sorted(found[1])


@given(series_parallel_branches(), st.integers(2, 4))
def test_consecutive_repeats_of_a_module_are_found(module: Branch, times: int) -> None:
    # Between two modules a layer that is in none.
    tree = tree_of(laid_out((*("pool", *module) * times, "split")))
    (repeat,) = [part for part in tree.root.parts if isinstance(part, Repeat)]
    assert repeat.size % times == 0
    assert repeat.size >= times
    assert len({instance.key for instance in repeat.parts}) == 1


HOURGLASS: Branch = ("pool", "conv", "relu")
for _ in range(3):
    HOURGLASS = ("pool", ("add", (("conv",), HOURGLASS)), "relu")
SHORT_CUT: tuple[Branch, ...] = (("conv", "relu"), ())
INCEPTION: Branch = (("concat", (("conv",), ("relu", "conv"), ("conv", "relu", "conv"), ("pool", "conv"))),)
STEPS = "split conv:0 conv:0 add:1,2 relu:3 conv:0 add:4,5 relu:6 conv:0 add:7,8 relu:9 concat:4,7,10"


@pytest.mark.parametrize(
    ("graph", "drawing"),
    [
        (built([]), ""),
        (laid_out((*(("add", SHORT_CUT), "relu") * 3, "pool")), "conv [{conv relu|} add relu]x3 pool"),
        # A repeated module begins where the model forks, and may hold repeats.
        (
            laid_out((("add", SHORT_CUT), ("add", SHORT_CUT), ("concat", SHORT_CUT))),
            "conv [{conv relu|} add]x2 {conv relu|} concat",
        ),
        (chain(*("split", "conv", "relu", "conv", "relu") * 3), "[split [conv relu]x2]x3"),
        (laid_out(INCEPTION * 2), "conv [{conv|relu conv|conv relu conv|pool conv} concat]x2"),
        (laid_out(HOURGLASS), "conv pool {conv|pool {conv|pool {conv|pool conv relu} add relu} add relu} add relu"),
        # Inputs, heads and constants are branches at the ends of the model.
        (wired("conv pool:i1 concat:0,1 relu:2 conv:2"), "{conv|pool} concat {relu|conv}"),
        (wired("conv relu:0 pool:i1"), "{conv relu|pool}"),
        (wired("conv relu:0 constant add:1,2"), "{conv relu|constant} add"),
        # Only parts neither in series nor in parallel are irregular.
        (
            wired("split relu:0 conv:1 pool:1 add:2,3 concat:2,4 relu:5 sub:6,0 pool:7"),
            "split {relu <conv pool add> concat relu|} sub pool",
        ),
        # A residual block between the two that cross stays a region, as does a repeat behind its inputs.
        (
            wired("split conv:0 relu:0 conv:1 pool:3 add:4,3 add:5,2 concat:6,1"),
            "split <conv relu conv {pool|} add add> concat",
        ),
        (wired("split conv:0 pool:0 relu:1 relu:3 add:2,1 concat:4,5"), "split <conv pool [relu]x2 add> concat"),
        (
            wired("split conv:0 pool:0 add:1,2 concat:1,3 relu:0 pool:0 sub:5,6 concat:5,7 add:4,8,0"),
            "split {<conv pool add> concat|<relu pool sub> concat|} add",
        ),
        (wired(STEPS), "split <{conv|conv} add relu [conv add relu]x2> concat"),
    ],
)
def test_a_model_is_drawn_as_chains_branches_repeats_and_irregular_parts(graph: LayerGraph, drawing: str) -> None:
    assert drawn(graph) == drawing


def test_irregular_modules_of_the_same_layers_wired_differently_have_different_keys() -> None:
    # Each of two layers has two readers, all of which read a third layer too.
    module = "split relu:0 relu:0 conv:0 {}:1,3 {}:1,3 {}:2,3 {}:2,3 concat:4,5,6,7"
    one, other = (wired(module.format(*ops)) for ops in (("add", "sub", "add", "sub"), ("add", "add", "sub", "sub")))
    keys = [region.key for region in walk(tree_of(side_by_side(one, other)).root) if isinstance(region, Irregular)]
    assert len(keys) == len({*keys}) == 2


def test_thousands_of_layers_nested_or_in_a_row_meet_no_recursion_limit() -> None:
    half = MANY_LAYERS // 2
    row = tree_of(chain(*["conv", "relu"] * half))
    assert [type(part) for part in row.root.parts] == [Repeat]
    nested = [Spec("conv", after(i - 1) if i else DATA) for i in range(half)]
    nested += [Spec("add", after(half - 2 + i, half - 1 - i)) for i in range(1, half)]
    depth, level = 0, tree_of(built(nested)).root.parts
    while level:
        depth, level = depth + 1, tuple(part for region in level for part in region.parts)
    assert depth > 0.9 * MANY_LAYERS


cuttings = st.builds(Cutting, st.integers(1, 5), st.sampled_from(Cut), st.sampled_from(LayerOrder))


@given(random_graphs(), cuttings)
def test_every_sequence_occurs_once_in_the_regions_and_those_of_one_layer_as_the_layers(
    graph: LayerGraph, how: Cutting
) -> None:
    decomposition = decompose(graph, how)
    leaves = sorted(layers_in(decomposition.regions.root))
    assert leaves == [occurrence.sequence.index for occurrence in decomposition.occurrences]
    alone = decompose(graph, Cutting(1, order=LayerOrder.PAPER))
    by_layer = regions_of(graph.predecessors, [occurrence.brick.key for occurrence in alone.occurrences])
    assert alone.regions.occurrences == by_layer.occurrences


def test_a_sequence_of_several_layers_is_one_leaf_and_equal_ones_in_a_row_are_a_repeat() -> None:
    tree = decompose(chain("conv", "relu", "pool", "conv", "relu"), Cutting(2)).regions
    assert [type(part) for part in tree.root.parts] == [Leaf, Leaf, Leaf]
    (repeat,) = decompose(chain("conv", "relu", "conv", "relu"), Cutting(2)).regions.root.parts
    assert isinstance(repeat, Repeat)
    assert len(repeat.parts) == 2


# Runs of equal pieces.


def runs_of(text: str) -> list[Repetition]:
    """The runs in a text whose capital letters are opening."""
    return repeated_runs([ord(letter) for letter in text], [letter.isupper() for letter in text])


@given(st.text("abC", max_size=40))
def test_runs_are_disjoint_and_hold_equal_neighbours(text: str) -> None:
    done = 0
    for start, period, times in runs_of(text):
        assert start >= done
        assert times >= 2
        done = start + period * times
        assert text[start:done] == text[start : start + period] * times


@given(
    st.text("abc", min_size=1, max_size=6).flatmap(lambda piece: st.tuples(st.just(piece), st.integers(2, 5))),
    st.text("de", max_size=1),
)
def test_repeated_pieces_are_covered_by_a_run(planted: tuple[str, int], after: str) -> None:
    piece, times = planted
    (run,) = runs_of(piece * times + after)
    # The piece may itself be a repeat of something shorter.
    assert run.start == 0
    assert run.period * run.times == len(piece) * times
    assert len(piece) % run.period == 0


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("", []),
        ("abcabdac", []),
        # The longest run wins, and others get the rest.
        ("aabaabaab", [(0, 3, 3)]),
        ("cpcppcppcp", [(1, 3, 3)]),
        ("ababababbcbcbcbcbc", [(0, 2, 4), (8, 2, 5)]),
        ("aBaBaBcBcBcBcB", [(1, 2, 2), (5, 2, 4)]),
        ("bcbcbcbcbabab", [(1, 2, 4), (9, 2, 2)]),
        # abc-bc-bc and not ab-cb-cb: what follows the last piece does not fit.
        ("xbcbcbcd", [(1, 2, 3)]),
        ("cbcbcbcd", [(1, 2, 3)]),
        # It starts at an opening if possible.
        ("EbCbrDbCbrDbCbr", [(5, 5, 2)]),
        ("bCbCbCb", [(1, 2, 3)]),
        ("CbbCbbCb", [(0, 3, 2)]),
    ],
)
def test_the_runs_of_a_text(text: str, runs: list[tuple[int, int, int]]) -> None:
    assert runs_of(text) == runs


def test_equal_pieces_longer_than_a_module_are_ignored() -> None:
    piece = list(range(65))
    assert repeated_runs(piece * 2, [False] * 130) == []
    assert repeated_runs(piece[1:] * 2, [False] * 128) == [Repetition(0, 64, 2)]
