"""The inputs of MXNet models: their shapes, given, known or usual, and how they are told from weights."""

from collections.abc import Mapping, Sequence

import pytest

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.input_shapes import missing_shapes, parse_input
from dlbricks_tui.models.mxnet_file import parse_symbol
from dlbricks_tui.models.mxnet_layers import Role, input_shapes, variable_roles
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


def test_shapes_on_the_command_line_are_read_or_refused() -> None:
    told: dict[str, tuple[str, Shape]] = {
        "data=1,3,224,224": ("data", (1, 3, 224, 224)),
        "data=(1, 3)": ("data", (1, 3)),
        "data=7": ("data", (7,)),
        "sr=": ("sr", ()),
        "sr=()": ("sr", ()),
        "a=b=1,2": ("a=b", (1, 2)),
    }
    assert {text: parse_input(text) for text in told} == told
    odd = ("data=1,x", "data=1,0", "data=1,-3", "data=1.5", "data=None", "d=1,,2")
    for text in ("", "data", "=", "=1,3", "1,3,224", *odd):
        with pytest.raises(ModelError, match="is not NAME=1,3,224,224"):
            parse_input(text)
    with pytest.raises(ModelError, match="of sizes from 1 on"):
        parse_input("past=1,4,0,8")


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
    # Variables of one name have one shape.
    assert shapes([variable("x"), variable("x"), node("elemwise_add", "s", 0, 1)], {"x": (1, 2)}) == {"x": (1, 2)}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"image": (1, 3, 8, 8)}, r"net has no input 'image'; its inputs are: data$"),
        *(
            ({"data": shape}, "net: input 'data' of shape [0-9x]+ has more elements than MXNet can hold")
            for shape in ((10**12,), (2**16, 2**16), (1, 2**31), (99999999999999999999,))
        ),
        ({"data": (1,) * 5_000}, r"net: input 'data' has 5,000 axes; MXNet can hold at most 32$"),
        ({"data": ()}, r"net: MXNet has no single numbers as inputs; give 'data' a shape of sizes$"),
    ],
)
def test_a_shape_that_no_input_can_have_is_refused(given: Mapping[str, Shape], said: str) -> None:
    with pytest.raises(ModelError, match=f"^{said}"):
        shapes(small_network(), given)
    if "elements" in said:
        with pytest.raises(ModelError, match=f"^{said}"):
            shapes(with_declared(str(given["data"])))


@pytest.mark.parametrize(
    ("names", "side"),
    [
        # Not the networks whose names some of them end with.
        ("resnet-50 ResNeXt101 vgg16_bn densenet121 mobilenetv2_1.0 GoogLeNet inception_bn nin", 224),
        ("inceptionv3 inception-resnet-v2", 299),
        ("cifar_resnet20", 32),
        ("ssd_300_vgg16", 300),
        ("ssd512_resnet50", 512),
        ("yolo3_darknet53", 416),
        ("lenet LeNet-5 mnist_cnn", 28),
        ("net training my_net", None),
    ],
)
def test_a_network_known_by_its_name_has_its_usual_shape(names: str, side: int | None) -> None:
    for name in names.split():
        # Networks for digits get grey images.
        usual = {"data": (1, 1 if side == 28 else 3, side, side)}
        assert shapes(small_network(), name=name) == (usual if side else {}), name


def test_only_the_shape_of_an_input_called_data_is_guessed() -> None:
    convolution = node("Convolution", "c", 0, 1, 2, kernel="(3,)")
    one_axis = [convolution if it["name"] == "conv0" else it for it in small_network()]
    words = [variable("data"), node("Embedding", "e", 0)]
    two = [variable("data"), variable("more"), node("Concat", "c", 0, 1), node("Convolution", "d", 2, kernel="(3, 3)")]
    for nodes in (one_axis, words, two, small_network(data="x")):
        assert shapes(nodes, name="resnet") == {}


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
def test_the_error_names_all_inputs_without_a_shape_with_an_example_of_as_many_axes_as_the_file_says(
    axes: Sequence[int | str] | None, said: str, example: Shape
) -> None:
    missing = missing_shapes({"x": axes, "y": axes}, "net")
    assert str(missing) == f"net does not say the shape of: x{said}, y{said}"
    assert missing.examples == {"x": example, "y": example}
    many = missing_shapes(dict.fromkeys(map("input{}".format, range(100)), None), "net")
    assert "input7 and 92 more" in str(many)


X = variable("x")
SUM = [X, variable("pixel_mean"), node("broadcast_sub", "s", 0, 1)]
ANCHORS = [node("relu", "r", 0), node("mul", "m", 2, 1)]
GRID = [X, variable("grid", __layer__="Grid"), node("broadcast_add", "s", 0, 1)]
OF_LAYER = [X, variable("grid", __layer__="s"), node("broadcast_add", "s", 0, 1, __layer__="s")]


@pytest.mark.parametrize(
    ("nodes", "named", "inputs"),
    [
        # The declaration of an operator overrides the user.
        (small_network(data="what is seen"), ("conv0_weight",), {"what is seen"}),
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
        # An array with a layer of its own is a layer, and one in a layer of operators is a weight.
        (GRID, (), {"x"}),
        (GRID, ("grid",), {"x", "grid"}),
        (OF_LAYER, (), {"x"}),
    ],
)
def test_inputs_are_the_arrays_that_no_operator_declares_as_weights(
    nodes: list[Node], named: tuple[str, ...], inputs: set[str]
) -> None:
    file = parse_symbol(content(nodes), "net")
    found = {file.nodes[number].name: role for number, role in variable_roles(file, named).items()}
    assert {name for name, role in found.items() if role is Role.INPUT} == inputs
    others = {role for name, role in found.items() if name not in inputs}
    assert others <= {Role.CONSTANT if nodes is GRID else Role.WEIGHT}
