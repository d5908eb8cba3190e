"""ONNX files, valid ones, and invalid ones with one line each."""

import re
from collections.abc import Callable, Sequence
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
from onnx.parser import parse_model

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.models.errors import FusionRefusedError, ModelError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.onnx_file import parse_onnx
from dlbricks_tui.runtime.traits import ONNX_RUNTIME
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.store.index import label_of
from tests.models.hostile_files import adding, billion_nodes, calling, mutated, nested
from tests.models.onnx_models import floats, integers, kept_in, loaded, model, saved, small, with_everything
from tests.models.symbols import refusal
from tests.models.table_framework import TableFramework


def refused(folder: Path, made: ModelProto) -> str:
    return refusal(lambda: loaded(folder, made))


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
    assert refusal(lambda: parse_onnx(content, "net")) == said


def of_nodes(*nodes: NodeProto, output: str = "y") -> ModelProto:
    return model(nodes, {"x": (1, 2)}, [output])


def of_versions(of_format: int = 8, of_operators: int = 13) -> ModelProto:
    made = small()
    made.ir_version, made.opset_import[0].version = of_format, of_operators
    return made


def weight(*sizes: int, kind: str = "FLOAT", held: bytes | None = None) -> TensorProto:
    return TensorProto(name="w", data_type=TensorProto.DataType.Value(kind), dims=sizes, raw_data=held)


def with_weights_in(location: str, offset: int = 0, length: int = 12, size: int = 3) -> ModelProto:
    made = adding(kept_in(location, floats("w", (3,)), offset=offset, length=length))
    made.graph.initializer[0].dims[:] = [size]
    return made


def changed(change: Callable[[ModelProto], object]) -> ModelProto:
    """Return the model with everything, after a change."""
    made = with_everything()
    change(made)
    return made


def first_branch(made: ModelProto) -> Any:
    return made.graph.node[-1].attribute[0].g


KINDS = ("FLOAT", "DOUBLE", "INT64", "UINT64", "INT32", "FLOAT16", "INT4", "COMPLEX64", "STRING")
MAGIC = make_node("Magic", ["x"], ["y"], name="trick", domain="some.where")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        *((of_versions(version), "of the ONNX format; onnx") for version in (0, 9999)),
        (of_versions(of_operators=9999), "it uses version 9999 of ONNX's operators"),
        (
            of_nodes(MAGIC),
            "node 0 ('trick') is an operator of the domain 'some.where', whose version the file does not declare",
        ),
        (
            of_nodes(make_node("Add", ["x", "y"], ["a"], name="one"), make_node("Relu", ["a"], ["y"])),
            "node 0 ('one') is part of a cycle, or depends on one",
        ),
        (of_nodes(make_node("Relu", ["no"], ["y"], name="n")), "node 0 ('n') reads 'no', which no node writes"),
        (of_nodes(make_node("Relu", ["x"], ["y"]), output="z"), "its output is 'z', which no node writes"),
        (of_nodes(*[make_node(op, ["x"], ["y"]) for op in ("Relu", "Exp")]), "writes 'y', which is there"),
        (model([], {"x": (1, 2)}, []), "there are no nodes"),
        *((calling(count), "net: its function 'f0' calls itself") for count in (1, 3)),
        (billion_nodes(), "net: its functions stand for more than 200,000 nodes"),
        (nested(9), "net: its graphs are nested more than 8 deep"),
        *((adding(weight(4, 2, kind=kind)), "numbers, but there are 0") for kind in KINDS),
        (adding(weight(-1, 2, held=bytes(4))), "has a size below zero: -1x2"),
        (adding(weight(*[1] * 40, held=bytes(4))), "has 40 axes; the limit is 32"),
        *(
            (adding(weight(*dims, held=bytes(16))), "net: the weight 'w': float32 [0-9x]+ takes [0-9,]+ bytes, but the")
            for dims in ((10**12,), (2**62, 2**62), (5,), (3,), (4, 10**9))
        ),
        *((with_weights_in(it), "which is not beside the model") for it in ("../outside.bin", "/etc/hostname", "")),
        (with_weights_in("none.bin"), "'w' is kept in 'none.bin', which is not beside the model"),
        (with_weights_in("short.bin"), "'w' is kept in 'short.bin', which is too short"),
        (with_weights_in("big", length=8), "'w' is kept in 'big': 8 bytes, but float32 3 takes 12"),
        (with_weights_in("big", size=10**12), "12 bytes, but float32 1000000000000 takes 4,000,000,000,000"),
        (with_weights_in("big", offset=8), "which is too short"),
        # A link must not lead out of the folder of the model.
        *((with_weights_in(it), "a link that leads out of the model's folder") for it in ("link.bin", "inner/secret")),
        # Arrays inside of nodes and graphs are checked, too.
        (
            changed(lambda made: kept_in("inside", first_branch(made).initializer[0], offset=0, length=16)),
            "the weight 'no_w' is kept in 'inside', which is not beside the model",
        ),
        (
            changed(lambda made: kept_in("inside", first_branch(made).node[0].attribute[0].t, offset=0, length=16)),
            "the value of 'Constant' is kept in 'inside', which is not beside",
        ),
        (
            changed(lambda made: first_branch(made).node[0].attribute[0].t.dims.__setitem__(0, 5)),
            "the value of 'Constant': float32 5 takes 5 numbers, but there are 4",
        ),
        (
            changed(lambda made: setattr(made.graph.node[4].attribute[0].t, "data_type", 99)),
            "the attribute 'value' of 'filled' is damaged",
        ),
    ],
)
def test_an_invalid_file_is_refused_in_one_line(made: ModelProto, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "nets"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(12))
    (folder / "big").write_bytes(bytes(16))
    (folder / "short.bin").write_bytes(bytes(11))
    (folder / "link.bin").symlink_to(tmp_path / "secret")
    (folder / "inner").symlink_to(tmp_path)
    assert re.search(said if "+" in said else re.escape(said), refused(folder, made))


