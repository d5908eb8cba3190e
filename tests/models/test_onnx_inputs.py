"""Inputs of ONNX models: their open axes, values, batch sizes, and what is suggested and remembered for them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import make_node, make_tensor_sequence_value_info, make_tensor_value_info

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import file_program, model_program
from dlbricks_tui.models.errors import InconsistentModelError, MissingShapeError, ModelError, UnreadableModelError
from dlbricks_tui.models.graph import GraphInput, LayerGraph, Level, Numbers, Shape, TensorType
from dlbricks_tui.models.input_shapes import (
    MOST_AXES,
    SHAPES_FILE,
    VALUES_FILE,
    ShapeMemory,
    parse_value_option,
    value_advice,
)
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.models.loading import Loader, forecast_bytes, refuse_too_large_batch
from dlbricks_tui.models.onnx_file import parse_onnx
from dlbricks_tui.models.onnx_inputs import KEY, Axes, candidates, implied_axes, stated_inputs, stating
from dlbricks_tui.wording.answers import assumption, input_text
from tests.models.onnx_models import floats, integers, loaded, model, of_a_detector, saved, written
from tests.models.symbols import content, refusal, small_network
from tests.models.table_framework import TableFramework

Declared = Mapping[str, Sequence[int | str | None]]
# As optimum exports a decoder with its cache.
DECODER: Declared = {
    "input_ids": ("batch_size", "sequence_length"),
    "past.0": ("batch_size", 4, "past_sequence_length", 32),
    "past.1": ("batch_size", 4, "past_sequence_length", 32),
    "attention_mask": ("batch_size", "past_sequence_length + sequence_length"),
}


def with_inputs(inputs: Declared) -> ModelProto:
    """Return a model that passes each input on."""
    nodes = [make_node("Relu", [name], [f"{name}_out"]) for name in inputs]
    return model(nodes, inputs, [f"{name}_out" for name in inputs])


def shapes_of(graph: LayerGraph) -> list[Shape | None]:
    return [it.type.shape for it in graph.inputs]


def operators(graph: LayerGraph) -> list[str]:
    return [layer.op for layer in graph.layers]


def examples(folder: Path, made: ModelProto) -> dict[str, Shape]:
    with pytest.raises(MissingShapeError) as refused:
        loaded(folder, made)
    assert not refused.value.tried
    return refused.value.examples


@pytest.mark.parametrize(
    ("inputs", "given", "found"),
    [
        ({"state": (2, "batch", 128), "x": (8, "Batch_Size")}, {}, [(2, 1, 128), (8, 1)]),
        ({"x": ("batch", "length"), "state": (2, "batch", 128)}, {"x": (4, 7)}, [(4, 7), (2, 4, 128)]),
        # An axis may be the sum of others and of numbers.
        ({"x": (1, "n"), "y": (1, "n + 1")}, {"x": (1, 5)}, [(1, 5), (1, 6)]),
        (DECODER, {"input_ids": (1, 3), "past.0": (1, 4, 64, 32)}, [(1, 3), (1, 4, 64, 32), (1, 4, 64, 32), (1, 67)]),
    ],
)
def test_open_axes_follow_from_those_of_their_names(
    inputs: Declared, given: dict[str, Shape], found: list[Shape], tmp_path: Path
) -> None:
    assert shapes_of(loaded(tmp_path, with_inputs(inputs), given)) == found


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
    inputs: Declared, asked: dict[str, Shape], tmp_path: Path
) -> None:
    assert examples(tmp_path, with_inputs(inputs)) == asked
    assert loaded(tmp_path, with_inputs(inputs), asked).layers


@pytest.mark.parametrize(
    ("axes", "given", "said"),
    [
        *(
            ("n" * len(shape), {"x": shape}, "net: input 'x' of shape .* has more elements than ONNX Runtime can hold")
            for shape in ((2**63,), (2**20, 2**20), (10**40, 1))
        ),
        ("n" * 33, {"x": (1,) * 33}, "net: input 'x' has 33 axes; ONNX Runtime can hold at most 32$"),
        ("nnnn", {"x": (1, 2)}, "net: input 'x' has 4 axes; the given shape 1x2 does not"),
        ("n", {"z": (1, 2)}, "net has no input 'z'; its inputs are: x$"),
    ],
)
def test_a_shape_that_no_input_can_have_is_refused(
    axes: str, given: dict[str, Shape], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=f"^{said}"):
        loaded(tmp_path, with_inputs({"x": list(axes)}), given)
    assert len(examples(tmp_path, with_inputs({"x": ("n",) * (MOST_AXES + 1)}))["x"]) == MOST_AXES


# Input shapes that are given once and remembered.


def open_model(op: str = "Relu") -> ModelProto:
    """Return a model that does not declare the size of its input."""
    return model([make_node(op, ["x"], ["y"])], {"x": [None, None]}, ["y"])


def load(data: Path, made: ModelProto, given: Mapping[str, Shape] | None = None) -> tuple[Shape | None, list[str]]:
    """Return the shape of its input, and the models whose shapes were remembered."""
    told: list[str] = []
    memory = ShapeMemory(data, lambda source, shapes: told.append(f"{source.name} {dict(shapes)}"))
    # It is reported once, however often it is read.
    first, again = (shapes_of(loaded(data, made, given, memory=memory)) for _ in range(2))
    assert first == again
    return first[0], told


def test_a_given_shape_is_remembered_by_content_and_its_use_is_reported(tmp_path: Path) -> None:
    assert examples(tmp_path, open_model()) == {"x": (1, 128)}
    for shape in ((2, 8), (3, 9)):
        assert load(tmp_path, open_model(), {"x": shape}) == (shape, [])
        assert load(tmp_path, open_model()) == (shape, [f"net {{'x': {shape}}}"])
    with pytest.raises(MissingShapeError):
        load(tmp_path, open_model("Tanh"))
    # It never replaces one in the file.
    load(tmp_path, with_inputs({"x": (1, 8)}), {"x": (4, 8)})
    assert load(tmp_path, with_inputs({"x": (1, 8)})) == ((1, 8), [])


def test_given_shapes_and_values_are_forgotten_for_one_model(tmp_path: Path) -> None:
    source, other = (source_of(saved(tmp_path, made, op)) for op, made in (("a", open_model()), ("b", of_a_detector())))
    memory = ShapeMemory(tmp_path)
    memory.remember(source, {"x": (2, 8)}, {"x": (1,)})
    memory.remember(other, {"input": (1, 512)})
    assert memory.forget(source) and not memory.forget(source)
    assert not memory.recall_shapes(source) and not memory.recall_values(source)
    assert memory.recall_shapes(other) == {"input": (1, 512)}


DAMAGED = ("", "[]", '{"a": 1}', '{"a": {"x": "many"}}', '{"a": {"x": [0]}}', '{"a": {"x": []}}', "[" * 100_000)


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_files_of_shapes_and_values_are_replaced(text: str, tmp_path: Path) -> None:
    for name in (SHAPES_FILE, VALUES_FILE):
        (tmp_path / name).write_text(text)
    with pytest.raises(MissingShapeError):
        load(tmp_path, open_model())
    load(tmp_path, open_model(), {"x": (2, 8)})
    assert load(tmp_path, open_model())[0] == (2, 8)
    loaded(tmp_path, with_rate(), values={"rate": (8_000,)}, memory=ShapeMemory(tmp_path))
    assert operators(loaded(tmp_path, with_rate(), memory=ShapeMemory(tmp_path))) == ["relu"]


# Values of inputs: as users write them, as they are checked, remembered, and what they change.


def with_rate(shape: str = "") -> ModelProto:
    """Return a model that computes Tanh at a rate of 16,000, and Relu at any other."""
    branches = (
        "else_branch = no () => (float[] n) { n = Relu (x) }, then_branch = yes () => (float[] t) { t = Tanh (x) }"
    )
    return written(
        f"""test (float[1,4] x, int64{shape} rate) => (y) <int64 usual = {{16000}}> {{
            is_usual = Equal (rate, usual)
            y = If <{branches}> (is_usual)
        }}"""
    )


def test_values_on_the_command_line_are_read_or_refused() -> None:
    told: dict[str, tuple[str, Numbers]] = {
        "size=640, 480": ("size", (640, 480)),
        "a=b=-1": ("a=b", (-1,)),
        "scale=0.5": ("scale", (0.5,)),
        "scale=1e3": ("scale", (1000,)),
        "words=yes,007x": ("words", ("yes", "007x")),
        'words="007"': ("words", ("007",)),
    }
    assert {text: parse_value_option(text) for text in told} == told
    for text in ("", "sr", "sr=", "=1", "sr=,", f"sr={'9' * 50_000}"):
        with pytest.raises(ModelError, match=r"is not NAME=16000, NAME=1,2,3 or NAME=text$"):
            parse_value_option(text)
    with pytest.raises(ModelError, match=r"has 1,025 values; the limit is 1,024$"):
        parse_value_option(f"ids={','.join('1' * 1025)}")


WHOLE = "net: input 'rate' takes whole numbers from -9223372036854775808 to 9223372036854775807;"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sr": (1,)}, "net has no input 'sr'; its inputs are: x, rate, words"),
        ({"rate": (1, 2)}, "net: input 'rate' is a single number; its --value has 2 numbers, give 1$"),
        ({"x": (1, 2)}, "net: input 'x' is 1x4; its --value has 2 numbers, give 1 or 4"),
        *(({"rate": value}, WHOLE) for value in ((0.5,), (2**63,), ("fast",))),
        *(({"x": value}, "net: input 'x' is float32, which cannot hold the given") for value in ((1e39,), ("fast",))),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_one_line_and_not_remembered(
    values: Mapping[str, Numbers], message: str, tmp_path: Path
) -> None:
    made = with_rate()
    made.graph.input.append(make_tensor_value_info("words", TensorProto.STRING, (2,)))
    assert loaded(tmp_path, made, values={"words": ("yes", "no")}).inputs[-1].value == ("yes", "no")
    with pytest.raises(ModelError, match=f"^{message}"):
        loaded(tmp_path, made, values=values, memory=ShapeMemory(tmp_path))
    assert not (tmp_path / VALUES_FILE).exists()


def test_an_input_that_is_no_tensor_is_refused_in_one_line(tmp_path: Path) -> None:
    made = with_rate()
    made.graph.input.append(make_tensor_sequence_value_info("words", TensorProto.FLOAT, (2,)))
    said = refusal(lambda: loaded(tmp_path, made))
    assert said.startswith("net: input 'words' is a sequence, and values are made up for tensors")


def test_sizes_that_nothing_says_are_told(tmp_path: Path) -> None:
    made = model([make_node("Add", ["x", "y"], ["z"])], {"x": ("num_atoms", 3), "y": ("batch", 3)}, ["z"])
    inputs = loaded(tmp_path, made).inputs
    assert [input_text(it) for it in inputs] == ["x (num_atoms = 1 assumed)", "y"]
    assert assumption(inputs) == "assumed: num_atoms = 1 in input x; --input x=SIZE,3 gives another"
    assert not assumption(loaded(tmp_path, made, {"x": (5, 3)}).inputs)


def test_a_value_chooses_the_branch_whose_nodes_become_layers_and_is_fed_to_whole_models(tmp_path: Path) -> None:
    for rate, op in ((16_000, "tanh"), (8_000, "relu")):
        assert operators(loaded(tmp_path, with_rate(), values={"rate": (rate,)})) == [op]
    # Without a value, an input has the number that the model compares it with.
    graph = loaded(tmp_path, with_rate("[1]"))
    assert (operators(graph), graph.inputs[1].value) == (["tanh"], (16_000,))
    graph = loaded(tmp_path, with_rate(), values={"rate": (8_000,), "x": (1, 2, 3, 4)})
    assert file_program(graph, tmp_path / "net.onnx").network.values == {"rate": (8_000,), "x": (1, 2, 3, 4)}
    network = model_program(graph).network
    assert [network.values.get(name) for name in network.inputs] == [(1, 2, 3, 4), (8_000,)]


def test_a_value_changes_no_brick_of_an_equal_layer(tmp_path: Path) -> None:
    graphs = [loaded(tmp_path, with_rate(), values={"x": value}) for value in ((1,), (2,), (1, 2, 3, 4))]
    assert len({brick_of(graph, (0,)).key for graph in graphs}) == 1


def test_a_given_value_is_remembered_and_its_use_is_reported_once(tmp_path: Path) -> None:
    told: list[str] = []

    def ops(values: Mapping[str, Numbers] | None = None) -> list[str]:
        memory = ShapeMemory(tmp_path, lambda source, given: told.append(f"{source.name} {dict(given)}"))
        first, second = (operators(loaded(tmp_path, with_rate(), values=values, memory=memory)) for _ in range(2))
        assert first == second
        return first

    for rate, op in ((8_000, "relu"), (16_000, "tanh")):
        assert (ops({"rate": (rate,)}), told) == ([op], [])
        assert (ops(), told) == ([op], [f"net {{'rate': ({rate},)}}"])
        told.clear()


# Shapes and values of inputs in the metadata of ONNX files.


def stated(text: str) -> ModelProto:
    made = with_inputs({"x": ("batch", "length")})
    made.metadata_props.add(key=KEY, value=text)
    return made


def test_a_file_may_state_the_sizes_of_its_open_axes_and_given_ones_count_more(tmp_path: Path) -> None:
    inputs = {"a": GraphInput("x", TensorType((4, 8))), "b": GraphInput("rate", TensorType((1,), "int64"), (16000,))}
    assert stated_inputs({KEY: stating(inputs)}) == ({"a": (4, 8), "b": (1,)}, {"b": (16000,)})
    made = stated('{"x": {"shape": [4, 8]}}')
    graph = loaded(tmp_path, made)
    assert (shapes_of(graph), graph.batch_size) == ([(4, 8)], 4)
    assert shapes_of(loaded(tmp_path, made, {"x": (2, 3)})) == [(2, 3)]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "no JSON", '{"x": 1}', "[" * 100_000, '{"x": {"shape": "4x8"}}', '{"x": {"value": "4"}}'),
        *(f'{{"x": {{"shape": [{it}]}}}}' for it in ("4, true", "4, -1", "4, 1e9", "9" * 2_000_000)),
        *(f'{{"x": {{"value": [{it}]}}}}' for it in ("", '"1"', f"{'1,' * 2000}1")),
    ],
    ids=range(14),
)
def test_metadata_in_another_form_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableModelError, match="does not state shapes and values"):
        loaded(tmp_path, stated(text))


# Batch sizes.


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
        # Without an open batch axis: points of one image, a fixed one, a length, a single number.
        ({"points": (1, "N", 3)}, {"points": (1, 9, 3)}, "fixes the first axis of input 'points' at 1"),
        ({"x": (1, 4)}, {}, "fixes the first axis of input 'x' at 1, so its batch size cannot be 8"),
        ({"x": ("length", 3)}, {"x": (6, 3)}, "has no input with a batch axis: keep the batch size of the file"),
        ({"x": ()}, {}, "has no input with a batch axis"),
    ],
)
def test_a_batch_size_sets_the_batch_axis_of_each_input(
    inputs: Declared, given: dict[str, Shape], found: list[Shape] | str, tmp_path: Path
) -> None:
    if isinstance(found, str):
        with pytest.raises(ModelError, match=found):
            loaded(tmp_path, with_inputs(inputs), given, batch_size=8)
    else:
        graph = loaded(tmp_path, with_inputs(inputs), given, batch_size=8)
        assert (shapes_of(graph), graph.batch_size) == (found, 8)
        assert graph.layers[0].outputs[0].shape == found[0]


def test_a_batch_size_replaces_that_of_given_and_remembered_shapes(tmp_path: Path) -> None:
    made, memory = with_inputs({"x": ("batch", "length")}), ShapeMemory(tmp_path)
    assert shapes_of(loaded(tmp_path, made, {"x": (1, 7)}, batch_size=3, memory=memory)) == [(3, 7)]
    assert shapes_of(loaded(tmp_path, made, batch_size=5, memory=memory)) == [(5, 7)]
    assert shapes_of(loaded(tmp_path, made, memory=memory)) == [(1, 7)]


def test_a_batch_that_contradicts_the_layers_names_the_batch_that_does_not(tmp_path: Path) -> None:
    made = written(
        "t (float[batch,4] x) => (y) <int64[2] shape = {1, 4}> { flat = Reshape (x, shape)  y = Relu (flat) }"
    )
    assert loaded(tmp_path, made, batch_size=1).layers
    with pytest.raises(InconsistentModelError, match="can be read at batch size 1: keep that batch size"):
        loaded(tmp_path, made, batch_size=8)


def test_a_symbol_file_takes_a_batch_size_within_the_memory_and_no_value(tmp_path: Path) -> None:
    path, framework = tmp_path / "net-symbol.json", TableFramework()
    path.write_bytes(content(small_network()))
    source = ModelSource("net", path, inputs={"data": (1, 3, 8, 8)})
    loader = Loader(tmp_path / "cache", framework, most_bytes=1 << 30)
    for level in Level:
        graph = loader.load(source, level, batch_size=4)
        assert (shapes_of(graph), graph.batch_size) == ([(4, 3, 8, 8)], 4)
        assert graph.layers[0].outputs[0].shape == (4, 8, 8, 8)
    framework.asked.clear()
    with pytest.raises(ModelError, match=r"net at batch size 1,000,000 needs about [\d.]+ GiB of memory, and 1.0 GiB"):
        loader.load(source, Level.FUSED, batch_size=1_000_000)
    assert framework.asked == []
    said = refusal(lambda: loader.load(source, values={"data": (1,)}))
    assert said == "net: only the inputs of ONNX models take a --value; leave it out"


def test_the_forecast_counts_weights_once_and_tensors_that_exist_at_once(tmp_path: Path) -> None:
    # Chained layers: the input and two tensors never exist together.
    made = written("chain (float[batch,100] x) => (y) { a = Relu (x)  b = Relu (a)  y = Relu (b) }")
    graph = loaded(tmp_path, made, batch_size=2)
    assert forecast_bytes(graph, 2) == 2 * (2 * 100 * 4)
    assert forecast_bytes(graph, 20) == 10 * forecast_bytes(graph, 2)
    refuse_too_large_batch(graph, 20, forecast_bytes(graph, 20))
    with pytest.raises(ModelError, match="give a smaller --batch"):
        refuse_too_large_batch(graph, 20, forecast_bytes(graph, 20) - 1)


# Shapes that are suggested for inputs whose sizes a file leaves open.

LSTM_WEIGHTS = [floats("w", (2, 32, 3)), floats("r", (2, 32, 8)), integers("zero", [0])]
OPEN = [None] * 3


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
    axes = {"x": ["", "batch", 3], "state": [2, "batch", 8]}
    assert implied([lstm("x", "state")], LSTM_WEIGHTS, {"x": OPEN, "state": OPEN}) == axes
    assert implied([lstm("x", "state")], LSTM_WEIGHTS, {"x": None, "state": None}) == axes
    found = implied([lstm("x", "state", layout=1)], LSTM_WEIGHTS, {"x": OPEN, "state": OPEN})
    assert found == {"x": ["batch", "", 3], "state": ["batch", 2, 8]}


@pytest.mark.parametrize(
    ("before", "declared", "axes"),
    [
        (make_node("Transpose", ["s"], ["state"], perm=[1, 0, 2]), OPEN, ["batch", 2, 8]),
        (make_node("Gather", ["s", "first"], ["state"]), [4, *OPEN], [4, 2, "batch", 8]),
        (make_node("Unsqueeze", ["s", "zero"], ["state"]), [None, None], ["batch", 8]),
        (make_node("Squeeze", ["s", "zero"], ["state"]), [1, *OPEN], [1, 2, "batch", 8]),
        (make_node("Split", ["s"], ["state", "other"], axis=2), [2, None, 16], [2, "batch", 16]),
        (make_node("Slice", ["s", "zero", "zero", "zero"], ["state"]), OPEN, ["", "batch", 8]),
        (make_node("Cast", ["s"], ["state"], to=TensorProto.FLOAT), OPEN, [2, "batch", 8]),
    ],
    ids=lambda it: it.op_type if isinstance(it, NodeProto) else "",
)
def test_sizes_are_followed_through_operators_that_move_axes(
    before: NodeProto, declared: Sequence[int | None], axes: Axes
) -> None:
    weights = [*LSTM_WEIGHTS, floats("first", ())]
    assert implied([before, lstm("x", "state")], weights, {"x": [5, 1, 3], "s": declared})["s"] == axes


@pytest.mark.parametrize(
    ("node", "weight", "declared", "axes"),
    [
        (make_node("Conv", ["x", "v"], ["y"], group=2), (8, 3, 5), None, ["batch", 6, ""]),
        (make_node("ConvTranspose", ["x", "v"], ["y"]), (8, 3, 5, 5), [None] * 4, ["batch", 8, "", ""]),
        (make_node("Gemm", ["x", "v"], ["y"], transB=1), (8, 3), None, ["batch", 3]),
        (make_node("MatMul", ["x", "v"], ["y"]), (8, 3), OPEN, ["", "", 8]),
        (make_node("Add", ["x", "v"], ["y"]), (1, 7, 3), [None] * 4, ["", "", 7, 3]),
        (make_node("MatMul", ["x", "v"], ["y"]), (8, 3), None, None),
    ],
)
def test_weights_tell_the_sizes_of_what_they_are_applied_to(
    node: NodeProto, weight: Sequence[int], declared: Sequence[int | None] | None, axes: Axes | None
) -> None:
    assert implied([node], [floats("v", weight)], {"x": declared}) == {"x": axes}


def test_an_attribute_of_another_kind_tells_no_sizes() -> None:
    turned = make_node("Transpose", ["x"], ["y"], perm=1)
    assert implied([turned], [], {"x": OPEN}) == {"x": ["", "", ""]}


def test_candidates_differ_and_keep_the_sizes_that_are_known(tmp_path: Path) -> None:
    assert examples(tmp_path, of_a_detector()) == {"input": (1, 128), "state": (2, 1, 128)}
    assert examples(tmp_path, with_inputs({"image": (1, "height", "width", 3)})) == {"image": (1, 224, 224, 3)}
    found = list(candidates({"x": ["", "", 80], "image": ["batch", 3, "", ""]}))
    assert found[:3] == [
        {"x": (1, length, 80), "image": (1, 3, side, side)} for length, side in ((128, 224), (1, 224), (256, 256))
    ]
    assert len({repr(it) for it in found}) == len(found)
    assert {len(it["x"]) for it in candidates({"x": None})} == {0, 1, 2, 3, 4}


def test_advice_to_give_values_names_settings_and_after_a_division_by_zero_all_whole_numbers() -> None:
    inputs = [
        GraphInput(name, TensorType(shape, "int64")) for name, shape in (("n", (2,)), ("ids", (9,)), ("y", (4, 4)))
    ]
    assert value_advice(inputs, "bad shape").endswith(" n must have a certain value, give it: --value n=NUMBER,NUMBER")
    assert value_advice(inputs, "Integer division by zero").endswith(
        "NUMBER,NUMBER --value ids=NUMBER --value y=NUMBER"
    )
