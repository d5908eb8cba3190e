"""Parcels: they hold the bricks of their models, and nothing else of them."""

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

from dlbricks_tui.fleet.messages import Parcel
from dlbricks_tui.fleet.request import ParcelError
from dlbricks_tui.fleet.workload import PackedModel, pack
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import keys_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.events import ModelLeftOut
from dlbricks_tui.runs.request import InputShape, RunRequest, chosen
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.onnx_network import network_of
from tests.fleet.fake_hosts import bricks_of, written
from tests.models.onnx_models import floats, integers, model, saved, small, with_everything
from tests.models.symbols import content, node, small_network, variable
from tests.models.table_framework import TableFramework

SECRET = "topsecret"
# Recognisable numbers: no made-up weight has them.
NUMBER = 0.7390851
COMPOSITE = {"__layer__": "step", "__kind__": "elementwise", "__times__": "2"}


def weights(name: str, *shape: int) -> TensorProto:
    return from_array(numpy.full(shape, NUMBER, "float32"), name)


def repeated(blocks: int = 4, prefix: str = "", opset: int = 13) -> ModelProto:
    """Return a convolution, equal blocks of two, and a classifier."""
    nodes, arrays, last = [], [], "image"
    for block in range(blocks):
        for part in range(2):
            name = f"{prefix}block{block}_{part}"
            arrays.append(weights(f"{name}_w", 8, 8, 3, 3))
            nodes.append(make_node("Conv", [last, f"{name}_w"], [f"{name}_c"], name, pads=[1, 1, 1, 1]))
            nodes.append(make_node("Relu", [f"{name}_c"], [f"{name}_r"], f"{name}_relu"))
            last = f"{name}_r"
    nodes.append(make_node("GlobalAveragePool", [last], [f"{prefix}answer"], f"{prefix}pool"))
    return model(nodes, {"image": (1, 8, 12, 12)}, [f"{prefix}answer"], arrays, opset)


def with_a_loop() -> ModelProto:
    """Return a loop whose body has a weight, names and a comment."""
    body = make_graph(
        [
            make_node("Mul", [f"{SECRET}_state", f"{SECRET}_w"], [f"{SECRET}_next"], f"{SECRET}_mul"),
            make_node("Add", [f"{SECRET}_next", "outside"], [f"{SECRET}_out"], f"{SECRET}_add"),
            make_node("Identity", [f"{SECRET}_go"], [f"{SECRET}_on"]),
        ],
        f"{SECRET}_body",
        [
            make_tensor_value_info(f"{SECRET}_count", TensorProto.INT64, []),
            make_tensor_value_info(f"{SECRET}_go", TensorProto.BOOL, []),
            make_tensor_value_info(f"{SECRET}_state", TensorProto.FLOAT, [f"{SECRET}_rows", 4]),
        ],
        [
            make_tensor_value_info(f"{SECRET}_on", TensorProto.BOOL, []),
            make_tensor_value_info(f"{SECRET}_out", TensorProto.FLOAT, None),
        ],
        [weights(f"{SECRET}_w", 2, 4)],
        doc_string=f"{SECRET} comment",
    )
    nodes = [
        make_node("Relu", ["x"], ["r"], f"{SECRET}_relu"),
        make_node("Loop", ["times", "", "r"], ["looped"], f"{SECRET}_loop", body=body),
        make_node("Sigmoid", ["looped"], ["y"], f"{SECRET}_sigmoid"),
    ]
    stored = [from_array(numpy.array(3, "int64"), "times"), weights("outside", 2, 4)]
    return model(nodes, {"x": (2, 4)}, ["y"], stored)


def with_secrets() -> ModelProto:
    """Return a model with texts wherever a file may have them."""
    made = repeated(2, f"{SECRET}_")
    made.producer_name = made.producer_version = made.doc_string = made.domain = SECRET
    made.metadata_props.add(key=SECRET, value=SECRET)
    made.graph.name = made.graph.doc_string = SECRET
    made.graph.input[0].doc_string = SECRET
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = f"{SECRET}_batch"
    made.graph.value_info.add(name=SECRET)
    for each in made.graph.node:
        each.doc_string = SECRET
        each.metadata_props.add(key=SECRET, value=SECRET)
        for attribute in each.attribute:
            attribute.doc_string = SECRET
    for array in made.graph.initializer:
        array.doc_string = SECRET
    return made


