"""Inference by a worker with the real MXNet."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Fuse, Fused, Infer, Inferred, Reason, Tensor
from tests.models.symbols import Node, node
from tests.runtime.symbols import Network, symbol_of

pytestmark = pytest.mark.mxnet

PATIENCE_SECONDS = 120.0
IMAGE = (1, 3, 32, 32)
NOTHING = Tensor(None, None)


def infer(worker: Worker, symbol: str, shapes: Mapping[str, tuple[int, ...]]) -> Inferred:
    return worker.ask(Infer(symbol, shapes), PATIENCE_SECONDS)


def refusal(worker: Worker, symbol: str, shapes: Mapping[str, tuple[int, ...]]) -> WorkerRefusedError:
    with pytest.raises(WorkerRefusedError) as caught:
        infer(worker, symbol, shapes)
    assert "\n" not in str(caught.value)
    return caught.value


def shapes_by_name(symbol: str, inferred: Inferred) -> dict[str, list[tuple[int, ...] | None]]:
    names = [entry["name"] for entry in json.loads(symbol)["nodes"]]
    return {name: [tensor.shape for tensor in tensors] for name, tensors in zip(names, inferred.outputs, strict=True)}


def classifier() -> Network:
    net = Network()
    net.linear("fc", net.relu("relu", net.batch_norm("bn", net.convolution("conv", "data"))))
    return net


def test_all_outputs_and_variables_have_shapes_and_dtypes(mxnet_worker: Worker) -> None:
    symbol = classifier().symbol("fc")
    inferred = infer(mxnet_worker, symbol, {"data": IMAGE})
    shapes = shapes_by_name(symbol, inferred)
    assert shapes["data"] == [IMAGE]
    assert shapes["conv_weight"] == [(3, 3, 3, 3)]
    assert shapes["bn_var"] == [(3,)]
    # The mean and the variance of a batch norm are hidden outputs.
    assert shapes["bn"] == [IMAGE]
    assert shapes["fc_weight"] == [(10, 3072)]
    assert shapes["fc"] == [(1, 10)]
    assert {tensor.dtype for tensors in inferred.outputs for tensor in tensors} == {"float32"}
    assert inferred.unknown == ()


@pytest.mark.parametrize(
    "name", ["twice", "", "self", "kwargs", "0", "#1#", "relu_output0", "a b", "é中", "\x00\x01", 'q"\\u0041']
)
def test_names_do_not_change_inference(mxnet_worker: Worker, name: str) -> None:
    nodes = [node("null", name), node("relu", name, (0, 0), __layer__=name), node("Flatten", name, (1, 0))]
    inferred = infer(mxnet_worker, symbol_of(nodes, (2, 0)), {name: (2, 3, 4)})
    assert [tensors[0].shape for tensors in inferred.outputs] == [(2, 3, 4), (2, 3, 4), (2, 12)]


def test_an_unknown_data_type_is_refused_and_ends_no_worker(mxnet_worker: Worker) -> None:
    symbol = symbol_of([node("null", "data", __dtype__="99"), node("relu", "relu", (0, 0))], (1, 0))
    assert str(refusal(mxnet_worker, symbol, {"data": IMAGE})).startswith("MXNet has no data type 99")


def test_only_results_of_an_unknown_operator_are_unknown(mxnet_worker: Worker) -> None:
    nodes = [
        node("null", "data"),
        node("null", "weight"),
        node("Convolution", "before", (0, 0), (1, 0), kernel="(3, 3)", num_filter="8", no_bias="True"),
        node("NobodyHasThis", "unknown", (2, 0), strength="7"),
        node("Custom", "python_code", (2, 0), op_type="somebody_had_this"),
        node("relu", "after", (3, 1)),
        node("elemwise_add", "agrees", (3, 0), (2, 0)),
        node("relu", "beside", (2, 0)),
    ]
    symbol = symbol_of(nodes, (5, 0), (6, 0), (7, 0), (4, 0))
    inferred = infer(mxnet_worker, symbol, {"data": IMAGE})
    shapes = shapes_by_name(symbol, inferred)
    assert inferred.unknown == (3, 4)
    assert inferred.outputs[3] == inferred.outputs[4] == (NOTHING,)
    assert shapes["weight"] == [(8, 3, 3, 3)]
    assert (shapes["before"], shapes["beside"]) == ([(1, 8, 30, 30)], [(1, 8, 30, 30)])
    assert shapes["after"] == [None]
    # Both inputs of a sum have one shape.
    assert shapes["agrees"] == [(1, 8, 30, 30)]


BODY: Node = {
    "nodes": [
        node("null", "row"),
        node("null", "weight"),
        node("FullyConnected", "fc", (0, 0), (1, 0), no_bias="True", num_hidden="4"),
        node("null", "state"),
        node("elemwise_add", "next", (2, 0), (3, 0)),
    ],
    "arg_nodes": [0, 1, 3],
    "heads": [[4, 0, 0], [4, 0, 0]],
}


def loop(body: Node) -> str:
    counts = {"num_args": "4", "num_out_data": "1", "num_outputs": "2"}
    places = {"in_data_locs": "[0]", "in_state_locs": "[2]", "remain_locs": "[1]"}
    foreach = node("_foreach", "loop", (0, 0), (1, 0), (2, 0), **counts, **places) | {"subgraphs": [body]}
    return symbol_of([node("null", "rows"), node("null", "state"), node("null", "weight"), foreach], (3, 0), (3, 1))


def test_inference_passes_through_a_loop_unless_it_has_an_unknown_operator(mxnet_worker: Worker) -> None:
    shapes = shapes_by_name(loop(BODY), infer(mxnet_worker, loop(BODY), {"rows": (5, 2, 3)}))
    assert shapes["loop"] == [(5, 2, 4), (2, 4)]
    assert (shapes["weight"], shapes["state"]) == ([(4, 3)], [(2, 4)])
    nodes = [{**entry, "op": entry["op"].replace("elemwise_add", "NobodyHasThis")} for entry in BODY["nodes"]]
    assert infer(mxnet_worker, loop({**BODY, "nodes": nodes}), {"rows": (5, 2, 3)}).unknown == (3,)


def test_a_wrong_shape_is_refused_at_the_node_that_it_does_not_fit(mxnet_worker: Worker) -> None:
    net = classifier()
    net.add("Pooling", "pool", "conv", kernel="(9, 9)")
    refused = refusal(mxnet_worker, net.symbol("pool"), {"data": (1, 3, 8, 8)})
    assert (refused.reason, refused.node) == (Reason.INCONSISTENT, len(net.nodes) - 1)
    assert "pool" in str(refused)
    assert "kernel size (9) exceeds input (8" in str(refused)


def reading_data(op: str = "relu", place: tuple[int, int] = (0, 0), /, **attributes: str) -> Sequence[Node]:
    return [node("null", "data"), node(op, "it", place, **attributes)]


@pytest.mark.parametrize(
    ("nodes", "shape", "reason", "message"),
    [
        (reading_data("Convolution", kernel="(3, 3)", num_filter="8"), IMAGE, "inconsistent", "Input:"),
        (reading_data("Convolution", kernel="(3,", num_filter="8"), IMAGE, "inconsistent", "kernel"),
        (reading_data("Convolution", kernel="(3, 3)", precision="low"), IMAGE, "inconsistent", "precision"),
        (reading_data("relu", (0, 7)), (1,), "malformed", "output 7 of data"),
        ([*reading_data(), node("elemwise_add", "sum", (1, 0), (1, 1))], IMAGE, "malformed", "output 1 of it"),
        (reading_data(), (10**6, 10**6), "too large", "input data"),
        (reading_data(), (10**12,), "too large", "input data"),
        (reading_data(), (2, 0), "malformed", "input data"),
        (reading_data("tile", reps="(1000000, 1000000)"), (1,), "too large", "it makes more"),
        ([node("null", "other"), node("relu", "r", (0, 0))], (1,), "malformed", "no input called data"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    mxnet_worker: Worker, nodes: Sequence[Node], shape: tuple[int, ...], reason: str, message: str
) -> None:
    refused = refusal(mxnet_worker, symbol_of(nodes, (len(nodes) - 1, 0)), {"data": shape})
    assert refused.reason == reason
    assert message in str(refused)


# Fusion by a worker with the real MXNet.


@pytest.fixture
def fusing_worker(mxnet_worker: Worker, with_onednn: None) -> Worker:
    return mxnet_worker


def fuse(worker: Worker, symbol: str, shapes: Mapping[str, tuple[int, ...]]) -> Fused:
    inputs = {name: protocol.ArrayType(shape, "float32") for name, shape in shapes.items()}
    return worker.ask(Fuse(protocol.Network(symbol, inputs, {})), PATIENCE_SECONDS)


def parts_by_name(symbol: str, fused: Fused) -> dict[str, list[str]]:
    """Return for each operator of the fused graph the names of the written operators that it stands for."""
    written = [entry["name"] for entry in json.loads(symbol)["nodes"]]
    nodes = json.loads(fused.symbol)["nodes"]
    return {
        entry["name"]: [written[index] for index in parts]
        for entry, parts in zip(nodes, fused.parts, strict=True)
        if entry["op"] != "null"
    }


def test_a_convolution_is_fused_with_the_next_operators(fusing_worker: Worker) -> None:
    net = Network()
    stem = net.relu("relu", net.batch_norm("bn", net.convolution("conv", "data")))
    branch = net.batch_norm("bn2", net.convolution("conv2", stem))
    joined = net.relu("relu2", net.add("elemwise_add", "sum", branch, stem))
    clipped = net.add("clip", "relu6", net.convolution("conv3", joined), a_min="0", a_max="6")
    symbol = net.symbol(net.relu("relu3", net.linear("fc", clipped)))
    fused = fuse(fusing_worker, symbol, {"data": IMAGE})
    assert parts_by_name(symbol, fused) == {
        "sg_mkldnn_conv_bn_act_0": ["conv", "bn", "relu"],
        "sg_mkldnn_conv_bn_add_act_1": ["conv2", "bn2", "sum", "relu2"],
        "sg_mkldnn_conv_act_2": ["conv3", "relu6"],
        "sg_mkldnn_fully_connected_eltwise_0": ["fc", "relu3"],
    }


def test_a_fused_graph_is_a_symbol_file_with_its_own_shapes_and_the_names_of_the_model(fusing_worker: Worker) -> None:
    net = Network()
    symbol = net.symbol(net.relu("relu", net.convolution("conv", "data")))
    fused = fuse(fusing_worker, symbol, {"data": IMAGE})
    nodes = json.loads(fused.symbol)["nodes"]
    assert [entry["name"] for entry in nodes[:3]] == ["data", "conv_weight", "conv_bias"]
    assert [entry["name"] for entry in nodes[3]["subgraphs"][0]["nodes"] if entry["op"] != "null"] == ["conv", "relu"]
    assert [tensors[0].shape for tensors in fused.outputs] == [IMAGE, (3, 3, 3, 3), (3,), IMAGE]
    again = fusing_worker.ask(Infer(fused.symbol, {"data": IMAGE}), PATIENCE_SECONDS)
    assert (again.outputs, again.unknown) == (fused.outputs, ())


def test_dropout_is_not_run(fusing_worker: Worker) -> None:
    net = Network()
    symbol = net.symbol(net.linear("fc", net.add("Dropout", "drop", net.add("tanh", "tanh", "data"), p="0.5")))
    parts = parts_by_name(symbol, fuse(fusing_worker, symbol, {"data": (1, 4)}))
    assert sorted(parts.values()) == [["fc"], ["tanh"]]


def test_settings_can_disable_fusion(mxnet_worker_of_settings: Worker) -> None:
    net = Network()
    symbol = net.symbol(net.relu("relu", net.convolution("conv", "data")))
    parts = parts_by_name(symbol, fuse(mxnet_worker_of_settings, symbol, {"data": IMAGE}))
    assert parts == {"conv": ["conv"], "relu": ["relu"]}


@pytest.mark.parametrize(
    ("nodes", "reason", "at", "message"),
    [
        (reading_data("NobodyHasThis"), Reason.UNKNOWN_OPERATOR, 1, "lacks the operators of it"),
        (
            [node("null", "data"), node("null", "other"), node("dot", "it", (0, 0), (1, 0))],
            Reason.UNFUSABLE,
            1,
            "the shape of other is not known",
        ),
        # A contradiction in the model is no failure of fusion.
        (reading_data("Pooling", kernel="(9, 9)"), Reason.INCONSISTENT, 1, "operator it"),
    ],
)
def test_graphs_that_cannot_be_fused_say_why(
    mxnet_worker: Worker, nodes: Sequence[Node], reason: Reason, at: int, message: str
) -> None:
    with pytest.raises(WorkerRefusedError, match=message) as caught:
        fuse(mxnet_worker, symbol_of(nodes, (len(nodes) - 1, 0)), {"data": (2, 3)})
    assert (caught.value.reason, caught.value.node) == (reason, at)


def test_fusing_a_network_as_large_as_vgg_allocates_no_weights(mxnet_worker: Worker) -> None:
    net = Network()
    wide = net.add("FullyConnected", "wide", "data", "wide_weight", no_bias="True", num_hidden="32768")
    symbol = net.symbol(net.add("FullyConnected", "next", wide, "next_weight", no_bias="True", num_hidden="32768"))
    before = resident_bytes(mxnet_worker)
    fuse(mxnet_worker, symbol, {"data": (1, 16)})
    # Its weights alone would take 4 GiB.
    assert resident_bytes(mxnet_worker) - before < 1 << 28


def resident_bytes(worker: Worker) -> int:
    status = Path(f"/proc/{worker.pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) * 1024
