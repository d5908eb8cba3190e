"""The bytes of model files: plain or gzipped, large arrays stay on disk, and oversized files are refused unread."""

import errno
import gzip
import hashlib
import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy
import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_node, make_tensor, make_tensor_value_info
from onnx.numpy_helper import from_array

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.models import content, onnx_file
from dlbricks_tui.models.content import content_sha256, read_content
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.onnx_arrays import onnx_weights
from dlbricks_tui.models.onnx_file import read_onnx, refuse_too_many_parts
from tests.models.onnx_models import kept_in, loaded, model, saved, small
from tests.models.symbols import refusal
from tests.models.table_framework import TableFramework

NO_NODES = b'{"nodes": []}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "net-symbol.json"
    path.write_bytes(NO_NODES)
    return path


@contextmanager
def little_memory(most_bytes: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most_bytes


def refused(path: Path) -> str:
    return refusal(lambda: read_content(path))


def test_plain_and_gzipped_files_are_read_through_links_too_and_have_the_digest_of_their_content(
    path: Path, tmp_path: Path
) -> None:
    (tmp_path / "link.json").symlink_to(path)
    packed = tmp_path / "net-symbol.json.gz"
    for data in (NO_NODES, b"", b'{"nodes": [1]}'):
        path.write_bytes(data)
        packed.write_bytes(gzip.compress(data[:5]) + gzip.compress(data[5:]))
        assert read_content(path) == read_content(tmp_path / "link.json") == read_content(packed) == data
        assert content_sha256(packed) == content_sha256(path) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent.json", "{path} cannot be read: No such file or directory"),
        ("", "{path} is a directory; give the path of a model file"),
        ("loop", os.strerror(errno.ELOOP)),
        ("pipe", "{path} is not a regular file"),
        ("/dev/zero", "/dev/zero is not a regular file"),
        ("net\0.json", "not a path"),
        ("n" * 300, os.strerror(errno.ENAMETOOLONG)),
    ],
)
def test_what_is_no_file_is_refused_without_waiting_and_has_no_digest(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / name
    assert said.format(path=path) in refused(path)
    refusal(lambda: content_sha256(path))


def test_an_unreadable_file_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(path: Path, *_: int) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    # The superuser, who may run these tests, can read everything.
    monkeypatch.setattr(os, "open", forbid)
    assert refused(path) == f"{path} cannot be read: Permission denied"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda packed: packed[:-9],
        lambda packed: packed[:12],
        lambda packed: packed[:2],
        lambda packed: packed[:-1] + bytes([packed[-1] ^ 1]),
        lambda packed: packed[:10] + b"\xff" * 20,
        lambda packed: packed[:2] + b"\x09" + packed[3:],
    ],
    ids=["cut", "cut early", "only its mark", "wrong length", "wrong data", "unknown method"],
)
def test_broken_gzip_data_is_refused(path: Path, spoil: Callable[[bytes], bytes]) -> None:
    path.write_bytes(spoil(gzip.compress(NO_NODES)))
    assert refused(path).startswith(f"{path} is broken gzip data: ")


def test_gzip_bombs_and_large_files_are_refused_before_they_fill_the_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "MOST_BYTES", 2**16)
    monkeypatch.setattr(content, "_MOST_UNPACKED_BYTES", 2**18)
    path.write_bytes(gzip.compress(bytes(2**24)))
    with little_memory(2**20):
        assert "unpacks to more than 0 MiB: not a symbol file" in refused(path)
    assert "unpacks to more than 2 GiB: not a model file" in refusal(lambda: content_sha256(path))
    # A sparse file.
    os.truncate(path, 0)
    os.truncate(path, 2**40)
    assert "holds more than 0 MiB: not a symbol file" in refused(path)


# ONNX files.

LARGE = 2**19
VALUES = numpy.arange(LARGE, dtype=numpy.float32)


@pytest.fixture(autouse=True)
def _files_of_megabytes_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_file, "_SMALL_FILE", 2**20)


def with_large_arrays() -> ModelProto:
    """Return a model with three large arrays: one of raw bytes, one of numbers, and one inside a node."""
    numbers = TensorProto(name="numbers", data_type=TensorProto.FLOAT, dims=(LARGE,), float_data=VALUES)
    nodes = [
        make_node("Constant", [], ["held"], value=from_array(VALUES)),
        make_node("Add", ["x", "raw"], ["a"]),
        make_node("Add", ["a", "numbers"], ["b"]),
        make_node("Add", ["b", "held"], ["y"]),
    ]
    return model(nodes, {"x": (LARGE,)}, ["y"], [from_array(VALUES, "raw"), numbers])


def refused_onnx(path: Path) -> str:
    return refusal(lambda: refuse_too_many_parts(read_onnx(path, "net"), "net"))


def test_a_small_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = saved(tmp_path, small())
    content = path.read_bytes()
    assert read_onnx(path, "net") == content
    path.write_bytes(gzip.compress(content))
    assert read_onnx(path, "net") == content


