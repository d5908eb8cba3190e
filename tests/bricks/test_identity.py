import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut, cut
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.identity import brick_of, outer_feeds
from dlbricks_tui.models.graph import Feed, LayerGraph, Shape, TensorType
from dlbricks_tui.models.mxnet_file import parse_symbol
from dlbricks_tui.models.mxnet_layers import build_graph, variable_roles
from tests.bricks.graphs import random_graphs
from tests.models.symbols import Document, Node, document, node, small_network, variable
from tests.models.table_framework import TableFramework

IMAGE = (1, 3, 32, 32)


def network(written: Sequence[Node] | Document, shape: Shape = IMAGE, dtype: str = "float32") -> LayerGraph:
    made = written if isinstance(written, dict) else document(written)
    file, shapes = parse_symbol(json.dumps(made), "net"), {"data": shape}
    by_number = {f"n{number}": shape for number, it in enumerate(file.nodes) if it.name == "data"}
    answer = TableFramework().infer(file.render(), by_number)
    types = [[TensorType(found.shape, dtype) for found in outputs] for outputs in answer.types]
    return build_graph(file, variable_roles(file, shapes), replace(answer, types=types), "net")


def keys(graph: LayerGraph, granularity: int = 1) -> list[str]:
    return [brick_of(graph, it.layers).key for it in cut(graph, granularity, Cut.RUNNABLE)]


def changed(name: str, **attributes: str) -> list[Node]:
    nodes = small_network()
    return [it | {"attrs": it.get("attrs", {}) | attributes} if it["name"] == name else it for it in nodes]


# One network, however it is written.


def as_of_2015() -> Document:
    """The network before 0.9: `param` beside `attr`, pairs as entries, no states, no version, Python 2's tuples."""
    nodes = small_network()
    kept = [number for number, it in enumerate(nodes) if not it["name"].endswith(("moving_mean", "moving_var"))]
    place = {number: position for position, number in enumerate(kept)}
    old = [
        {
            "op": nodes[number]["op"],
            "param": {key: text.replace(", 3)", "L, 3L)") for key, text in nodes[number].get("attrs", {}).items()},
            "name": nodes[number]["name"],
            "inputs": [[place[source], output] for source, output, _ in nodes[number]["inputs"] if source in place],
            "backward_source_id": -1,
            "attr": {"lr_mult": "1.0", "ctx_group": "all"},
        }
        for number in kept
    ]
    return {"nodes": old, "arg_nodes": [0], "heads": [[len(old) - 1, 0]]}


def as_of_2017() -> Document:
    """The network from 0.9 to 0.12: `attr`, True for 1, and defaults spelled out."""
    said = {
        "conv0": {"dilate": "[1,1]", "num_group": "1", "no_bias": "False", "workspace": "1024"},
        "bn0": {"eps": "0.0010000000474974513", "fix_gamma": "0", "momentum": "0.9"},
        "pool0": {"pooling_convention": "valid", "pad": "()"},
    }
    spelled = [it | {"attrs": it.get("attrs", {}) | said.get(it["name"], {})} for it in small_network()]
    renamed = [{key if key != "attrs" else "attr": value for key, value in it.items()} for it in spelled]
    return document(renamed, version=1200)


@pytest.mark.parametrize("granularity", [1, 3, 100])
def test_a_network_has_the_same_bricks_however_it_is_written(granularity: int) -> None:
    noted_by_a_trainer = document(changed("conv0", __profile__="7", __lr_mult__="2"))
    expected = keys(network(small_network()), granularity)
    for written in (as_of_2015(), as_of_2017(), noted_by_a_trainer):
        assert keys(network(written), granularity) == expected


# What changes a brick.


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("conv0", {"kernel": "(5, 5)", "pad": "(2, 2)"}),
        ("conv0", {"stride": "(2, 2)"}),
        ("conv0", {"num_group": "2"}),
        ("conv0", {"dilate": "(2, 2)"}),
        ("bn0", {"eps": "0.002"}),
        ("relu0", {"act_type": "tanh"}),
        ("pool0", {"pool_type": "avg"}),
        ("pool0", {"stride": "(1, 1)"}),
        ("fc0", {"num_hidden": "11"}),
        ("softmax", {"multi_output": "True"}),
    ],
)
def test_one_changed_parameter_changes_the_brick(name: str, attributes: Mapping[str, str]) -> None:
    one, other = network(small_network()), network(changed(name, **attributes))
    (index,) = (layer.index for layer in one.layers if layer.name == name)
    assert brick_of(one, [index]) != brick_of(other, [index])
    assert keys(one, 100) != keys(other, 100)


