"""Hostile ONNX excerpts and zip files: each attack is refused in one line, before a runtime opens a file."""

import gzip
import io
import re
import stat
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import make_graph, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

from dlbricks_tui.models.graph import GraphInput, Level, TensorType
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.onnx_file import parse_onnx
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share import onnx_checks, suite_files
from dlbricks_tui.share.errors import BrokenBrickError, BrokenSuiteError
from dlbricks_tui.share.onnx_excerpts import OnnxReader
from dlbricks_tui.share.onnx_network import onnx_network
from dlbricks_tui.share.suite_files import Manifest, SuiteBrick, open_suite, sha256, write_suite
from tests.models.onnx_models import small
from tests.models.table_framework import TableFramework
from tests.share.trio import GIBIBYTE, grown, piped

Change = Callable[[ModelProto], object]


class Unopened(TableFramework):
    """A framework that must not be asked to open a file."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a runtime was asked for {name}")


def packed(sides: Sequence[int] = (1, 3, 16, 16)) -> bytes:
    """Return the excerpt that a suite would hold of a small network."""
    file = parse_onnx(small().SerializeToString(), "small")
    return onnx_network(file, {"x": GraphInput("x", TensorType(tuple(sides)))})


def changed(change: Change) -> bytes:
    made = ModelProto.FromString(packed())
    change(made)
    content: bytes = made.SerializeToString(deterministic=True)
    return content


def refused(folder: Path, content: bytes, most_bytes: int = GIBIBYTE) -> str:
    framework: Any = Unopened()
    loader = Loader(folder / "cache", framework, framework)
    with pytest.raises(BrokenBrickError) as error:
        OnnxReader(loader, Level.FUSED, folder, most_bytes).read(content)
    told = str(error.value)
    assert "\n" not in told
    assert len(told) < 400
    assert not list(folder.glob("*.onnx"))
    return told


def test_an_honest_excerpt_is_read(tmp_path: Path) -> None:
    loader = Loader(tmp_path / "cache", TableFramework())
    graph = OnnxReader(loader, Level.WRITTEN, tmp_path, GIBIBYTE).read(packed())
    assert [layer.kind for layer in graph.layers][:3] == [Kind.CONVOLUTION, Kind.ELEMENTWISE, Kind.POOLING]


def random(shape: Sequence[int], dtype: str = "float32") -> Any:
    return (np.random.default_rng(1).random(shape) * 100).astype(dtype)


def stored(name: str, location: str) -> Change:
    def change(made: ModelProto) -> None:
        array = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
        array.external_data.add(key="location", value=location)
        made.graph.initializer.append(array)

    return change


def array(values: Any) -> Change:
    return lambda made: made.graph.initializer.append(from_array(values, "weight99"))


def node(op: str, inputs: Sequence[str] = ("input0",), domain: str = "", **attributes: Any) -> Change:
    def change(made: ModelProto) -> None:
        added = make_node(op, inputs, ["t99_0"], "node99", domain=domain, **attributes)
        made.graph.node.append(added)
        made.graph.output.add(name="t99_0")
        if domain not in {it.domain for it in made.opset_import}:
            made.opset_import.append(make_opsetid(domain, 1))

    return change


def inside(nodes: Sequence[NodeProto], arrays: Sequence[TensorProto] = (), read: Sequence[str] = ()) -> GraphProto:
    """Return a graph of a loop: a condition, and nodes that write `inside9`."""
    inputs = [make_tensor_value_info(f"inside{place}", kind, ()) for place, kind in ((1, 7), (2, 9))]
    outputs = [make_tensor_value_info("inside2", 9, ()), make_tensor_value_info("inside9", 1, None)]
    for number, it in enumerate(nodes):
        it.name = f"inside{50 + number}"
    return make_graph(nodes, "inside", inputs, outputs, arrays)


def loop(limit: str, body: GraphProto, values: Mapping[str, Any] | None = None) -> Change:
    def change(made: ModelProto) -> None:
        for name, value in (values or {}).items():
            made.graph.initializer.append(from_array(np.array(value), name))
        node("Loop", [limit, ""], body=body)(made)

    return change


def nested(depth: int) -> Change:
    body = inside([make_node("Relu", ["input0"], ["inside9"])])
    for _ in range(depth):
        body = inside([make_node("Loop", ["weight99", ""], ["inside9"], body=body)])
    return loop("weight99", body, {"weight99": 3})


def constant_inside(values: Any) -> Change:
    nodes = [make_node("Constant", [], ["inside8"], value=from_array(values, "")), _relu("inside8")]
    return loop("weight99", inside(nodes), {"weight99": 3})


def weight_inside(values: Any) -> Change:
    return loop("weight99", inside([_relu("inside8")], [from_array(values, "inside8")]), {"weight99": 3})


def _relu(name: str) -> NodeProto:
    return make_node("Relu", [name], ["inside9"])


def attribute(name: str, **fields: Any) -> Change:
    return lambda made: made.graph.node[-1].attribute.append(AttributeProto(name=name, **fields))


def said(text: str) -> Change:
    def change(made: ModelProto) -> None:
        made.metadata_props[0].value = text

    return change


def filled(*sizes: int) -> Change:
    """Fill the first weight with another size."""

    def change(made: ModelProto) -> None:
        for it in made.graph.initializer:
            if it.name.endswith("_sizes"):
                it.CopyFrom(from_array(np.array(sizes, "int64"), it.name))
                return
        raise AssertionError("no weight is filled")

    return change


def doubled(times: int) -> Change:
    def change(made: ModelProto) -> None:
        name = "input0"
        for number in range(times):
            written = f"t{200 + number}_0"
            made.graph.node.append(make_node("Concat", [name, name], [written], f"node{200 + number}", axis=0))
            name = written
        made.graph.output.add(name=name)

    return change


def sized(op: str, *sizes: int) -> Change:
    """Add a node that makes a large tensor of the input."""

    def change(made: ModelProto) -> None:
        made.graph.initializer.append(from_array(np.array(sizes, "int64"), "weight99"))
        node(op, ["input0", *[""] * (2 if op == "Resize" else 0), "weight99"])(made)

    return change


def function(made: ModelProto) -> None:
    made.functions.add(name="unobtainium", domain="mine", node=[make_node("Relu", ["a"], ["b"])], output=["b"])


def unknown_field(made: ModelProto) -> None:
    made.MergeFromString(b"\xfa\x3e\x05hello")


CHANGES: Mapping[str, tuple[Change, str]] = {
    "external data by an absolute path": (stored("weight99", "/etc/passwd"), "array in another file"),
    "external data by a relative path": (stored("weight99", "../../secret"), "array in another file"),
    "external data in an attribute": (
        lambda made: made.graph.node[-1].attribute.append(
            AttributeProto(name="value", t=TensorProto(data_location=TensorProto.EXTERNAL))
        ),
        "array in another file",
    ),
    "a function": (function, "functions|version the file does not declare"),
    "training": (lambda made: made.training_info.add(), "training_info"),
    "a domain of its own": (node("Relu", domain="mine"), "other domains"),
    "an operator that loads a program": (node("EPContext", domain="com.microsoft"), "runs code or opens files"),
    "an operator that runs Python": (node("PythonOp", domain="com.microsoft"), "runs code or opens files"),
    "an operator that writes to a socket": (node("Send", domain="com.microsoft"), "runs code or opens files"),
    "an operator that does not exist": (node("Sabotage"), "no operator of the installed onnx"),
    "an attribute that is not declared": (attribute("secret", i=1), "does not declare"),
    "an attribute with a path": (attribute("mode", s=b"/etc/passwd"), "does not declare|texts"),
    "a loop without an end": (loop("", inside([_relu("input0")])), "loop of more than 100,000 steps, or without"),
    "a loop of many steps": (loop("weight99", inside([_relu("input0")]), {"weight99": 1 << 40}), "loop of more than"),
    "loops in loops": (nested(9), "nested more than"),
    "the name of a producer": (lambda made: setattr(made, "producer_name", "unobtainium"), "producer_name"),
    "a comment on the model": (lambda made: setattr(made, "doc_string", "unobtainium"), "doc_string"),
    "the name of a graph": (lambda made: setattr(made.graph, "name", "unobtainium"), "names or comments"),
    "the name of a node": (lambda made: setattr(made.graph.node[-1], "name", "unobtainium"), "a node called"),
    "the name of a tensor": (lambda made: made.graph.output.add(name="t9_\x1b[31m"), "no node writes|a tensor called"),
    "the name of an axis": (
        lambda made: setattr(made.graph.input[0].type.tensor_type.shape.dim[0], "dim_param", "unobtainium"),
        "an axis called",
    ),
    "types of inner tensors": (lambda made: made.graph.value_info.add(name="t0_0"), "value_info"),
    "metadata of the model": (lambda made: made.metadata_props.add(key="author", value="me"), "other metadata"),
    "metadata of a node": (
        lambda made: made.graph.node[0].metadata_props.add(key="author", value="me"),
        "with metadata",
    ),
    "metadata of a graph": (lambda made: made.graph.metadata_props.add(key="author", value="me"), "metadata_props"),
    "metadata in another spelling": (said('{"input0": {"shape": [1, 3, 16, 16]}}'), "another spelling"),
    "metadata about other inputs": (said('{"input7":{"shape":[1]}}'), "that it does not have"),
    "metadata that are damaged": (said('{"input0":[[['), "does not state shapes"),
    "an unknown field": (unknown_field, "unknown parts"),
    "a newer format": (lambda made: setattr(made, "ir_version", 99), "version 99 of the ONNX format"),
    "newer operators": (lambda made: setattr(made.opset_import[0], "version", 999), "version 999 of ONNX's operators"),
    "weights": (array(random((8, 3, 3, 3))), "weights do not travel"),
    "weights of 8 bits": (array(random((8, 3, 3, 3), "int8")), "weights do not travel"),
    "weights as indices": (array(random((300, 300), "int64")), "weights do not travel"),
    "weights in a loop": (weight_inside(random((8, 16))), "weights do not travel"),
    "weights of a constant in a loop": (constant_inside(random((8, 16))), "weights do not travel"),
    "weights in a list": (attribute("activation_alpha", floats=[0.5] * 65), "does not declare|hold weights"),
    "texts in an array": (array(np.array(["unobtainium"], object)), "string_data in its TensorProto"),
    "an array beside another": (
        lambda made: made.graph.initializer[0].float_data.extend([1.0]),
        "float_data in its TensorProto",
    ),
    "an array that claims to be larger": (
        lambda made: made.graph.initializer[0].dims.__setitem__(slice(None), [1 << 40]),
        "GiB of memory|another size than it says",
    ),
    "a sparse array": (lambda made: made.graph.sparse_initializer.add(), "sparse"),
    "a huge stated shape": (said('{"input0":{"shape":[1,3,1000000,1000000]}}'), "GiB of memory"),
    "a huge filled weight": (filled(1 << 20, 1 << 20), "GiB of memory"),
    "a weight of a negative size": (filled(8, -3, 3, 3), "negative size"),
    "a huge expansion": (sized("Expand", 1 << 15, 3, 1 << 10, 16), "GiB of memory|negative size"),
    "a huge resize": (sized("Resize", 1, 3, 1 << 15, 1 << 15), "GiB of memory"),
    "tensors that double": (doubled(20), "GiB of memory"),
}


@pytest.mark.parametrize("attack", CHANGES)
def test_an_excerpt_is_refused_before_a_runtime_opens_it(tmp_path: Path, attack: str) -> None:
    change, expected = CHANGES[attack]
    told = refused(tmp_path, changed(change))
    assert re.search(expected, told), told


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 100,
        b"not an ONNX file",
        packed()[:-40],
        gzip.compress(packed())[:-10],
        gzip.compress(b"\x0a" * 1000),
        gzip.compress(b" " * (2 << 20), 1),
        b"\xff" * 1000,
    ],
    ids=["nothing", "zeros", "text", "truncated", "torn gzip", "gzip of noise", "gzip bomb", "ones"],
)
def test_damaged_files_are_refused(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_checks, "_MOST_UNPACKED_BYTES", 1 << 20)
    assert refused(tmp_path, content)


# Zip files.


def brick(number: int, content: bytes, **changes: Any) -> SuiteBrick:
    about = {"format": Format.ONNX, "layers": 1, "cold": False, "bytes": len(content), "sha256": sha256(content)}
    return SuiteBrick(id=f"{number:032x}", **{**about, **changes})


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Write a suite of two bricks."""
    contents = [packed(), packed((1, 3, 32, 32))]
    bricks = tuple(brick(number, content) for number, content in enumerate(contents))
    manifest = Manifest("0" * 32, Level.FUSED, Precision.F32, ("onnxruntime",), bricks)
    path = tmp_path / "suite.dlbricks"
    write_suite(path, manifest, {it.id: content for it, content in zip(bricks, contents, strict=True)})
    return path