def composite() -> ModelProto:
    """Return a layer of two operators that is repeated twice."""
    wires = (("Exp", ["x"], "a"), ("Mul", ["a", "scale"], "b"), ("Exp", ["b"], "c"), ("Mul", ["c", "scale"], "d"))
    nodes = [make_node(op, inputs, [output], output) for op, inputs, output in wires]
    for made in nodes:
        for key, value in COMPOSITE.items():
            made.metadata_props.add(key=key, value=value)
    nodes.append(make_node("Softmax", ["d"], ["y"], "after"))
    return model(nodes, {"x": (1, 8)}, ["y"], [floats("scale", (1, 8))])


def with_open_axes() -> ModelProto:
    nodes = [
        make_node("MatMul", ["x", "w"], ["m"], "product"),
        make_node("Shape", ["m"], ["sizes"], "sizes"),
        make_node("Reshape", ["m", "flat"], ["y"], "flat"),
    ]
    return model(nodes, {"x": ("batch", "length", 8)}, ["y"], [weights("w", 8, 8), integers("flat", (0, -1))])


def packed(
    folder: Path, files: Sequence[Path], told: list[Event] | None = None, **changes: Any
) -> tuple[PackedModel, ...]:
    """Return the parcels of some model files for ONNX Runtime."""
    runtime = Registry(folder).find("onnxruntime")
    data = DataFolder(folder / "data")
    request = RunRequest(
        models=chosen([source_of(path) for path in files]),
        **{"runtime": runtime, "level": Level.FUSED, "method": Method.INSIDE, **changes},
    )
    library = Library(SAMPLE_MODELS, data.path, Format.ONNX)
    folder.joinpath("log").mkdir(exist_ok=True)
    events: list[Event] = [] if told is None else told
    return pack(request, library, data.cache, folder / "log" / "worker.log", events.append)


def plain(parcel: Parcel) -> bytes:
    """Return the content of a parcel, unpacked."""
    return gzip.decompress(parcel.content) if parcel.content[:2] == b"\x1f\x8b" else parcel.content


MODELS: Mapping[str, ModelProto] = {
    "small": small(),
    "repeated": repeated(),
    "loop": with_a_loop(),
    "open": with_open_axes(),
    "composite": composite(),
    "everything": with_everything(),
}


def test_a_parcel_that_is_read_back_has_the_bricks_of_its_model(tmp_path: Path) -> None:
    files = {name: saved(tmp_path, made, name) for name, made in MODELS.items()}
    # The weights of one are in another file.
    beside = tmp_path / "beside.onnx"
    onnx.save(repeated(1), beside, save_as_external_data=True, location="beside.data", size_threshold=0)
    # A model that has everything has an array in a file of its own.
    (tmp_path / "big").write_bytes(bytes(16))
    told: list[Event] = []
    # Given shapes and values are those of one model.
    found = packed(tmp_path, [*(path for name, path in files.items() if name != "open"), beside], told)
    found += packed(tmp_path, [files["open"]], told, inputs=(InputShape("x", (2, 5, 8)),))
    assert {it.model.name for it in found} == {*MODELS, "beside"}
    written = [files[name] for name in ("small", "loop", "composite", "everything")]
    found += packed(tmp_path, written, told, level=Level.WRITTEN)
    assert [it.reason for it in told if isinstance(it, ModelLeftOut)] == []
    for each in found:
        wanted = {key.brick for key in keys_of((each.model,), method=Method.INSIDE) if key.brick}
        assert each.parcel.bricks == wanted, each.model.name


def test_each_batch_size_has_a_parcel_of_its_own(tmp_path: Path) -> None:
    nodes = [make_node("Relu", ["x"], ["r"]), make_node("Gemm", ["r", "w"], ["y"], transB=1)]
    path = saved(tmp_path, model(nodes, {"x": ("batch", 8)}, ["y"], [weights("w", 4, 8)]))
    one, eight = packed(tmp_path, [path], batch_sizes=(1, 8))
    assert one.parcel.sha256 != eight.parcel.sha256
    assert [it.model.decomposition.graph.batch_size for it in (one, eight)] == [1, 8]
    assert not one.parcel.bricks & eight.parcel.bricks


