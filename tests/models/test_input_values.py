"""Values of inputs: as users write them, as they are checked, remembered, and what they change."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from onnx import GraphProto, ModelProto, TensorProto
from onnx.helper import (
    make_graph,
    make_node,
    make_tensor,
    make_tensor_sequence_value_info,
    make_tensor_value_info,
)

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import file_program, model_program
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Numbers
from dlbricks_tui.models.input_shapes import VALUES_FILE, ShapeMemory
from dlbricks_tui.models.input_values import parse_value_option
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.wording.titles import assumption, input_text
from tests.models.onnx_models import branch, integers, model, saved
from tests.models.symbols import content, small_network
from tests.models.table_framework import TableFramework

NOTHING: Mapping[str, Numbers] = {}


def inside(op: str) -> GraphProto:
    result = make_tensor_value_info(f"{op}_result", TensorProto.FLOAT, None)
    return make_graph([make_node(op, ["x"], [f"{op}_result"], name=op)], op, [], [result])


def with_rate(shape: tuple[int, ...] = ()) -> ModelProto:
    """Return a model that computes Tanh at a rate of 16,000, and Relu at any other."""
    nodes = [
        make_node("Equal", ["rate", "usual"], ["is_usual"]),
        branch("is_usual", inside("Tanh"), inside("Relu"), "y"),
    ]
    made = model(nodes, {"x": (1, 4)}, ["y"], [make_tensor("usual", TensorProto.INT64, (), [16_000])])
    made.graph.input.append(make_tensor_value_info("rate", TensorProto.INT64, shape))
    return made


def read(
    folder: Path, made: ModelProto, values: Mapping[str, Numbers] = NOTHING, memory: ShapeMemory | None = None
) -> LayerGraph:
    loader = Loader(folder / "cache", TableFramework(), memory=memory)
    return loader.load(source_of(saved(folder, made)), Level.WRITTEN, values=values)


def operators(graph: LayerGraph) -> list[str]:
    return [layer.op for layer in graph.layers]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sr=16000", ("sr", (16000,))),
        ("size=640, 480", ("size", (640, 480))),
        ("a=b=-1", ("a=b", (-1,))),
        ("scale=0.5", ("scale", (0.5,))),
        ("scale=1e3", ("scale", (1000,))),
        ("words=a b", ("words", ("a b",))),
        ("words=yes,007x", ("words", ("yes", "007x"))),
        ('words="007"', ("words", ("007",))),
    ],
)
def test_a_value_on_the_command_line_is_read(text: str, expected: tuple[str, Numbers]) -> None:
    assert parse_value_option(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "sr", "sr=", "=1", "sr=,", f"sr={'9' * 50_000}"],
)
def test_an_invalid_value_on_the_command_line_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match=r"is not NAME=16000, NAME=1,2,3 or NAME=text$"):
        parse_value_option(text)


def test_too_many_numbers_on_the_command_line_are_refused() -> None:
    with pytest.raises(ModelError, match=r"has 1,025 values; the limit is 1,024$"):
        parse_value_option(f"ids={','.join('1' * 1025)}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sr": (1,)}, "net has no input 'sr'; its inputs are: x, rate"),
        ({"rate": (1, 2)}, "net: input 'rate' is a single number; its --value has 2 numbers, give 1"),
        ({"x": (1, 2)}, "net: input 'x' is 1x4; its --value has 2 numbers, give 1 or 4"),
        (
            {"rate": (0.5,)},
            "net: input 'rate' takes whole numbers from -9223372036854775808 to 9223372036854775807; .*",
        ),
        ({"rate": (2**63,)}, "net: input 'rate' takes whole numbers from .*"),
        ({"x": (1e39,)}, "net: input 'x' is float32, which cannot hold the given --value"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_one_line(
    values: Mapping[str, Numbers], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=f"^{message}$"):
        read(tmp_path, with_rate(), values)


def test_an_input_of_texts_takes_texts_and_others_do_not(tmp_path: Path) -> None:
    made = with_rate()
    made.graph.input.append(make_tensor_value_info("words", TensorProto.STRING, (2,)))
    assert read(tmp_path, made, {"words": ("yes", "no")}).inputs[-1].value == ("yes", "no")
    with pytest.raises(ModelError, match=r"input 'rate' takes whole numbers from"):
        read(tmp_path, made, {"rate": ("fast",)})
    with pytest.raises(ModelError, match=r"input 'x' is float32, which cannot hold the given --value$"):
        read(tmp_path, made, {"x": ("fast",)})


def test_an_input_that_is_no_tensor_is_refused_in_one_line(tmp_path: Path) -> None:
    made = with_rate()
    made.graph.input.append(make_tensor_sequence_value_info("words", TensorProto.FLOAT, (2,)))
    with pytest.raises(ModelError, match=r"^net: input 'words' is a sequence, and values are made up for tensors"):
        read(tmp_path, made)


def test_sizes_that_nothing_says_are_told(tmp_path: Path) -> None:
    made = model([make_node("Add", ["x", "y"], ["z"])], {"x": ("num_atoms", 3), "y": ("batch", 3)}, ["z"])
    graph = read(tmp_path, made)
    assert [input_text(it) for it in graph.inputs] == ["x (num_atoms = 1 assumed)", "y"]
    assert assumption(graph.inputs) == ("assumed: num_atoms = 1 in input x; --input x=SIZE,3 gives another")
    given = Loader(tmp_path / "cache", TableFramework()).load(source_of(saved(tmp_path, made)), given={"x": (5, 3)})
    assert not assumption(given.inputs)


def test_an_mxnet_model_takes_no_value(tmp_path: Path) -> None:
    path = tmp_path / "net-symbol.json"
    path.write_bytes(content(small_network()))
    with pytest.raises(ModelError, match=r"^net: only the inputs of ONNX models take a --value; leave it out$"):
        Loader(tmp_path / "cache", TableFramework()).load(source_of(path), values={"data": (1,)})


def test_a_value_chooses_the_branch_whose_nodes_become_layers(tmp_path: Path) -> None:
    assert operators(read(tmp_path, with_rate(), {"rate": (16_000,)})) == ["tanh"]
    assert operators(read(tmp_path, with_rate(), {"rate": (8_000,)})) == ["relu"]


def test_without_a_value_an_input_has_the_number_that_the_model_compares_it_with(tmp_path: Path) -> None:
    graph = read(tmp_path, with_rate((1,)))
    assert operators(graph) == ["tanh"]
    assert graph.inputs[1].value == (16_000,)


def test_whole_models_are_fed_the_value(tmp_path: Path) -> None:
    graph = read(tmp_path, with_rate(), {"rate": (8_000,), "x": (1, 2, 3, 4)})
    assert file_program(graph, tmp_path / "net.onnx").network.values == {"rate": (8_000,), "x": (1, 2, 3, 4)}
    network = model_program(graph).network
    assert [network.values.get(name) for name in network.inputs] == [(1, 2, 3, 4), (8_000,)]


def test_a_value_changes_no_brick_of_an_equal_layer(tmp_path: Path) -> None:
    keys = {brick_of(read(tmp_path, with_rate(), {"x": value}), (0,)).key for value in ((1,), (2,), (1, 2, 3, 4))}
    assert len(keys) == 1


def test_a_value_that_sets_a_size_sets_the_shapes(tmp_path: Path) -> None:
    made = model([make_node("Expand", ["x", "size"], ["y"])], {"x": (1, 4)}, ["y"])
    made.graph.input.append(make_tensor_value_info("size", TensorProto.INT64, ("axes",)))
    assert read(tmp_path, made, {"size": (3, 2, 4)}).layers[0].outputs[0].shape == (3, 2, 4)


def test_a_model_whose_inputs_all_have_values_still_has_layers(tmp_path: Path) -> None:
    made = model([make_node("Add", ["x", "x"], ["y"])], {"x": (1, 4)}, ["y"], [integers("unused", (1,))])
    assert operators(read(tmp_path, made, {"x": (1,)})) == ["add"]


def test_a_given_value_is_remembered_and_its_use_is_reported_once(tmp_path: Path) -> None:
    told: list[str] = []

    def memory() -> ShapeMemory:
        return ShapeMemory(tmp_path, lambda source, given: told.append(f"{source.name} {dict(given)}"))

    read(tmp_path, with_rate(), {"rate": (8_000,)}, memory())
    assert told == []
    shared = memory()
    for _ in range(2):
        assert operators(read(tmp_path, with_rate(), memory=shared)) == ["relu"]
    assert told == ["net {'rate': (8000,)}"]
    assert operators(read(tmp_path, with_rate(), {"rate": (16_000,)}, memory())) == ["tanh"]
    assert operators(read(tmp_path, with_rate(), memory=memory())) == ["tanh"]


@pytest.mark.parametrize("text", ["", "[]", '{"a": {"x": "many"}}', '{"a": {"x": []}}', "[" * 100_000])
def test_a_damaged_file_of_values_is_replaced(text: str, tmp_path: Path) -> None:
    (tmp_path / VALUES_FILE).write_text(text)
    read(tmp_path, with_rate(), {"rate": (8_000,)}, ShapeMemory(tmp_path))
    assert operators(read(tmp_path, with_rate(), memory=ShapeMemory(tmp_path))) == ["relu"]


def test_a_value_that_is_refused_is_not_remembered(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        read(tmp_path, with_rate(), {"rate": (1, 2)}, ShapeMemory(tmp_path))
    assert not (tmp_path / VALUES_FILE).exists()
