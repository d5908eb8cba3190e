"""Real symbol files, damaged in every way: the result is a model, or one line with the fault."""

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.mxnet.layer_graph import InferredFile, build_graph, input_shapes, variable_roles
from dlbricks_tui.models.mxnet.symbol_file import SymbolFile, parse_symbol
from tests.models.symbols import document, node, small_network, variable

SAMPLES = ("table1/capsnet", "table1/yolo_v2", "gluon/squeezenet1.0")


def read(name: str) -> Any:
    return json.loads(Path(SAMPLE_MODELS, f"{name}-symbol.json").read_bytes())


def old_file() -> Any:
    nodes = [{("param" if key == "attrs" else key): part for key, part in it.items()} for it in small_network()]
    return document(nodes, version=None)


def file_with_graphs_inside() -> Any:
    body = document([variable("x"), node("relu", "r", 0)])
    nodes = [variable("data"), node("_foreach", "loop", 0, in_data_locs="(0,)") | {"subgraphs": [body, body]}]
    return document([*nodes, node("_sg_mkldnn_conv", "fused", 1, with_act="true") | {"subgraphs": [body]}])


DOCUMENTS = [*map(read, SAMPLES), old_file(), file_with_graphs_inside()]
WEIRD: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 2**16, 2**31, 10**12, 10**30, 1.5, 1e308, float("nan"), float("inf")),
    *("", " ", "null", "data", "\0", "\ud800", "(1, 2", "(0,)", "()", "None", "9" * 70, "-1", "inf", "2L", "NHWC", "²"),
    *([], {}, [[]], [0], [0, 0], [0, 0, 0], [[0, 0, 0]], [1, 1, 0], {"a": "b"}, {"op": "null"}, {"nodes": []}),
    *({"op": "BatchNorm", "inputs": [[0, 0]]}, {"__layer__": "x", "__times__": "3"}, {"op": "Convolution"}),
]


@st.composite
def mutated_documents(draw: st.DrawFn) -> bytes:
    """Documents with parts removed, replaced, doubled or exchanged."""
    found = {"": copy.deepcopy(draw(st.sampled_from(DOCUMENTS)))}
    for _ in range(draw(st.integers(1, 4))):
        holder, key = draw_place(draw, found)
        kind = draw(st.sampled_from(["replace", "remove", "double", "exchange"]))
        if kind == "replace":
            holder[key] = copy.deepcopy(draw(st.sampled_from(WEIRD)))
        elif kind == "exchange":
            other, place = draw_place(draw, found)
            holder[key] = copy.deepcopy(other[place])
        elif isinstance(holder, list):
            holder[key : key + 1] = [] if kind == "remove" else [holder[key], copy.deepcopy(holder[key])]
        elif holder is not found:
            del holder[key]
    return json.dumps(found[""]).encode()


def draw_place(draw: st.DrawFn, root: dict[str, Any]) -> tuple[Any, Any]:
    """Return a place in the document, preferably deep: its container, and its key or index."""
    holder: Any = root
    key: Any = ""
    while isinstance(holder[key], (dict, list)) and holder[key] and draw(st.sampled_from((True,) * 9 + (False,))):
        holder = holder[key]
        if isinstance(holder, list):
            key = draw(st.integers(0, len(holder) - 1))
        else:
            # Most faults of a file are faults of its nodes.
            key = "nodes" if "nodes" in holder and draw(st.booleans()) else draw(st.sampled_from(sorted(holder)))
    return holder, key


@st.composite
def damaged_bytes(draw: st.DrawFn) -> bytes:
    """A file with bytes changed, removed or doubled."""
    data = bytearray(json.dumps(draw(st.sampled_from(DOCUMENTS))).encode())
    for _ in range(draw(st.integers(1, 5))):
        begin = draw(st.integers(0, len(data) - 1))
        end = begin + draw(st.integers(0, 40))
        data[begin:end] = draw(st.sampled_from([b"", data[begin:end] * 2]) | st.binary(max_size=3))
        if not data:
            break
    return bytes(data)


def no_types(file: SymbolFile, shuffle: random.Random) -> list[list[TensorType]]:
    return [[TensorType(None)] for _ in file.nodes]


def one_type(file: SymbolFile, shuffle: random.Random) -> list[list[TensorType]]:
    return [[TensorType((1, 8, 4, 4))] * 3 for _ in file.nodes]


def any_types(file: SymbolFile, shuffle: random.Random) -> list[list[TensorType]]:
    shapes = [None, (), (1,), (1, 8), (1, 8, 4, 4), (2**31,), (10**6, 10**6)]
    return [
        [TensorType(shuffle.choice(shapes[: shuffle.randint(1, 7)])) for _ in range(shuffle.randint(0, 3))]
        for _ in file.nodes
    ]


Types = Callable[[SymbolFile, random.Random], list[list[TensorType]]]
types = st.sampled_from([no_types, one_type, any_types])
shuffles = st.randoms(use_true_random=False)


@given(mutated_documents() | damaged_bytes(), types, shuffles)
def test_a_damaged_file_is_a_model_or_refused_in_one_line(data: bytes, answer: Types, shuffle: random.Random) -> None:
    """Read the file as the loader does, and cut the result."""
    try:
        file = parse_symbol(data, "net")
        roles = variable_roles(file, {"data"})
        input_shapes(file, roles, {}, {"data": (1, 3, 8, 8)}, "resnet")
        unknown = frozenset(shuffle.sample(range(len(file.nodes)), shuffle.randint(0, 1)))
        graph = build_graph(InferredFile(file, roles, answer(file, shuffle), unknown), "net")
    except ModelError as error:
        assert "\n" not in str(error)
        assert 0 < len(str(error)) < 1_000
        return
    assert parse_symbol(file.render(), "net").heads == file.heads
    for index, layer in enumerate(graph.layers):
        assert layer.index == index
        assert all(feed.layer is None or feed.layer < index for feed in layer.feeds)
        assert len(layer.feeds) == len(layer.data)
    assert decompose(graph, Cutting(3)).occurrences
