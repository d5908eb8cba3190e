from dataclasses import replace

from dlbricks_tui.bricks.regions import Repeat
from dlbricks_tui.documents.outline import OutlineNode
from tests.bricks.graphs import DATA, Spec, built, chain
from tests.documents.outlines import leaf_of, nodes_of, outline_of, sample, unable


def titled(nodes: list[OutlineNode], beginning: str) -> OutlineNode:
    return next(it for it in nodes if it.title.startswith(beginning))


def test_the_parts_of_a_model_are_nested_and_titled() -> None:
    outline = sample("resnet18_v1")
    first, *others = outline.root.inside
    assert (outline.root.title, first.title, first.names) == ("resnet18_v1", "conv 7x7/2 64", "resnet18_v1_conv0_fwd")
    assert (first.depth, first.parent, first.inside, first.can_open) == (1, outline.root, [], False)
    row = titled(others, "block")
    assert row.title == "block A x2, in a row, 7 layers"
    assert [it.title for it in row.inside] == ["1 of 2: block A x2, 7 layers", "2 of 2: block A x2, 7 layers"]
    branches = row.inside[0].inside[0]
    assert [it.title for it in (branches, *branches.inside)] == [
        "2 branches, 5 layers",
        "branch 1: 5 layers",
        "branch 2: skip connection",
    ]


def test_a_region_is_named_after_its_first_and_last_layer() -> None:
    row = titled(sample("resnet50_v1").root.inside, "block A")
    first, _, last = row.names.partition(" .. ")
    assert first.startswith("resnet50_v1_stage1_") and last.startswith("resnet50_v1_stage1_")


def test_the_layers_of_a_longer_sequence_are_its_parts() -> None:
    outline = sample("resnet50_v1", granularity=4)
    first = outline.root.inside[0]
    assert first.title == "conv 7x7/2 64 > batch norm > relu > max pool 3x3/2"
    assert [it.title for it in first.inside] == first.title.split(" > ")
    assert [(it.layer, it.sequence, it.layers) for it in first.inside] == [(at, 0, (at,)) for at in range(4)]
    assert titled(nodes_of(outline), "2 branches").words[-1].endswith(" sequences")


def test_occurrences_of_parts_are_counted() -> None:
    outline = sample("resnet50_v1")
    relu = leaf_of(outline, 6)
    assert relu.title == "relu" and relu.occurs > 1
    assert outline.root.occurs == 1
    repeats = [(it, it.region) for it in nodes_of(sample("inceptionv3")) if isinstance(it.region, Repeat)]
    assert repeats
    assert all(it.occurs >= len(region.instances) for it, region in repeats)


def test_repeated_modules_have_letters_in_their_order_and_their_parts_have_none() -> None:
    outline = sample("resnet50_v1")
    assert [it.module for it in outline.root.inside if it.module] == [
        "block A x2",
        "block B x3",
        "block C x5",
        "block D x2",
    ]
    assert {it.module[:7] for it in nodes_of(outline) if it.module} == {f"block {it}" for it in "ABCD"}


def test_equal_layers_that_follow_one_another_are_one_part() -> None:
    parts = outline_of(chain("conv", *["relu"] * 3, "pool")).root.inside
    assert [it.title for it in parts] == ["conv 8", "relu, 3 in a row", "pool"]


def test_a_layer_says_how_often_it_runs_and_whether_it_cannot() -> None:
    assert outline_of(built([Spec("conv", DATA, times=3)])).root.inside[0].title.endswith(" (runs 3 times)")
    graph = chain("conv", "relu")
    unmeasurable = leaf_of(outline_of(unable(graph, 1)), 1)
    assert unmeasurable.title == "! relu, unmeasurable" and unmeasurable.is_unmeasurable
    recorded = replace(graph, layers=(graph.layers[0], replace(graph.layers[1], is_recorded=True)))
    assert leaf_of(outline_of(recorded), 1).title == "relu, shape recorded from one run"


def test_the_output_of_a_sequence_is_that_of_its_last_layer_with_the_number_of_others() -> None:
    graph = chain("conv", "relu")
    shape = leaf_of(outline_of(graph), 1).output
    assert "x" in shape and "+" not in shape
    outputs = graph.layers[1].outputs * 3
    more = replace(graph, layers=(graph.layers[0], replace(graph.layers[1], outputs=outputs)))
    assert leaf_of(outline_of(more), 1).output == f"{shape} +2"
    assert outline_of(graph).root.output == ""


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
