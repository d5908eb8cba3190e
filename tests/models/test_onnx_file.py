"""ONNX files, valid ones, and invalid ones with one line each."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import make_node, make_opsetid
from onnx.numpy_helper import from_array

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.models.errors import FusionRefusedError, MissingShapeError, ModelError, UnreadableModelError
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.onnx.model_file import parse_onnx
from dlbricks_tui.runtime.traits import ONNX_RUNTIME
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.store.index import label_of
from tests.models.hostile_files import billion_nodes, calling, mutated, nested
from tests.models.onnx_models import floats, integers, kept_in, loaded, model, saved, small, with_everything
from tests.models.table_framework import TableFramework


def refusal(folder: Path, made: ModelProto) -> str:
    with pytest.raises(ModelError) as refused:
        loaded(folder, made)
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (small().SerializeToString()[:-500], "net is not an ONNX file, or is damaged"),
        (b"", "net: the file is empty; download or export the model again"),
        (
            b"<!DOCTYPE html>\n<html><head><title>Sign in to continue</title></head></html>",
            "net: it is text, not a model: it begins with '<!DOCTYPE html> <html><head><title>Sign...'",
        ),
    ],
)
def test_another_file_is_refused_with_what_it_is(content: bytes, said: str) -> None:
    with pytest.raises(UnreadableModelError) as refused:
        parse_onnx(content, "net")
    assert str(refused.value) == said


def of_nodes(*nodes: NodeProto, output: str = "y") -> ModelProto:
    return model(nodes, {"x": (1, 2)}, [output])


def of_versions(of_format: int = 8, of_operators: int = 13) -> ModelProto:
    made = small()
    made.ir_version, made.opset_import[0].version = of_format, of_operators
    return made


def adding(weight: TensorProto) -> ModelProto:
    return model([make_node("Add", ["x", "w"], ["y"])], {"x": (1,)}, ["y"], [weight])


def weight(*sizes: int, kind: str = "FLOAT", held: bytes | None = None) -> TensorProto:
    return TensorProto(name="w", data_type=TensorProto.DataType.Value(kind), dims=sizes, raw_data=held)


def with_weights_in(location: str, offset: int, length: int) -> ModelProto:
    weight = kept_in(location, floats("w", (3,)), offset=offset, length=length)
    return model([make_node("Add", ["x", "w"], ["y"])], {"x": (1, 3)}, ["y"], [weight])


KINDS = ("FLOAT", "DOUBLE", "INT64", "UINT64", "INT32", "FLOAT16", "INT4", "COMPLEX64", "STRING")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        *((of_versions(version), "of the ONNX format; onnx") for version in (0, 9999)),
        (of_versions(of_operators=9999), "it uses version 9999 of ONNX's operators"),
        (
            of_nodes(make_node("Magic", ["x"], ["y"], name="trick", domain="some.where")),
            "node 0 ('trick') is an operator of the domain 'some.where', whose version the file does not declare",
        ),
        (
            of_nodes(make_node("Add", ["x", "y"], ["a"], name="one"), make_node("Relu", ["a"], ["y"])),
            "node 0 ('one') is part of a cycle, or depends on one",
        ),
        (of_nodes(make_node("Relu", ["no"], ["y"], name="n")), "node 0 ('n') reads 'no', which no node writes"),
        (of_nodes(make_node("Relu", ["x"], ["y"]), output="z"), "its output is 'z', which no node writes"),
        (of_nodes(*[make_node(op, ["x"], ["y"]) for op in ("Relu", "Exp")]), "writes 'y', which is there"),
        (of_nodes(output="x"), "there are no nodes"),
        *((calling(count), "net: its function 'f0' calls itself") for count in (1, 3)),
        (billion_nodes(), "net: its functions stand for more than 200,000 nodes"),
        (nested(9), "net: its graphs are nested more than 8 deep"),
        *((adding(weight(4, 2, kind=kind)), "numbers, but there are 0") for kind in KINDS),
        (adding(weight(-1, 2, held=bytes(4))), "has a size below zero: -1x2"),
        (adding(weight(*[1] * 40, held=bytes(4))), "has 40 axes; the limit is 32"),
        *(
            (with_weights_in(location, 0, 1), "which is not beside the model")
            for location in ("../outside.bin", "/etc/hostname", "")
        ),
    ],
)
def test_an_invalid_file_is_refused_in_one_line(made: ModelProto, said: str, tmp_path: Path) -> None:
    assert said in refusal(tmp_path, made)


def test_subgraphs_are_read_down_to_eight_levels(tmp_path: Path) -> None:
    assert loaded(tmp_path, nested(8)).layers[0].op == "onnx.If"


def test_an_operator_of_a_domain_that_onnx_lacks_is_an_unmeasurable_layer(tmp_path: Path) -> None:
    nodes = [make_node("Magic", ["x"], ["m"], name="trick", domain="some.where"), make_node("Relu", ["m"], ["y"])]
    made = model(nodes, {"x": (1, 2)}, ["y"])
    made.opset_import.append(make_opsetid("some.where", 1))
    trick, relu = loaded(tmp_path, made).layers
    assert trick.unmeasurable == "operator Magic of some.where is not known to the installed onnx"
    assert relu.unmeasurable is not None


def test_missing_weight_files_are_named(tmp_path: Path) -> None:
    made = with_weights_in("big.bin", 0, 12)
    assert "'w' is kept in 'big.bin', which is not beside the model" in refusal(tmp_path, made)
    (tmp_path / "big.bin").write_bytes(bytes(11))
    assert "'w' is kept in 'big.bin', which is too short" in refusal(tmp_path, made)
    (tmp_path / "big.bin").write_bytes(bytes(12))
    (layer,) = loaded(tmp_path, made).layers
    assert layer.weights[0].shape == (3,)


@pytest.mark.parametrize("dims", [(10**12,), (2**62, 2**62), (5,), (3,), (4, 10**9)])
def test_a_weight_with_a_wrong_number_of_bytes_is_refused(dims: tuple[int, ...], tmp_path: Path) -> None:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=bytes(16))
    message = refusal(tmp_path, model([make_node("Add", ["x", "w"], ["y"])], {"x": (1, 1)}, ["y"], [weight]))
    assert re.search(r"^net: the weight 'w': float32 [0-9x]+ takes [0-9,]+ bytes, but there are 16$", message)


def test_packed_numbers_smaller_than_a_byte_are_counted(tmp_path: Path) -> None:
    weight = TensorProto(name="w", data_type=TensorProto.INT4, dims=(3,), raw_data=bytes(2))
    nodes = [make_node("Cast", ["w"], ["c"], to=1), make_node("Add", ["x", "c"], ["y"])]
    assert len(loaded(tmp_path, model(nodes, {"x": (3,)}, ["y"], [weight], opset=21)).layers) == 1


def test_an_external_weight_has_the_length_of_its_type(tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(bytes(12))
    made = with_weights_in("big.bin", 0, 8)
    assert "'w' is kept in 'big.bin': 8 bytes, but float32 3 takes 12" in refusal(tmp_path, made)
    made = with_weights_in("big.bin", 0, 12)
    made.graph.initializer[0].dims[:] = [10**12]
    assert "12 bytes, but float32 1000000000000 takes 4,000,000,000,000" in refusal(tmp_path, made)
    del made.graph.initializer[0].external_data[1:]
    assert "which is too short" in refusal(tmp_path, made)


def test_a_link_out_of_the_folder_of_the_model_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "nets"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(12))
    (folder / "big.bin").symlink_to(tmp_path / "secret")
    assert "'big.bin', a link that leads out of the model's folder" in refusal(
        folder, with_weights_in("big.bin", 0, 12)
    )
    (folder / "inner").symlink_to(tmp_path)
    assert "a link that leads out of the model's folder" in refusal(folder, with_weights_in("inner/secret", 0, 12))


def test_links_within_the_folder_and_to_the_model_are_followed(tmp_path: Path) -> None:
    """Download caches hold links to both, beside each other."""
    folder, files = tmp_path / "snapshot", tmp_path / "files"
    folder.mkdir()
    files.mkdir()
    (files / "0123").write_bytes(with_weights_in("big.bin", 0, 12).SerializeToString())
    (files / "4567").write_bytes(bytes(12))
    (folder / "net.onnx").symlink_to("../files/0123")
    (folder / "big.bin").symlink_to("../files/4567")
    loader = Loader(tmp_path / "cache", TableFramework())
    assert loader.load(source_of(folder / "net.onnx")).layers[0].weights[0].shape == (3,)
    (files / "big.bin").symlink_to("4567")
    (files / "net.onnx").symlink_to("0123")
    assert loader.load(source_of(files / "net.onnx")).layers


def test_external_data_of_subgraphs_is_checked_too(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(16))
    made = with_everything()
    kept_in("inner", made.graph.node[-1].attribute[0].g.initializer[0], offset=0, length=16)
    assert "the weight 'no_w' is kept in 'inner', which is not beside the model" in refusal(tmp_path, made)

    made = with_everything()
    constant = made.graph.node[-1].attribute[0].g.node[0]
    kept_in("inner", constant.attribute[0].t, offset=0, length=16)
    assert "the value of 'Constant' is kept in 'inner', which is not beside" in refusal(tmp_path, made)
    (tmp_path / "inner").write_bytes(bytes(16))
    assert loaded(tmp_path, made).layers[-1].op == "onnx.If"


def test_a_damaged_value_inside_an_operator_is_named(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(16))
    made = with_everything()
    constant = made.graph.node[-1].attribute[0].g.node[0]
    constant.attribute[0].t.dims[0] = 5
    assert "the value of 'Constant': float32 5 takes 5 numbers, but there are 4" in refusal(tmp_path, made)

    made = with_everything()
    made.graph.node[4].attribute[0].t.data_type = 99
    assert "the attribute 'value' of 'filled' is damaged" in refusal(tmp_path, made)


@pytest.mark.parametrize(
    "node",
    [
        make_node("QuantizeLinear", ["parts", "scales"], ["c"]),
        make_node("Div", ["whole", "parts"], ["c"]),
        make_node("Cast", ["whole"], ["c"], name="to nothing"),
    ],
    ids=lambda node: node.op_type,
)
def test_a_constant_that_cannot_be_computed_is_a_weight_of_unknown_values(node: NodeProto, tmp_path: Path) -> None:
    made = model([node, make_node("Mul", ["x", "c"], ["y"])], {"x": (2,)}, ["y"], opset=21)
    made.graph.initializer.extend([integers("whole", (4, 6)), floats("parts", (2,)), floats("scales", (1, 2))])
    (layer,) = loaded(tmp_path, made).layers
    assert len(layer.weights) == 1


def test_an_open_axis_has_to_be_given_unless_it_is_the_batch(tmp_path: Path) -> None:
    made = model([make_node("Relu", ["x"], ["y"])], {"x": ("batch", "length")}, ["y"])
    with pytest.raises(MissingShapeError, match=r"net does not say the shape of: x \(batch, length\)$"):
        loaded(tmp_path, made)
    assert shape_of(loaded(tmp_path, made, {"x": (2, 7)})) == (2, 7)


@pytest.mark.parametrize("shape", [(99999999999999999999,), (2**63,), (2**20, 2**20), (10**40, 1)])
def test_an_input_beyond_any_memory_is_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    made = model([make_node("Relu", ["x"], ["y"])], {"x": ("n",) * len(shape)}, ["y"])
    with pytest.raises(
        ModelError, match=r"^net: input 'x' of shape [0-9x]+ has more elements than ONNX Runtime can hold"
    ):
        loaded(tmp_path, made, {"x": shape})


def test_an_input_of_too_many_axes_is_refused(tmp_path: Path) -> None:
    made = model([make_node("Relu", ["x"], ["y"])], {"x": ("n",) * 33}, ["y"])
    with pytest.raises(ModelError, match=r"^net: input 'x' has 33 axes; ONNX Runtime can hold at most 32$"):
        loaded(tmp_path, made, {"x": (1,) * 33})


def test_a_shape_with_other_axes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="input 'x' has 4 axes; the given shape 1x2 does not"):
        loaded(tmp_path, small(), {"x": (1, 2)})
    with pytest.raises(ModelError, match="net has no input 'z'; its inputs are: x"):
        loaded(tmp_path, small(), {"z": (1, 2)})


def shape_of(graph: LayerGraph) -> tuple[int, ...] | None:
    return graph.layers[-1].outputs[0].shape


FILES = [small().SerializeToString(), with_everything().SerializeToString()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.sampled_from(FILES), seed=st.integers(0, 2**32 - 1))
def test_a_mutated_file_is_a_model_that_can_be_cut_or_is_refused_in_one_line(
    content: bytes, seed: int, tmp_path: Path
) -> None:
    (tmp_path / "net.onnx").write_bytes(mutated(content, seed))
    (tmp_path / "big").write_bytes(bytes(16))
    try:
        graph = Loader(tmp_path / "cache", TableFramework()).load(source_of(tmp_path / "net.onnx"))
    except ModelError as refused:
        assert "\n" not in str(refused)
    else:
        for occurrence in decompose(graph).occurrences:
            assert label_of(occurrence.brick.canonical)
            features_of(occurrence.brick.canonical, occurrence.context)


GATHERS = [make_node("Gather", ["x", "v"], [f"g{number}"]) for number in range(200)]


@pytest.mark.parametrize(
    ("size", "nodes", "weight", "said"),
    [
        (
            1,
            [make_node("ConstantOfShape", ["s"], ["c"]), make_node("Add", ["x", "c"], ["y"])],
            integers("s", (2**30,)),
            "net computes constants of more than 1 GiB from shapes",
        ),
        (
            2**16,
            [*GATHERS, make_node("Sum", [f"g{number}" for number in range(200)], ["y"])],
            from_array(numpy.arange(2**16), "v"),
            "net has too many long values in its nodes",
        ),
    ],
)
def test_frameworks_never_get_values_that_fill_the_memory(
    size: int, nodes: list[NodeProto], weight: TensorProto, said: str, tmp_path: Path
) -> None:
    never_asked: Any = SimpleNamespace(identity="never", traits=ONNX_RUNTIME, precision=Precision.F32, quantiser="")
    loader = Loader(tmp_path / "cache", TableFramework(), never_asked)
    source = source_of(saved(tmp_path, model(nodes, {"x": (size,)}, ["y"], [weight])))
    assert loader.load(source).layers
    with pytest.raises(FusionRefusedError, match=said):
        loader.load(source, Level.FUSED)
