"""Quantised copies of model files, by a quantiser that only copies."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from onnx import TensorProto
from onnx.helper import make_node, make_tensor

from dlbricks_tui.models import composites
from dlbricks_tui.models.composites import quantised_copy
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Numbers, TensorType
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.runtime.errors import WorkerDiedError, WorkerRefusedError
from dlbricks_tui.runtime.protocol import Reason
from tests.attack.damage import WAYS
from tests.models.onnx_models import loaded, model, saved, small


class Copier(WorkerFramework):
    """Copies files and counts the copies."""

    def __init__(self, name: str = "copier-1", refusal: str = "") -> None:
        self.name = name
        self.copies = 0
        self._refusal = refusal

    @property
    def quantiser(self) -> str:
        return self.name

    def quantise(self, file: Path, copy: Path, inputs: Mapping[str, TensorType], values: Mapping[str, Numbers]) -> None:
        assert inputs == {"x": TensorType((1, 3, 16, 16), "float32")}
        copy.write_bytes(file.read_bytes())
        if self._refusal:
            raise WorkerRefusedError(Reason.UNBUILDABLE, self._refusal, None)
        self.copies += 1


@pytest.fixture
def source(tmp_path: Path) -> ModelSource:
    return source_of(saved(tmp_path, small()))


@pytest.fixture
def written(tmp_path: Path) -> LayerGraph:
    return loaded(tmp_path, small())


def test_a_copy_is_written_once_and_keeps_the_name_and_the_shapes_of_the_model(
    source: ModelSource, written: LayerGraph, tmp_path: Path
) -> None:
    copier = Copier()
    found = quantised_copy(source, b"content", written, tmp_path, copier)
    assert (found.name, found.inputs) == (source.name, {"x": (1, 3, 16, 16)})
    assert found.path.read_bytes() == source.path.read_bytes()
    assert quantised_copy(source, b"content", written, tmp_path, copier) == found
    assert copier.copies == 1


@pytest.mark.parametrize("way", [way for way in WAYS if way != "a directory"])
def test_a_damaged_copy_is_written_anew(source: ModelSource, written: LayerGraph, tmp_path: Path, way: str) -> None:
    copier = Copier()
    path = quantised_copy(source, b"content", written, tmp_path, copier).path
    WAYS[way](path)
    assert quantised_copy(source, b"content", written, tmp_path, copier).path.read_bytes() == source.path.read_bytes()
    assert copier.copies == 2


def test_a_refusal_names_the_model_and_leaves_no_file(source: ModelSource, written: LayerGraph, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^net cannot be quantised: it has no layers$"):
        quantised_copy(source, b"content", written, tmp_path / "cache", Copier(refusal="it has no layers"))
    assert not list((tmp_path / "cache" / "quantised").iterdir())


def test_a_quantiser_that_crashes_is_named_and_leaves_no_file(
    source: ModelSource, written: LayerGraph, tmp_path: Path
) -> None:
    class Crashing(Copier):
        def quantise(
            self, file: Path, copy: Path, inputs: Mapping[str, TensorType], values: Mapping[str, Numbers]
        ) -> None:
            copy.with_name("prepared").write_bytes(b"half")
            raise WorkerDiedError("the worker died (SIGKILL)")

    with pytest.raises(ModelError, match=r"^net cannot be quantised: the worker died \(SIGKILL\)$"):
        quantised_copy(source, b"content", written, tmp_path / "cache", Crashing())
    assert not list((tmp_path / "cache" / "quantised").iterdir())


def test_a_cache_that_cannot_be_written_is_named(source: ModelSource, written: LayerGraph, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no folder")
    with pytest.raises(ModelError, match=r"net cannot be quantised: .*file/quantised cannot be written: Not a dir"):
        quantised_copy(source, b"content", written, tmp_path / "file", Copier())


def test_a_model_that_is_quantised_already_is_refused(source: ModelSource, tmp_path: Path) -> None:
    weight = make_tensor("w", TensorProto.INT8, (16, 4), [1] * 64)
    scale = make_tensor("s", TensorProto.FLOAT, (), [0.1])
    nodes = [make_node("DequantizeLinear", ["w", "s"], ["d"]), make_node("MatMul", ["x", "d"], ["y"])]
    graph = loaded(tmp_path, model(nodes, {"x": (1, 16)}, ["y"], [weight, scale]))
    assert graph.is_quantised
    with pytest.raises(ModelError, match="is quantised in its file, and runs as it is: choose precision f32"):
        quantised_copy(source, b"content", graph, tmp_path, Copier())


def test_a_model_of_many_weights_is_refused_before_it_is_quantised(
    source: ModelSource, written: LayerGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not written.is_quantised
    monkeypatch.setattr(composites, "MOST_WEIGHT_BYTES", 100)
    with pytest.raises(ModelError, match="GiB of weights"):
        quantised_copy(source, b"content", written, tmp_path, Copier())


def test_copies_used_longest_ago_make_room(
    source: ModelSource, written: LayerGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = source.path.stat().st_size
    monkeypatch.setattr(composites, "MOST_KEPT_BYTES", 2 * size)
    found = [quantised_copy(source, content, written, tmp_path, Copier()).path for content in (b"1", b"2", b"3")]
    assert found[-1].is_file()
    assert not all(path.is_file() for path in found)