def test_shapes_types_and_biases_change_bricks() -> None:
    usual = keys(network(small_network()))
    smaller = keys(network(small_network(), (1, 3, 16, 16)))
    assert [a == b for a, b in zip(usual, smaller, strict=True)] == [False] * 7 + [True]
    assert not set(usual) & set(keys(network(small_network(), dtype="float16")))
    without = changed("conv0", no_bias="True")
    without[3] = without[3] | {"inputs": without[3]["inputs"][:2]}
    assert keys(network(without))[0] != usual[0]


# Sequences.


def test_the_topology_inside_a_sequence_counts() -> None:
    def branches(left: int, right: int) -> str:
        nodes = [node("tanh", "a", 0), node("sigmoid", "b", left), node("elemwise_mul", "c", 2, right)]
        return keys(network([variable("data"), *nodes]), 3)[0]

    assert branches(1, 1) != branches(1, 2)
    assert branches(1, 1) == branches(1, 1)


def test_a_sequence_reads_each_outer_tensor_once() -> None:
    nodes = [node("tanh", "a", 0), node("elemwise_add", "b", 1, 0), node("elemwise_mul", "c", 2, 0)]
    graph = network([variable("data"), *nodes])
    assert outer_feeds(graph.layers) == (Feed(None, 0),)
    form = json.loads(brick_of(graph, [0, 1, 2]).canonical)
    assert form["data"] == [[list(IMAGE), "float32"]]
    assert [it["inputs"] for it in form["operators"]] == [
        [["data", 0, 0]],
        [["operator", 0, 0], ["data", 0, 0]],
        [["operator", 1, 0], ["data", 0, 0]],
    ]


def test_a_layer_that_runs_more_often_than_those_around_it_makes_another_sequence() -> None:
    once = network(small_network())
    twice, all_twice = (
        replace(once, layers=tuple([replace(it, times=2 if it.index in which else 1) for it in once.layers]))
        for which in ((2,), range(len(once.layers)))
    )
    assert brick_of(twice, [0, 1, 2]) != brick_of(once, [0, 1, 2])
    assert brick_of(all_twice, [0, 1, 2]) == brick_of(once, [0, 1, 2])
    assert brick_of(twice, [2]) == brick_of(once, [2])


def test_the_canonical_form_of_a_brick_stays_unchanged() -> None:
    """Stored keys hang on it: a change here is a new CANONICAL_VERSION."""
    brick = brick_of(network(small_network()), [0])
    assert brick.canonical == (
        '{"data":[[[1,3,32,32],"float32"]],"level":"written","operators":[{"inputs":[["data",0,0],["weight",0,0],'
        '["weight",1,0]],"op":"conv","params":{"kernel":[3,3],"pads":[1,1,1,1]}}],"version":1,'
        '"weights":[[[8,3,3,3],"float32"],[[8],"float32"]]}'
    )
    assert brick.key == hashlib.sha256(brick.canonical.encode()).hexdigest()


@given(random_graphs(), st.integers(1, 4))
def test_inputs_in_a_canonical_form_exist_in_it_and_bricks_do_not_depend_on_names_and_places(
    graph: LayerGraph, granularity: int
) -> None:
    for occurrence in decompose(graph, Cutting(granularity, Cut.RUNNABLE)).occurrences:
        layers = [graph.layers[index] for index in occurrence.sequence.layers]
        form = json.loads(occurrence.brick.canonical)
        held = {"operator": form["operators"], "data": form["data"], "weight": form["weights"]}
        assert len(held["operator"]) == sum(len(layer.operators) for layer in layers)
        assert len(held["weight"]) == sum(len(layer.weights) for layer in layers)
        for operator in form["operators"]:
            assert all(0 <= number < len(held[origin]) for origin, number, _ in operator["inputs"])
    elsewhere = partial(replace, name="x", nodes=(7,))
    moved = replace(graph, layers=tuple(map(elsewhere, graph.layers)), name="other")
    assert decompose(moved, Cutting(granularity)).pairs == decompose(graph, Cutting(granularity)).pairs
