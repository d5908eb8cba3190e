"""The outline of a model, and its tree."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dlbricks_tui.analysis.whole_models import Basis, WrittenTime
from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.regions import Repeat
from dlbricks_tui.documents.layout import TEXT, laid_out
from dlbricks_tui.documents.outline import OutlineNode
from dlbricks_tui.documents.tree import tree, tree_lines
from dlbricks_tui.models.graph import LayerGraph
from tests.bricks.graphs import DATA, Branch, Spec, after, built, chain, random_graphs
from tests.bricks.graphs import laid_out as model_of
from tests.documents.outlines import leaf_of, nodes_of, outline_of, sample, unable
from tests.documents.snapshots import check

cuttings = st.builds(Cutting, st.integers(1, 4), st.sampled_from(Cut))


def drawn(graph: LayerGraph, width: int = 80) -> list[str]:
    """Return the lines of a model in some width."""
    found = laid_out(tree(decompose(graph), width), width, TEXT)
    return ["".join(span.text for span in line).rstrip() for line in found]


def test_names_from_files_cannot_steer_the_terminal() -> None:
    graph = chain("conv")
    named = replace(graph, name="a\x1b[2Jb", layers=(replace(graph.layers[0], name="x\x1b]0;y\ny"),))
    text = "\n".join(drawn(named, width=120))
    assert "\x1b" not in text
    assert "a\\x1b[2Jb" in text
    assert "x\\x1b]0;y\\ny" in text


def test_a_very_long_model_is_cut_off_with_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlbricks_tui.documents.tree.MOST_LINES", 40)
    specs = [Spec("conv", after(index - 1) if index else DATA, width=index + 1) for index in range(90)]
    lines = drawn(built(specs))
    assert len(lines) < 40 + 20
    assert "... and 50 more lines; `--json` has everything" in lines


def test_a_very_deep_model_continues_under_headings() -> None:
    branch: Branch = ("conv",)
    for _ in range(60):
        branch = ("pool", ("add", (branch, ())), "relu", "conv")
    graph = model_of(branch)
    lines = tree_lines(outline_of(graph), deepest=5)
    assert sum(line.sequence is not None for line in lines) == len(graph.layers)
    assert max(len(line.guides) for line in lines) <= 7 * 3
    headings = [line.text for line in lines if line.text and not line.guides]
    references = [line.text for line in lines if line.text.endswith(", below")]
    assert len(headings) == len(references) > 8
    assert max(map(cell_len, drawn(graph))) <= 80


@given(random_graphs(), cuttings, st.integers(1, 6))
def test_every_brick_is_drawn_at_least_once(graph: LayerGraph, how: Cutting, deepest: int) -> None:
    outline = outline_of(graph, how)
    shown = {line.sequence.occurrence for line in tree_lines(outline, deepest) if line.sequence is not None}
    assert {it.brick.key for it in shown if it is not None} == outline.decomposition.bricks


def spent(latency_ms: float, *, by_roofline: bool = False) -> WrittenTime:
    return WrittenTime(round(latency_ms * 1e9), Basis.ROOFLINE if by_roofline else Basis.WHOLE)


def test_a_tree_has_its_totals_its_parts_and_the_meaning_of_its_signs() -> None:
    branches: Branch = (("add", (("conv", "relu"), ())), "pool")
    graph = unable(model_of((*branches * 3, "relu", ("concat", (("conv",), ("pool", "pool"))))), 13)
    often = built([Spec("conv", DATA, times=2), Spec("relu", after(0))])
    times = [spent(float(it + 1), by_roofline=it == 3) for it in range(len(graph.layers))]
    # Equal modules in a row may have their branches in another order.
    one = [Spec("relu", after(0)), Spec("conv", after(1)), Spec("pool", after(0)), Spec("add", after(2, 3))]
    other = [Spec("pool", after(4)), Spec("relu", after(4)), Spec("conv", after(6)), Spec("add", after(7, 5))]
    swapped = decompose(built([Spec("conv", DATA), *one, *other]), Cutting(order=LayerOrder.PAPER))
    copies = [spent(it, by_roofline=it == 2.0) for it in (5.0, 1.0, 2.0, 1.0, 1.0)]
    check(
        "tree",
        {
            "a model": tree(decompose(graph), 80),
            "with times": tree(decompose(graph), 80, times),
            "in sequences": tree(decompose(graph, Cutting(3)), 80),
            "a layer that runs twice": tree(decompose(often), 80),
            "the time of all copies in a row": tree(decompose(chain("conv", *["relu"] * 3, "pool")), 80, copies),
            "branches in another order": tree(swapped, 80, [spent(2.0**it) for it in range(9)]),
        },
        width=80,
    )
    check("tree-wide", {"with names": tree(decompose(graph), 120)}, width=120)


def titled(nodes: list[OutlineNode], beginning: str) -> OutlineNode:
    return next(it for it in nodes if it.title.startswith(beginning))


def told(node: OutlineNode) -> str:
    """A line for a part and each part inside it."""
    marks = [f"{node.occurs} times"] * (node.occurs > 1) + ["unmeasurable"] * node.is_unmeasurable
    facts = [node.names, node.output, node.module, *marks, *["opens"] * node.can_open, *node.words[-1:]]
    return "\n".join(("  " * node.depth + " | ".join([node.title, *filter(None, facts)]), *map(told, node.inside)))


def test_the_parts_of_a_model_are_nested_titled_and_counted() -> None:
    one = chain("conv", "relu")
    recorded = replace(one, layers=(one.layers[0], replace(one.layers[1], is_recorded=True)))
    more = replace(one, layers=(one.layers[0], replace(one.layers[1], outputs=one.layers[1].outputs * 3)))
    graphs = {
        "a row": chain("conv", *["relu"] * 3, "pool"),
        "a layer that runs often": built([Spec("conv", DATA, times=3)]),
        "an unmeasurable layer": unable(one, 1),
        "a recorded shape": recorded,
        "several outputs": more,
    }
    outlines = {name: outline_of(graph) for name, graph in graphs.items()}
    outlines |= {"a network": sample("resnet18_v1"), "sequences": sample("resnet18_v1", granularity=4)}
    modules = "\n".join(it.title for it in sample("resnet50_v1").root.inside)
    check("outline", {**{name: told(it.root) for name, it in outlines.items()}, "modules": modules})
    first = outlines["sequences"].root.inside[0]
    assert [(it.layer, it.sequence, it.layers) for it in first.inside] == [(at, 0, (at,)) for at in range(4)]
    assert first.parent is outlines["sequences"].root and first.inside[0].parent is first


def test_occurrences_of_parts_are_counted() -> None:
    outline = sample("resnet50_v1")
    relu = leaf_of(outline, 6)
    assert relu.title == "relu" and relu.occurs > 1
    assert outline.root.occurs == 1
    repeats = [(it, it.region) for it in nodes_of(sample("inceptionv3")) if isinstance(it.region, Repeat)]
    assert repeats
    assert all(it.occurs >= len(region.parts) for it, region in repeats)


def test_sequences_are_found_by_their_operators_kinds_and_names() -> None:
    outline = sample("resnet18_v1")
    convolutions = outline.found(["conv"])
    assert convolutions == outline.found(["convolution"]) == sorted(convolutions) and len(convolutions) == 20
    (first,) = outline.found(["conv", "resnet18_v1_conv0"])
    assert outline.sequence_text(first) == "conv 7x7/2 64"
    assert outline.found(["nothing of the kind"]) == [] and len(outline.found([])) == len(outline.sequences)


def test_a_part_has_the_regions_around_it_and_its_equals() -> None:
    outline = sample("resnet18_v1")
    module = titled(outline.root.inside, "block").inside[0]
    leaf = next(it for it in nodes_of(outline) if it.sequence is not None and it.depth == 5)
    path = outline.path_to(leaf.region)
    assert len(path) == 5 and path[-1] is leaf.region and path[2] is not leaf.region
    assert path[:2] == [titled(outline.root.inside, "block").region, module.region]
    assert outline.path_to(outline.root.region) == []
    equals = outline.equal(module.region)
    assert len(equals) == 2 and module.region in equals and equals == outline.equal(path[0])
    assert [outline.span_of(it).start for it in equals] == [4, 11] and len(outline.numbers(module.region)) == 7