def rewritten(path: Path, change: Callable[[dict[str, bytes]], object], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def refusal(path: Path) -> str:
    with pytest.raises(BrokenSuiteError) as refused:
        open_suite(path)
    told = str(refused.value)
    assert "\n" not in told
    assert str(path) in told
    return told


def brick_refusals(path: Path) -> list[str]:
    """Return the refusal of each brick; empty for those that can be read."""
    found = []
    suite = open_suite(path)
    for it in suite.manifest.bricks:
        try:
            suite.network(it)
            found.append("")
        except BrokenBrickError as refused:
            found.append(str(refused))
    assert not any("\n" in told for told in found)
    return found


def test_an_honest_zip_file_is_read(suite: Path) -> None:
    assert brick_refusals(suite) == ["", ""]


def patched(marker: bytes, offset: int, value: bytes) -> Callable[[Path], object]:
    """Change bytes of the list of contents, at its last entry or its end."""

    def patch(path: Path) -> None:
        content = bytearray(path.read_bytes())
        place = content.index(marker) + offset
        content[place : place + len(value)] = value
        path.write_bytes(content)

    return patch


def updated(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda path: rewritten(path, lambda files: files.update({name: content}))


def commented(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"unobtainium"


def doubled_name(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("suite.json", b"{}")


def linked(path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(made, "w") as other:
        link, *names = archive.namelist()
        info = zipfile.ZipInfo(link)
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        other.writestr(info, "/etc/passwd")
        for name in names:
            other.writestr(name, archive.read(name))
    path.write_bytes(made.getvalue())


ZIPS: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "a path outside": (updated("../evil", b"hello"), "which its manifest does not describe"),
    "an absolute path": (updated("/etc/passwd", b"hello"), "which its manifest does not describe"),
    "control codes": (updated("bricks/\x1b[31m", b"hello"), "which its manifest does not describe"),
    "another file": (updated("notes.txt", b"hello"), "which its manifest does not describe"),
    "two files of one name": (doubled_name, "has two files of one name"),
    "unusual compression": (lambda path: rewritten(path, lambda files: None, zipfile.ZIP_LZMA), "an unusual way"),
    "a bomb": (updated("suite.json", b" " * ((1 << 20) + 1)), "suite.json in "),
    "a list of contents of a million files": (
        patched(b"PK\5\6", 12, (200 << 20).to_bytes(4, "little")),
        "list of contents of 209,715,200 bytes",
    ),
    "a huge file": (grown, "holds more than 256 MiB"),
    "a comment": (commented, "another one than ours"),
    "something behind it": (lambda path: path.write_bytes(path.read_bytes() + b"more"), "another one than ours"),
    "a pipe": (piped, "not a folder"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("attack", ZIPS)
def test_a_hostile_zip_file_is_refused(suite: Path, attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_files, "MOST_MANIFEST_BYTES", 1 << 20)
    change, expected = ZIPS[attack]
    change(suite)
    assert expected in refusal(suite)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        # The flags of the first entry in the list of contents, and its size.
        (patched(b"PK\1\2", 8, b"\1"), "encrypted"),
        (patched(b"PK\1\2", 24, (7).to_bytes(4, "little")), ""),
        (updated(f"bricks/{0:032x}.onnx", b" " * (8 << 20)), "holds more than"),
        (linked, "is not the file that the manifest describes"),
    ],
    ids=["encrypted", "lying size", "unpacks to more", "link"],
)
def test_a_hostile_brick_is_refused_and_the_others_are_read(
    suite: Path, change: Callable[[Path], object], expected: str
) -> None:
    change(suite)
    first, second = brick_refusals(suite)
    assert first and expected in first
    assert second == ""


def test_a_truncated_zip_file_is_refused(suite: Path) -> None:
    whole = suite.read_bytes()
    for length in range(1, len(whole), 97):
        suite.write_bytes(whole[:length])
        assert "is not a suite, or is damaged" in refusal(suite)