def test_large_arrays_stay_on_disk_and_are_found_there(tmp_path: Path) -> None:
    made = with_large_arrays()
    path = saved(tmp_path, made)
    with little_memory(2**20):
        content = read_onnx(path, "net")
    assert len(content) < 2_000
    assert [layer.weights[0].shape for layer in loaded(tmp_path, made).layers] == [(LARGE,)] * 3
    weights = {name: numpy.concatenate(list(values)) for name, values in onnx_weights(path)}
    assert set(weights) == {"raw", "numbers"}
    assert all(numpy.array_equal(values, VALUES) for values in weights.values())
    # A file that ends too early is refused.
    os.truncate(path, path.stat().st_size // 2)
    assert refused_onnx(path) == "net is not an ONNX file, or is damaged"


def test_numbers_of_four_bits_are_read_from_a_file_beside_the_model(tmp_path: Path) -> None:
    weight = kept_in("weights", TensorProto(name="w", data_type=TensorProto.INT4, dims=(3,)))
    (tmp_path / "weights").write_bytes(bytes([0x21, 0x03]))
    cast, add = make_node("Cast", ["w"], ["c"], to=TensorProto.FLOAT), make_node("Add", ["x", "c"], ["y"])
    path = saved(tmp_path, model([cast, add], {"x": (3,)}, ["y"], [weight], opset=21))
    ((name, (values,)),) = onnx_weights(path)
    assert (name, values.astype(int).tolist()) == ("w", [1, 2, 3])


def test_large_arrays_in_branches_stay_on_disk(tmp_path: Path) -> None:
    result = make_tensor_value_info("r", TensorProto.FLOAT, None)
    inside = make_graph([make_node("Add", ["x", "w"], ["r"])], "inside", [], [result], [from_array(VALUES, "w")])
    nodes = [make_node("If", ["c"], ["y"], then_branch=inside, else_branch=inside)]
    made = model(nodes, {"x": (LARGE,)}, ["y"], [make_tensor("c", TensorProto.BOOL, (), [True])])
    path = saved(tmp_path, made)
    with little_memory(2**20):
        assert len(read_onnx(path, "net")) < 2_000
    (layer,) = loaded(tmp_path, made).layers
    assert [weight.shape for weight in layer.weights] == [(LARGE,)]


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (2**30, "net is not an ONNX file, or is damaged"),
        (2**40, "net holds more than 2047 MiB: not an ONNX file"),
    ],
)
def test_sparse_files_are_refused_unread(size: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.touch()
    os.truncate(path, size)
    with little_memory(2**20):
        assert refused_onnx(path) == said


def test_too_many_bytes_outside_the_arrays_are_refused_unread(tmp_path: Path) -> None:
    made = small()
    made.doc_string = "n" * (65 * 2**20)
    path = saved(tmp_path, made)
    del made
    with little_memory(2**20):
        assert refused_onnx(path) == "net holds more than 64 MiB beside its arrays"


@pytest.mark.parametrize("small_file", [2**24, 0], ids=["small", "large"])
def test_too_many_small_parts_are_refused_before_they_fill_the_memory(
    small_file: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_file, "_SMALL_FILE", small_file)
    monkeypatch.setattr(onnx_file, "_MOST_PARTS", 1_000)
    path = tmp_path / "net.onnx"
    # An empty opset, in two bytes.
    path.write_bytes(b"\x42\x00" * 1_001)
    assert refused_onnx(path) == "net holds more than 1,000 names, or eight times as many numbers"


@pytest.mark.parametrize("small_file", [2**24, 0], ids=["small", "large"])
def test_the_numbers_of_a_large_forest_are_read_and_a_brick_has_their_hash(
    small_file: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_file, "_SMALL_FILE", small_file)
    monkeypatch.setattr(onnx_file, "_MOST_PARTS", 60_000)
    thresholds = [numpy.arange(number, number + 400_000, dtype=numpy.float32).tolist() for number in (0, 1)]
    forests = [make_node("Forest", ["x"], ["y"], domain="of.trees", nodes_values=values) for values in thresholds]
    one, other = (model([forest], {"x": (1, 4)}, ["y"]) for forest in forests)
    for made in (one, other):
        made.opset_import.add(domain="of.trees", version=1)
    forms = [brick_of(loaded(tmp_path, made), (0,)).canonical for made in (one, other)]
    assert forms[0] != forms[1] and len(forms[0]) < 500


def test_weights_of_more_than_two_gigabytes_are_not_read(tmp_path: Path) -> None:
    # 2.5 GiB without any content on the disk.
    rows, columns = 2**15, 5 * 2**12
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(rows, columns))
    made = model([make_node("MatMul", ["x", "w"], ["y"])], {"x": (1, rows)}, ["y"], [kept_in("weights", weight)])
    (tmp_path / "weights").touch()
    os.truncate(tmp_path / "weights", rows * columns * 4)
    path = saved(tmp_path, made)
    with little_memory(2**27):
        graph = Loader(tmp_path / "cache", TableFramework()).load(source_of(path))
    assert graph.weight_bytes > 2**31
    assert graph.layers[0].outputs[0].shape == (1, columns)
