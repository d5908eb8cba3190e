"""Open axes of ONNX inputs, as exporters name them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import (
    make_graph,
    make_node,
    make_tensor,
    make_tensor_sequence_value_info,
    make_tensor_value_info,
)

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import file_program, model_program
from dlbricks_tui.models.errors import InconsistentModelError, MissingShapeError, ModelError, UnreadableModelError
from dlbricks_tui.models.graph import GraphInput, LayerGraph, Level, Numbers, Shape, TensorType
from dlbricks_tui.models.input_shapes import MOST_AXES, SHAPES_FILE, VALUES_FILE, ShapeMemory, parse_value_option
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.models.loading import Loader, forecast_bytes, refuse_too_large_batch
from dlbricks_tui.models.onnx.inputs import KEY, Axes, candidates, implied_axes, stated_inputs, stating
from dlbricks_tui.models.onnx.model_file import parse_onnx
from dlbricks_tui.wording.answers import assumption, input_text
from tests.models.onnx_models import branch, floats, integers, loaded, model, of_a_detector, saved
from tests.models.symbols import content, small_network
from tests.models.table_framework import TableFramework

DeclaredAxes = tuple[int | str, ...]
# As optimum exports a decoder with its cache.
DECODER = {
    "input_ids": ("batch_size", "sequence_length"),
    "past.0": ("batch_size", 4, "past_sequence_length", 32),
    "past.1": ("batch_size", 4, "past_sequence_length", 32),
    "attention_mask": ("batch_size", "past_sequence_length + sequence_length"),
}


def with_inputs(inputs: dict[str, DeclaredAxes]) -> ModelProto:
    """Return a model that passes each input on."""
    nodes = [make_node("Relu", [name], [f"{name}_out"]) for name in inputs]
    return model(nodes, inputs, [f"{name}_out" for name in inputs])


def shapes(folder: Path, inputs: dict[str, DeclaredAxes], given: dict[str, Shape] | None = None) -> list[Shape | None]:
    graph = loaded(folder, with_inputs(inputs), given)
    return [it.type.shape for it in graph.inputs]


def examples(folder: Path, inputs: dict[str, DeclaredAxes]) -> dict[str, Shape]:
    with pytest.raises(MissingShapeError) as refusal:
        loaded(folder, with_inputs(inputs))
    return refusal.value.examples


@pytest.mark.parametrize(
    ("inputs", "given", "found"),
    [
        ({"state": (2, "batch", 128), "x": (8, "Batch_Size")}, {}, [(2, 1, 128), (8, 1)]),
        ({"x": ("batch", "length"), "state": (2, "batch", 128)}, {"x": (4, 7)}, [(4, 7), (2, 4, 128)]),
        # An axis may be the sum of others and of numbers.
        ({"x": (1, "n"), "y": (1, "n + 1")}, {"x": (1, 5)}, [(1, 5), (1, 6)]),
        (
            DECODER,
            {"input_ids": (1, 3), "past.0": (1, 4, 64, 32)},
            [(1, 3), (1, 4, 64, 32), (1, 4, 64, 32), (1, 67)],
        ),
    ],
)
def test_open_axes_follow_from_those_of_their_names(
    inputs: dict[str, DeclaredAxes], given: dict[str, Shape], found: list[Shape], tmp_path: Path
) -> None:
    assert shapes(tmp_path, inputs, given) == found


@pytest.mark.parametrize(
    ("inputs", "asked"),
    [
        (DECODER, {"input_ids": (1, 128), "past.0": (1, 4, 128, 32)}),
        ({"x": ("batch", 3, "height", "width")}, {"x": (1, 3, 224, 224)}),
        ({"x": (12, "batch", "seq_len", "width")}, {"x": (12, 1, 128, 224)}),
        # A sum with an unknown term stays open.
        *(({"y": (1, name)}, {"y": (1, 128)}) for name in ("n + other", "n + ", "n - 1", f"{'9' * 5000} + 1")),
    ],
)
def test_the_error_asks_only_for_shapes_that_do_not_follow_from_others(
    inputs: dict[str, DeclaredAxes], asked: dict[str, Shape], tmp_path: Path
) -> None:
    assert examples(tmp_path, inputs) == asked
    assert loaded(tmp_path, with_inputs(inputs), asked).layers


def test_the_error_for_too_many_open_axes_has_an_example(tmp_path: Path) -> None:
    assert len(examples(tmp_path, {"x": ("n",) * (MOST_AXES + 1)})["x"]) == MOST_AXES


# Input shapes that are given once and remembered.


def open_model(folder: Path, name: str = "net") -> ModelSource:
    """Return a model that does not declare the size of its input."""
    return source_of(saved(folder, model([make_node("Relu", ["x"], ["y"])], {"x": [None, None]}, ["y"]), name))


def load(data: Path, source: ModelSource, given: Mapping[str, Shape] | None = None) -> tuple[Shape | None, list[str]]:
    """Return the shape of its input, and the models whose shapes were remembered."""
    told: list[str] = []
    memory = ShapeMemory(data, lambda source, shapes: told.append(f"{source.name} {dict(shapes)}"))
    loader = Loader(data / "cache", TableFramework(), memory=memory)
    graph = loader.load(source, Level.WRITTEN, given)
    # It is reported once, however often it is read.
    loader.load(source, Level.WRITTEN, given)
    return graph.inputs[0].type.shape, told


def test_a_given_shape_is_remembered_and_its_use_is_reported(tmp_path: Path) -> None:
    source = open_model(tmp_path)
    with pytest.raises(MissingShapeError) as missing:
        load(tmp_path, source)
    assert missing.value.examples == {"x": (1, 128)}
    assert load(tmp_path, source, {"x": (2, 8)}) == ((2, 8), [])
    assert load(tmp_path, source) == ((2, 8), ["net {'x': (2, 8)}"])
    assert load(tmp_path, source, {"x": (3, 9)}) == ((3, 9), [])
    assert load(tmp_path, source) == ((3, 9), ["net {'x': (3, 9)}"])


def test_given_shapes_are_remembered_by_content_and_not_by_name(tmp_path: Path) -> None:
    load(tmp_path, open_model(tmp_path), {"x": (2, 8)})
    assert load(tmp_path, open_model(tmp_path, "copy"))[0] == (2, 8)
    other = source_of(saved(tmp_path, model([make_node("Tanh", ["x"], ["y"])], {"x": [None, None]}, ["y"])))
    with pytest.raises(MissingShapeError):
        load(tmp_path, other)


def test_a_remembered_shape_never_replaces_one_in_the_file(tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, model([make_node("Relu", ["x"], ["y"])], {"x": [1, 8]}, ["y"])))
    load(tmp_path, source, {"x": (4, 8)})
    assert load(tmp_path, source) == ((1, 8), [])


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"x": "many"}}', '{"a": {"x": [0]}}', "[" * 100_000])
def test_a_damaged_file_of_shapes_is_replaced(text: str, tmp_path: Path) -> None:
    source = open_model(tmp_path)
    (tmp_path / SHAPES_FILE).write_text(text)
    with pytest.raises(MissingShapeError):
        load(tmp_path, source)
    load(tmp_path, source, {"x": (2, 8)})
    assert load(tmp_path, source)[0] == (2, 8)


def test_given_shapes_and_values_are_forgotten_for_one_model(tmp_path: Path) -> None:
    source, other = open_model(tmp_path), source_of(saved(tmp_path, of_a_detector(), "other"))
    memory = ShapeMemory(tmp_path)
    memory.remember(source, {"x": (2, 8)}, {"x": (1,)})
    memory.remember(other, {"input": (1, 512)})
    assert memory.forget(source) and not memory.forget(source)
    assert not memory.recall_shapes(source) and not memory.recall_values(source)
    assert memory.recall_shapes(other) == {"input": (1, 512)}


# Values of inputs: as users write them, as they are checked, remembered, and what they change.

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


# Shapes and values of inputs in the metadata of ONNX files.

INPUTS = {
    "input0": GraphInput("x", TensorType((4, 8))),
    "input1": GraphInput("rate", TensorType((1,), "int64"), (16000,)),
}


def stated(text: str) -> ModelProto:
    made = model([make_node("Relu", ["x"], ["y"])], {"x": ("batch", "length")}, ["y"])
    made.metadata_props.add(key=KEY, value=text)
    return made


def test_what_is_written_is_read() -> None:
    found = stated_inputs({KEY: stating(INPUTS)})
    assert found.shapes == {"input0": (4, 8), "input1": (1,)}
    assert found.values == {"input1": (16000,)}
    assert stated_inputs({"author": "ada"}) == ({}, {})


def test_a_file_may_state_the_sizes_of_its_open_axes(tmp_path: Path) -> None:
    graph = loaded(tmp_path, stated('{"x": {"shape": [4, 8]}}'))
    assert graph.inputs[0].type.shape == (4, 8)
    assert graph.batch_size == 4


def test_a_given_shape_counts_more_than_a_stated_one(tmp_path: Path) -> None:
    graph = loaded(tmp_path, stated('{"x": {"shape": [4, 8]}}'), {"x": (2, 3)})
    assert graph.inputs[0].type.shape == (2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "no JSON",
        '{"x": 1}',
        '{"x": {"shape": "4x8"}}',
        '{"x": {"shape": [4, true]}}',
        '{"x": {"shape": [4, -1]}}',
        '{"x": {"shape": [4, 1e9]}}',
        '{"x": {"value": []}}',
        '{"x": {"value": ["1"]}}',
        '{"x": {"value": [' + "1," * 2000 + "1]}}",
        "[" * 100_000,
        '{"x": {"shape": [' + "9" * 2_000_000 + "]}}",
    ],
)
def test_metadata_in_another_form_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableModelError, match="does not state shapes and values"):
        loaded(tmp_path, stated(text))


GIBIBYTE = 1 << 30


def batched(
    folder: Path, made: ModelProto, batch_size: int | None, given: Mapping[str, Shape] | None = None
) -> LayerGraph:
    loader = Loader(folder / "cache", TableFramework())
    return loader.load(source_of(saved(folder, made)), Level.WRITTEN, given, batch_size=batch_size)


def shapes_of(graph: LayerGraph) -> list[Shape | None]:
    return [it.type.shape for it in graph.inputs]


@pytest.mark.parametrize(
    ("inputs", "given", "found"),
    [
        ({"x": ("", 4), "y": ("rows", 1)}, {}, [(8, 4), (8, 1)]),
        # Axes named batch count at any place, and no others.
        (
            {"boxes": ("boxes", 4), "x": ("batch", 3), "state": (2, "batch", 5), "table": (9, 4)},
            {"boxes": (7, 4)},
            [(7, 4), (8, 3), (2, 8, 5), (9, 4)],
        ),
        # The name of an open first axis counts in other places too, unless it is a length.
        ({"x": ("N", 3), "state": (2, "N", 5)}, {"state": (2, 1, 5)}, [(8, 3), (2, 8, 5)]),
        ({"x": ("seq_len", "N", 3), "state": (2, "N", 5)}, {"x": (6, 1, 3)}, [(6, 8, 3), (2, 8, 5)]),
    ],
)
def test_a_batch_size_sets_the_batch_axis_of_each_input(
    inputs: dict[str, DeclaredAxes], given: dict[str, Shape], found: list[Shape], tmp_path: Path
) -> None:
    graph = batched(tmp_path, with_inputs(inputs), 8, given)
    assert (shapes_of(graph), graph.batch_size) == (found, 8)
    assert graph.layers[0].outputs[0].shape == found[0]


@pytest.mark.parametrize(
    ("inputs", "given", "said"),
    [
        # Points of one image, and no batch.
        ({"points": (1, "N", 3)}, {"points": (1, 9, 3)}, "fixes the first axis of input 'points' at 1"),
        ({"x": (1, 4)}, {}, "fixes the first axis of input 'x' at 1, so its batch size cannot be 8"),
        ({"x": ("length", 3)}, {"x": (6, 3)}, "has no input with a batch axis: keep the batch size of the file"),
        ({"x": ()}, {}, "has no input with a batch axis"),
    ],
)
def test_a_file_without_an_open_batch_axis_is_refused(
    inputs: dict[str, DeclaredAxes], given: dict[str, Shape], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=said):
        batched(tmp_path, with_inputs(inputs), 8, given)


def test_a_batch_size_replaces_that_of_given_and_remembered_shapes(tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, with_inputs({"x": ("batch", "length")})))
    loader = Loader(tmp_path / "cache", TableFramework(), memory=ShapeMemory(tmp_path))
    assert shapes_of(loader.load(source, given={"x": (1, 7)}, batch_size=3)) == [(3, 7)]
    assert shapes_of(loader.load(source, batch_size=5)) == [(5, 7)]
    assert shapes_of(loader.load(source)) == [(1, 7)]


def test_a_batch_that_contradicts_the_layers_names_the_batch_that_does_not(tmp_path: Path) -> None:
    nodes = [make_node("Reshape", ["x", "shape"], ["flat"]), make_node("Relu", ["flat"], ["out"])]
    made = model(nodes, {"x": ("batch", 4)}, ["out"], [integers("shape", (1, 4))])
    assert batched(tmp_path, made, 1).layers
    with pytest.raises(InconsistentModelError, match="can be read at batch size 1: keep that batch size"):
        batched(tmp_path, made, 8)


def symbol_file(folder: Path) -> ModelSource:
    path = folder / "net-symbol.json"
    path.write_bytes(content(small_network()))
    return ModelSource("net", path, inputs={"data": (1, 3, 8, 8)})


def test_a_batch_size_sets_the_first_axis_of_a_symbol_file(tmp_path: Path) -> None:
    for level in Level:
        graph = Loader(tmp_path / "cache", TableFramework()).load(symbol_file(tmp_path), level, batch_size=4)
        assert (shapes_of(graph), graph.batch_size) == ([(4, 3, 8, 8)], 4)
        assert all(layer.outputs[0].shape is not None for layer in graph.layers)
        assert graph.layers[0].outputs[0].shape == (4, 8, 8, 8)


def test_a_batch_that_needs_more_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    framework = TableFramework()
    loader = Loader(tmp_path / "cache", framework, most_bytes=GIBIBYTE)
    loader.load(symbol_file(tmp_path))
    framework.asked.clear()
    with pytest.raises(ModelError, match=r"net at batch size 1,000,000 needs about [\d.]+ GiB of memory, and 1.0 GiB"):
        loader.load(symbol_file(tmp_path), Level.FUSED, batch_size=1_000_000)
    assert framework.asked == []
    assert loader.load(symbol_file(tmp_path), batch_size=16).batch_size == 16


def test_the_forecast_counts_weights_once_and_tensors_that_exist_at_once(tmp_path: Path) -> None:
    # Two chained layers: the input and two tensors never exist together.
    nodes = [make_node("Relu", ["x"], ["a"]), make_node("Relu", ["a"], ["b"]), make_node("Relu", ["b"], ["out"])]
    graph = batched(tmp_path, model(nodes, {"x": ("batch", 100)}, ["out"]), 2)
    assert forecast_bytes(graph, 2) == 2 * (2 * 100 * 4)
    assert forecast_bytes(graph, 20) == 10 * forecast_bytes(graph, 2)
    refuse_too_large_batch(graph, 20, forecast_bytes(graph, 20))
    with pytest.raises(ModelError, match="give a smaller --batch"):
        refuse_too_large_batch(graph, 20, forecast_bytes(graph, 20) - 1)


# Shapes that are suggested for inputs whose sizes a file leaves open.

LSTM_WEIGHTS = [floats("w", (2, 32, 3)), floats("r", (2, 32, 8)), integers("zero", [0])]


def lstm(data: str, state: str, layout: int = 0) -> NodeProto:
    return make_node("LSTM", [data, "w", "r", "", "", state, state], ["y"], hidden_size=8, layout=layout)


def implied(
    nodes: Sequence[NodeProto], weights: Sequence[TensorProto], inputs: Mapping[str, Sequence[int | None] | None]
) -> dict[str, Axes | None]:
    made = model(nodes, {name: axes or () for name, axes in inputs.items()}, [nodes[-1].output[0]], weights)
    for declared in made.graph.input:
        if inputs[declared.name] is None:
            declared.type.tensor_type.ClearField("shape")
    return implied_axes(parse_onnx(made.SerializeToString(), "net"))


def test_a_recurrent_layer_tells_the_sizes_of_its_state() -> None:
    inputs = {"x": [None, None, None], "state": [None, None, None]}
    axes = {"x": ["", "batch", 3], "state": [2, "batch", 8]}
    assert implied([lstm("x", "state")], LSTM_WEIGHTS, inputs) == axes
    assert implied([lstm("x", "state")], LSTM_WEIGHTS, {"x": None, "state": None}) == axes
    found = implied([lstm("x", "state", layout=1)], LSTM_WEIGHTS, inputs)
    assert found == {"x": ["batch", "", 3], "state": ["batch", 2, 8]}


@pytest.mark.parametrize(
    ("before", "declared", "axes"),
    [
        ([make_node("Transpose", ["s"], ["state"], perm=[1, 0, 2])], [None] * 3, ["batch", 2, 8]),
        ([make_node("Gather", ["s", "first"], ["state"])], [4, None, None, None], [4, 2, "batch", 8]),
        ([make_node("Unsqueeze", ["s", "zero"], ["state"])], [None, None], ["batch", 8]),
        ([make_node("Squeeze", ["s", "zero"], ["state"])], [1, None, None, None], [1, 2, "batch", 8]),
        ([make_node("Split", ["s"], ["state", "other"], axis=2)], [2, None, 16], [2, "batch", 16]),
        ([make_node("Slice", ["s", "zero", "zero", "zero"], ["state"])], [None] * 3, ["", "batch", 8]),
        ([make_node("Cast", ["s"], ["state"], to=TensorProto.FLOAT)], [None] * 3, [2, "batch", 8]),
    ],
)
def test_sizes_are_followed_through_operators_that_move_axes(
    before: Sequence[NodeProto], declared: Sequence[int | None], axes: Axes
) -> None:
    first = floats("first", ())
    found = implied([*before, lstm("x", "state")], [*LSTM_WEIGHTS, first], {"x": [5, 1, 3], "s": declared})
    assert found["s"] == axes


@pytest.mark.parametrize(
    ("node", "weight", "declared", "axes"),
    [
        (make_node("Conv", ["x", "v"], ["y"], group=2), (8, 3, 5), None, ["batch", 6, ""]),
        (make_node("ConvTranspose", ["x", "v"], ["y"]), (8, 3, 5, 5), [None] * 4, ["batch", 8, "", ""]),
        (make_node("Gemm", ["x", "v"], ["y"], transB=1), (8, 3), None, ["batch", 3]),
        (make_node("MatMul", ["x", "v"], ["y"]), (8, 3), [None] * 3, ["", "", 8]),
        (make_node("Add", ["x", "v"], ["y"]), (1, 7, 3), [None] * 4, ["", "", 7, 3]),
        (make_node("MatMul", ["x", "v"], ["y"]), (8, 3), None, None),
    ],
)
def test_weights_tell_the_sizes_of_what_they_are_applied_to(
    node: NodeProto, weight: Sequence[int], declared: Sequence[int | None] | None, axes: Axes | None
) -> None:
    assert implied([node], [floats("v", weight)], {"x": declared}) == {"x": axes}


def test_without_a_runtime_the_suggestions_come_from_the_graph(tmp_path: Path) -> None:
    with pytest.raises(MissingShapeError) as refusal:
        loaded(tmp_path, of_a_detector())
    assert refusal.value.examples == {"input": (1, 128), "state": (2, 1, 128)}
    assert not refusal.value.tried


def test_candidates_differ_and_keep_the_sizes_that_are_known() -> None:
    asked: dict[str, Axes | None] = {"x": ["", "", 80], "image": ["batch", 3, "", ""]}
    found = list(candidates(asked))
    assert found[:3] == [
        {"x": (1, 128, 80), "image": (1, 3, 224, 224)},
        {"x": (1, 1, 80), "image": (1, 3, 224, 224)},
        {"x": (1, 256, 80), "image": (1, 3, 256, 256)},
    ]
    assert len({repr(it) for it in found}) == len(found)
    assert {len(it["x"]) for it in candidates({"x": None})} == {0, 1, 2, 3, 4}
