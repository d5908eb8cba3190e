"""Fusion by a worker with the real MXNet."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Fuse, Fused, Infer, Reason
from tests.runtime.symbols import Network, node, symbol_of

pytestmark = pytest.mark.mxnet

PATIENCE_SECONDS = 120.0
IMAGE = (1, 3, 32, 32)


@pytest.fixture
def fusing_worker(mxnet_worker: Worker, with_onednn: None) -> Worker:
    return mxnet_worker


def fuse(worker: Worker, symbol: str, shapes: Mapping[str, tuple[int, ...]]) -> Fused:
    return worker.ask(Fuse(symbol, shapes, {}), PATIENCE_SECONDS)


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
    again = fusing_worker.ask(Infer(fused.symbol, {"data": IMAGE}, {}), PATIENCE_SECONDS)
    assert (again.outputs, again.unknown) == (fused.outputs, ())


def test_a_saved_fused_graph_stays_unchanged(fusing_worker: Worker) -> None:
    net = Network()
    fused = fuse(fusing_worker, net.symbol(net.relu("relu", net.convolution("conv", "data"))), {"data": IMAGE})
    again = fuse(fusing_worker, fused.symbol, {"data": IMAGE})
    assert parts_by_name(fused.symbol, again) == {"sg_mkldnn_conv_act_0": ["sg_mkldnn_conv_act_0"]}
    assert again.outputs == fused.outputs


def test_names_added_by_fusion_never_clash_with_the_models(fusing_worker: Worker) -> None:
    net = Network()
    taken = net.add("Flatten", "sg_mkldnn_conv_act_0", net.relu("relu", net.convolution("conv", "data")))
    symbol = net.symbol(taken)
    parts = parts_by_name(symbol, fuse(fusing_worker, symbol, {"data": IMAGE}))
    assert parts == {"sg_mkldnn_conv_act_0_again": ["conv", "relu"], taken: [taken]}


def test_dropout_is_not_run(fusing_worker: Worker) -> None:
    net = Network()
    symbol = net.symbol(net.linear("fc", net.add("Dropout", "drop", net.add("tanh", "tanh", "data"), p="0.5")))
    parts = parts_by_name(symbol, fuse(fusing_worker, symbol, {"data": (1, 4)}))
    assert sorted(parts.values()) == [["fc"], ["tanh"]]


def test_equal_operators_are_merged_when_fusing(fusing_worker: Worker) -> None:
    net = Network()
    left = net.add("exp", "left_exp", net.add("tanh", "left", "data"))
    right = net.add("exp", "right_exp", net.add("tanh", "right", "data"))
    symbol = net.symbol(net.add("elemwise_add", "sum", left, right))
    parts = parts_by_name(symbol, fuse(fusing_worker, symbol, {"data": (2, 3)}))
    assert sorted(sorted(names) for names in parts.values()) == [["left", "right"], ["left_exp", "right_exp"], ["sum"]]


def test_settings_can_disable_fusion(mxnet_worker_of_settings: Worker) -> None:
    net = Network()
    symbol = net.symbol(net.relu("relu", net.convolution("conv", "data")))
    parts = parts_by_name(symbol, fuse(mxnet_worker_of_settings, symbol, {"data": IMAGE}))
    assert parts == {"conv": ["conv"], "relu": ["relu"]}


def test_a_graph_with_an_unknown_operator_is_not_fused(mxnet_worker: Worker) -> None:
    nodes = [node("null", "data"), node("NobodyHasThis", "unknown", (0, 0))]
    with pytest.raises(WorkerRefusedError, match="lacks the operators of unknown") as caught:
        fuse(mxnet_worker, symbol_of(nodes, (1, 0)), {"data": (1,)})
    assert (caught.value.reason, caught.value.node) == (Reason.UNKNOWN_OPERATOR, 1)


def test_a_graph_whose_shapes_are_not_all_known_is_not_fused(mxnet_worker: Worker) -> None:
    net = Network()
    symbol = net.symbol(net.add("dot", "product", "data", "other"))
    with pytest.raises(WorkerRefusedError, match="the shape of other is not known") as caught:
        fuse(mxnet_worker, symbol, {"data": (2, 3)})
    assert caught.value.reason is Reason.UNFUSABLE


def test_a_contradiction_in_the_model_is_not_a_fusion_failure(mxnet_worker: Worker) -> None:
    net = Network()
    symbol = net.symbol(net.convolution("conv", "data"))
    with pytest.raises(WorkerRefusedError) as caught:
        fuse(mxnet_worker, symbol, {"data": (2, 3)})
    assert caught.value.reason is Reason.INCONSISTENT


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
