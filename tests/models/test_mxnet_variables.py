from dlbricks_tui.models.mxnet.symbol_file import parse_symbol
from dlbricks_tui.models.mxnet.variables import Role, variable_roles
from tests.models.symbols import Node, content, node, small_network, variable


def roles(nodes: list[Node], *named: str) -> dict[str, Role]:
    file = parse_symbol(content(nodes), "net")
    return {file.nodes[number].name: role for number, role in variable_roles(file, named).items()}


def test_declared_weights_and_labels_are_weights() -> None:
    found = roles(small_network())
    assert found.pop("data") is Role.INPUT
    assert set(found.values()) == {Role.WEIGHT}


def test_an_input_may_have_any_name() -> None:
    assert roles(small_network(data="what is seen"))["what is seen"] is Role.INPUT


def test_a_weight_may_have_any_name() -> None:
    nodes = [variable("x"), variable("y"), node("Convolution", "c", 0, 1, kernel="(1, 1)", no_bias="1")]
    assert roles(nodes) == {"x": Role.INPUT, "y": Role.WEIGHT}


def test_states_of_a_recurrent_layer_are_bound_once() -> None:
    nodes = [variable("x"), variable("p"), variable("h"), variable("c"), node("RNN", "r", 0, 1, 2, 3, mode="lstm")]
    assert roles(nodes) == {"x": Role.INPUT, "p": Role.WEIGHT, "h": Role.WEIGHT, "c": Role.WEIGHT}


def test_the_states_of_an_old_batch_norm_are_weights() -> None:
    nodes = [variable("x"), variable("g"), variable("b"), node("BatchNorm_v1", "bn", 0, 1, 2)]
    assert roles(nodes) == {
        "x": Role.INPUT,
        "g": Role.WEIGHT,
        "b": Role.WEIGHT,
        "bn_moving_mean": Role.WEIGHT,
        "bn_moving_var": Role.WEIGHT,
    }


def test_an_array_named_like_a_weight_is_a_weight() -> None:
    nodes = [variable("x"), variable("pixel_mean"), node("broadcast_sub", "s", 0, 1)]
    assert roles(nodes) == {"x": Role.INPUT, "pixel_mean": Role.WEIGHT}


def test_an_array_of_known_shape_beside_a_computed_tensor_is_a_weight() -> None:
    nodes = [variable("x"), variable("anchors", __shape__="(1, 4)"), node("relu", "r", 0), node("mul", "m", 2, 1)]
    assert roles(nodes)["anchors"] is Role.WEIGHT
    assert roles([*nodes[:1], variable("anchors"), *nodes[2:]])["anchors"] is Role.INPUT


def test_an_input_named_by_the_user_is_an_input() -> None:
    nodes = [variable("x"), variable("pixel_mean"), node("broadcast_sub", "s", 0, 1)]
    assert roles(nodes, "pixel_mean")["pixel_mean"] is Role.INPUT


def test_the_declaration_of_an_operator_overrides_the_user() -> None:
    assert roles(small_network(), "conv0_weight")["conv0_weight"] is Role.WEIGHT


def test_an_array_with_a_layer_is_a_layer() -> None:
    nodes = [variable("x"), variable("grid", __layer__="Grid"), node("broadcast_add", "s", 0, 1)]
    assert roles(nodes)["grid"] is Role.CONSTANT
    assert roles(nodes, "grid")["grid"] is Role.INPUT


def test_an_array_of_a_layer_of_operators_is_a_weight() -> None:
    nodes = [variable("x"), variable("grid", __layer__="s"), node("broadcast_add", "s", 0, 1, __layer__="s")]
    assert roles(nodes)["grid"] is Role.WEIGHT
