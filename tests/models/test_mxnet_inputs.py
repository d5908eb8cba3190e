from collections.abc import Mapping, Sequence

import pytest

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.input_shapes import missing_shapes, parse_input
from dlbricks_tui.models.mxnet.layer_graph import Role, input_shapes, variable_roles
from dlbricks_tui.models.mxnet.symbol_file import parse_symbol
from tests.models.symbols import Node, content, node, small_network, variable

NOTHING: Mapping[str, Shape] = {}


def shapes(
    nodes: list[Node], given: Mapping[str, Shape] = NOTHING, known: Mapping[str, Shape] = NOTHING, name: str = "net"
) -> dict[str, Shape]:
    file = parse_symbol(content(nodes), name)
    roles = variable_roles(file, {*given, *known})
    return {file.nodes[number].name: shape for number, shape in input_shapes(file, roles, given, known, name).items()}


def with_declared(text: str) -> list[Node]:
    return [variable("data", __shape__=text), *small_network()[1:]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data=1,3,224,224", ("data", (1, 3, 224, 224))),
        ("data=(1, 3)", ("data", (1, 3))),
        ("data=7", ("data", (7,))),
        ("sr=", ("sr", ())),
        ("sr=()", ("sr", ())),
        ("a=b=1,2", ("a=b", (1, 2))),
    ],
)
def test_a_shape_on_the_command_line_is_read(text: str, expected: tuple[str, Shape]) -> None:
    assert parse_input(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "data", "=", "=1,3", "1,3,224", "data=1,x", "data=1,0", "data=1,-3", "data=1.5", "data=None", "d=1,,2"],
)
def test_an_invalid_shape_on_the_command_line_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match="is not NAME=1,3,224,224"):
        parse_input(text)


@pytest.mark.parametrize("batch", ["0", "-1"])
def test_an_open_batch_axis_becomes_1(batch: str) -> None:
    assert shapes(with_declared(f"({batch}, 3, 8, 8)")) == {"data": (1, 3, 8, 8)}


@pytest.mark.parametrize("text", ["", "None", "()", "(1, 3, 0, 0)", "(1, None, 8)", "large", "(1, 2.5)", "(1e99,)"])
def test_an_incomplete_shape_counts_as_unknown(text: str) -> None:
    assert shapes(with_declared(text)) == {}


def test_the_user_overrides_the_manifest_which_overrides_the_file() -> None:
    nodes = with_declared("(1, 3, 8, 8)")
    assert shapes(nodes, known={"data": (1, 3, 16, 16)}) == {"data": (1, 3, 16, 16)}
    assert shapes(nodes, {"data": (1, 3, 32, 32)}, {"data": (1, 3, 16, 16)}) == {"data": (1, 3, 32, 32)}


def test_an_unknown_input_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ModelError, match=r"^net has no input 'image'; its inputs are: data$"):
        shapes(small_network(), {"image": (1, 3, 8, 8)})


@pytest.mark.parametrize("shape", [(10**12,), (2**16, 2**16), (1, 2**31), (99999999999999999999,)])
def test_more_elements_than_mxnet_can_hold_are_refused(shape: Shape) -> None:
    with pytest.raises(ModelError, match="has more elements than MXNet can hold"):
        shapes(small_network(), {"data": shape})
    with pytest.raises(ModelError, match="has more elements than MXNet can hold"):
        shapes(with_declared(str(shape)))


def test_variables_of_one_name_have_one_shape() -> None:
    nodes = [variable("x"), variable("x"), node("elemwise_add", "s", 0, 1)]
    file = parse_symbol(content(nodes), "net")
    assert input_shapes(file, variable_roles(file), {"x": (1, 2)}, {}, "net") == {0: (1, 2), 1: (1, 2)}


def test_more_axes_than_mxnet_can_hold_are_refused() -> None:
    with pytest.raises(ModelError, match=r"^net: input 'data' has 5,000 axes; MXNet can hold at most 32$"):
        shapes(small_network(), {"data": (1,) * 5_000})


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("resnet-50", 224),
        ("ResNeXt101", 224),
        ("vgg16_bn", 224),
        ("densenet121", 224),
        # Not the networks whose names they end with.
        ("mobilenetv2_1.0", 224),
        ("GoogLeNet", 224),
        ("inceptionv3", 299),
        ("inception-resnet-v2", 299),
        ("inception_bn", 224),
        ("cifar_resnet20", 32),
        ("ssd_300_vgg16", 300),
        ("ssd512_resnet50", 512),
        ("yolo3_darknet53", 416),
        ("nin", 224),
    ],
)
def test_a_network_known_by_its_name_has_its_usual_shape(name: str, side: int) -> None:
    assert shapes(small_network(), name=name) == {"data": (1, 3, side, side)}