def test_a_quantised_copy_is_made_by_the_host_of_the_model_that_travels(tmp_path: Path) -> None:
    runtime = Registry(tmp_path).find("onnxruntime").with_precision(Precision.INT8)
    (found,) = packed(tmp_path, [saved(tmp_path, repeated(1))], runtime=runtime)
    assert found.parcel.bricks
    assert found.model.decomposition.graph.is_quantised
    # What travels has weights of its own type: 32 bits.
    assert b"int8" not in plain(found.parcel)


def test_repeated_modules_names_weights_and_texts_of_models_do_not_travel(tmp_path: Path) -> None:
    other = repeated(4, "other_")
    for array in other.graph.initializer:
        array.CopyFrom(floats(array.name, array.dims))
    made = {
        "short": repeated(4),
        "long": repeated(12),
        "other": other,
        SECRET: with_secrets(),
        f"{SECRET}_loop": with_a_loop(),
    }
    found = packed(tmp_path, [saved(tmp_path, each, name) for name, each in made.items()])
    short, long, same, *secret = (each.parcel for each in found)
    assert short == long == same
    assert len(onnx.load_from_string(plain(long)).graph.node) < 12
    assert len(secret) == 2
    for parcel in (short, *secret):
        content = plain(parcel)
        assert SECRET.encode() not in content
        assert str(tmp_path).encode() not in content
        assert numpy.float32(NUMBER).tobytes() not in content


def of_a_custom_domain() -> ModelProto:
    made = model([make_node("Relu", ["x"], ["r"]), make_node("Sigmoid", ["r"], ["y"])], {"x": (1, 4)}, ["y"])
    made.graph.node[1].domain = "com.example"
    made.opset_import.append(make_opsetid("com.example", 1))
    return made


def of_trees() -> ModelProto:
    scaler = make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.5] * 4, scale=[NUMBER] * 4)
    made = model([scaler], {"x": (1, 4)}, ["y"])
    made.opset_import.append(make_opsetid("ai.onnx.ml", 3))
    return made


def test_a_model_whose_layers_hold_weights_or_texts_is_left_out_with_the_reason_and_others_are_packed(
    tmp_path: Path,
) -> None:
    told: list[Event] = []
    made = {"trees": of_trees(), "custom": of_a_custom_domain(), "small": small()}
    files = [saved(tmp_path, each, name) for name, each in made.items()]
    (found,) = packed(tmp_path, files, told)
    assert found.model.name == "small"
    reasons = {it.model: it.reason for it in told if isinstance(it, ModelLeftOut)}
    assert reasons.keys() == {"trees", "custom"}
    assert "has a Scaler whose attributes hold weights" in reasons["trees"]
    assert "com.example" in reasons["custom"]
    with pytest.raises(ParcelError):
        packed(tmp_path, files[:1])


def test_layers_of_mxnet_travel_with_their_number_and_without_names(tmp_path: Path) -> None:
    steps = [node("Activation", f"a{it}", it, act_type="relu", **COMPOSITE) for it in range(4)]
    nodes = [variable("data"), *steps, node("Flatten", "last", 4)]
    graph = written(tmp_path, content(nodes))
    path = tmp_path / "back-symbol.json"
    path.write_bytes(network_of(graph))
    again = Loader(tmp_path / "cache", TableFramework()).load(source_of(path), Level.WRITTEN)
    assert [layer.times for layer in again.layers] == [layer.times for layer in graph.layers] == [2, 1]
    assert bricks_of(again) == bricks_of(graph)
    # Names and comments do not travel.
    secret = small_network(prefix=f"{SECRET}_")
    secret[3]["attrs"]["__comment__"] = f"{SECRET} comment"
    network = network_of(written(tmp_path, content(secret)))
    assert SECRET.encode() not in network
    assert network == network_of(written(tmp_path, content(small_network())))