def test_links_within_the_folder_and_to_the_model_are_followed(tmp_path: Path) -> None:
    """Download caches hold links to both, beside each other."""
    folder, files = tmp_path / "snapshot", tmp_path / "files"
    folder.mkdir()
    files.mkdir()
    (files / "0123").write_bytes(with_weights_in("big.bin").SerializeToString())
    (files / "4567").write_bytes(bytes(12))
    (folder / "net.onnx").symlink_to("../files/0123")
    (folder / "big.bin").symlink_to("../files/4567")
    loader = Loader(tmp_path / "cache", TableFramework())
    assert loader.load(source_of(folder / "net.onnx")).layers[0].weights[0].shape == (3,)
    (files / "big.bin").symlink_to("4567")
    (files / "net.onnx").symlink_to("0123")
    assert loader.load(source_of(files / "net.onnx")).layers


def test_files_that_look_odd_and_are_valid_are_read(tmp_path: Path) -> None:
    # Graphs within graphs down to eight levels.
    assert loaded(tmp_path, nested(8)).layers[0].op == "onnx.If"
    # Numbers of four bits, two in a byte.
    packed, cast = weight(3, kind="INT4", held=bytes(2)), make_node("Cast", ["w"], ["c"], to=1)
    made = model([cast, make_node("Add", ["x", "c"], ["y"])], {"x": (3,)}, ["y"], [packed], opset=21)
    assert len(loaded(tmp_path, made).layers) == 1
    # Arrays in two other files, one of them inside a branch.
    for name in ("big", "inside"):
        (tmp_path / name).write_bytes(bytes(16))
    made = changed(lambda made: kept_in("inside", first_branch(made).node[0].attribute[0].t, offset=0, length=16))
    assert loaded(tmp_path, made).layers[-1].op == "onnx.If"
    # A function with an operator of a domain that the model does not declare.
    body = "<domain: 'd', opset_import: ['': 13, 'some.where': 1]> f (a) => (b) { b = some.where.Magic (a) }"
    main = "<ir_version: 8, opset_import: ['': 13, 'd': 1]> test (float[1] x) => (y) { y = d.f (x) }"
    made = parse_model(f"{main} {body}".replace("'", '"'))
    assert loaded(tmp_path, made).layers[0].op == "onnx.some.where.Magic"


@pytest.mark.parametrize(
    ("version", "body", "operators"),
    [
        (13, "b = ReduceMean <axes = [1]> (a)", ["relu", "reduce_mean"]),
        # Version 18 has no such operator, and none of earlier versions to replace it.
        (20, "b = Gelu (a)", ["relu", "onnx.d.f"]),
    ],
)
def test_a_function_for_other_versions_of_operators_is_converted_or_told(
    version: int, body: str, operators: Sequence[str], tmp_path: Path
) -> None:
    function = f"<domain: 'd', opset_import: ['': {version}]> f (a) => (b) {{ {body} }}"
    main = "<ir_version: 8, opset_import: ['': 18, 'd': 1]> test (float[2,3] x) => (float[n,m] z)"
    made = parse_model(f"{main} {{ y = Relu (x) z = d.f (y) }} {function}".replace("'", '"'))
    layers = loaded(tmp_path, made).layers
    assert [it.op for it in layers] == operators
    why = "it is a function for other versions of operators than the model: export the model with one version"
    assert layers[-1].unmeasurable == (why if operators[-1] == "onnx.d.f" else None)


def test_an_operator_of_a_domain_that_onnx_lacks_is_an_unmeasurable_layer(tmp_path: Path) -> None:
    made = model([MAGIC, make_node("Relu", ["y"], ["z"])], {"x": (1, 2)}, ["z"])
    made.opset_import.append(make_opsetid("some.where", 1))
    trick, relu = loaded(tmp_path, made).layers
    assert trick.unmeasurable == "operator Magic of some.where is not known to the installed onnx"
    assert relu.unmeasurable is not None


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


GATHERED = [f"g{number}" for number in range(200)]


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
            [*(make_node("Gather", ["x", "v"], [it]) for it in GATHERED), make_node("Sum", GATHERED, ["y"])],
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