@pytest.mark.parametrize("name", ["lenet", "LeNet-5", "mnist_cnn"])
def test_networks_for_digits_get_small_grey_images(name: str) -> None:
    assert shapes(small_network(), name=name) == {"data": (1, 1, 28, 28)}


@pytest.mark.parametrize("name", ["net", "training", "my_net"])
def test_shapes_of_other_networks_are_not_guessed(name: str) -> None:
    assert shapes(small_network(), name=name) == {}


def test_only_the_shape_of_an_input_called_data_is_guessed() -> None:
    one_axis = [
        it | {"attrs": it["attrs"] | {"kernel": "(3,)", "pad": "(1,)", "stride": "(1,)"}}
        if it["name"] == "conv0"
        else it
        for it in small_network()
    ]
    words = [variable("data"), node("Embedding", "e", 0)]
    two = [variable("data"), variable("more"), node("Concat", "c", 0, 1), node("Convolution", "d", 2, kernel="(3, 3)")]
    assert shapes(one_axis, name="resnet") == shapes(words, name="resnet") == shapes(two, name="resnet") == {}
    assert shapes(small_network(data="x"), name="resnet") == {}


def test_the_error_names_all_inputs_without_a_shape() -> None:
    assert str(missing_shapes({"a": None, "b": None}, "net")) == "net does not say the shape of: a, b"
    many = str(missing_shapes({f"input{number}": None for number in range(100)}, "net"))
    assert "input7 and 92 more" in many


@pytest.mark.parametrize(
    ("axes", "said", "example"),
    [
        (None, "", (1, 3, 224, 224)),
        (["batch", 3, "", ""], " (batch, 3, ?, ?)", (1, 3, 224, 224)),
        (["", ""], " (?, ?)", (1, 128)),
        ([2, "", 128], " (2, ?, 128)", (2, 128, 128)),
        ((0, -1, 28, 28), " (?, ?, 28, 28)", (1, 3, 28, 28)),
    ],
)
def test_an_example_has_as_many_axes_as_the_file_says(
    axes: Sequence[int | str] | None, said: str, example: Shape
) -> None:
    missing = missing_shapes({"x": axes}, "net")
    assert str(missing) == f"net does not say the shape of: x{said}"
    assert missing.examples == {"x": example}


def test_a_single_number_is_no_input_of_mxnet() -> None:
    with pytest.raises(ModelError, match=r"^net: MXNet has no single numbers as inputs; give 'x' a shape of sizes$"):
        shapes(small_network(data="x"), {"x": ()})


def roles(nodes: list[Node], *named: str) -> dict[str, Role]:
    file = parse_symbol(content(nodes), "net")
    return {file.nodes[number].name: role for number, role in variable_roles(file, named).items()}


X = variable("x")
SUM = [X, variable("pixel_mean"), node("broadcast_sub", "s", 0, 1)]
ANCHORS = [node("relu", "r", 0), node("mul", "m", 2, 1)]
GRID = [X, variable("grid", __layer__="Grid"), node("broadcast_add", "s", 0, 1)]
OF_LAYER = [X, variable("grid", __layer__="s"), node("broadcast_add", "s", 0, 1, __layer__="s")]


@pytest.mark.parametrize(
    ("nodes", "named", "inputs"),
    [
        (small_network(), (), {"data"}),
        # The declaration of an operator overrides the user.
        (small_network(), ("conv0_weight",), {"data"}),
        (small_network(data="what is seen"), (), {"what is seen"}),
        ([X, variable("y"), node("Convolution", "c", 0, 1, kernel="(1, 1)", no_bias="1")], (), {"x"}),
        # The states of a recurrent layer are bound once.
        ([X, *map(variable, "phc"), node("RNN", "r", 0, 1, 2, 3, mode="lstm")], (), {"x"}),
        ([X, variable("g"), variable("b"), node("BatchNorm_v1", "bn", 0, 1, 2)], (), {"x"}),
        # An array named like a weight is one, unless the user calls it an input.
        (SUM, (), {"x"}),
        (SUM, ("pixel_mean",), {"x", "pixel_mean"}),
        # An array of known shape beside a computed tensor is a weight.
        ([X, variable("anchors", __shape__="(1, 4)"), *ANCHORS], (), {"x"}),
        ([X, variable("anchors"), *ANCHORS], (), {"x", "anchors"}),
        (GRID, ("grid",), {"x", "grid"}),
        (OF_LAYER, (), {"x"}),
    ],
)
def test_inputs_are_the_arrays_that_no_operator_declares_as_weights(
    nodes: list[Node], named: tuple[str, ...], inputs: set[str]
) -> None:
    found = roles(nodes, *named)
    assert {name for name, role in found.items() if role is Role.INPUT} == inputs
    assert {role for name, role in found.items() if name not in inputs} <= {Role.WEIGHT}


def test_an_array_with_a_layer_is_a_layer() -> None:
    assert roles(GRID)["grid"] is Role.CONSTANT
