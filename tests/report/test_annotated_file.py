from pathlib import Path

import onnx
import pytest

from dlbricks_tui.analysis.whole_models import Basis, WrittenTime, WrittenTimes
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.report.graph_files import write_annotated_copy
from dlbricks_tui.report.page import ReportError
from dlbricks_tui.runtime.traits import Format
from tests.models.table_framework import TableFramework


@pytest.fixture
def crnn(tmp_path: Path) -> LayerGraph:
    """A sample in its ONNX file."""
    (source,) = Library(SAMPLE_MODELS, tmp_path, Format.ONNX).find("crnn")
    return Loader(tmp_path, TableFramework()).load(source, Level.WRITTEN)


def one_ms_each(graph: LayerGraph) -> WrittenTimes:
    return WrittenTimes(tuple(WrittenTime(1_000_000_000, Basis.ROOFLINE) for _ in graph.layers), 0)


def test_nodes_and_model_have_their_times(crnn: LayerGraph, tmp_path: Path) -> None:
    written = tmp_path / "times.onnx"
    left = write_annotated_copy(written, crnn, one_ms_each(crnn), {"system": "here"})
    found = onnx.load(str(written), load_external_data=False)
    by_node = [{it.key: it.value for it in node.metadata_props} for node in found.graph.node]
    times = [float(facts["dlbricks.latency_ms"]) for facts in by_node if facts]
    assert sum(times) == pytest.approx(len(crnn.layers))
    assert left == sum(not facts for facts in by_node)
    assert {facts["dlbricks.basis"] for facts in by_node if facts} == {"roofline"}
    assert sum(float(facts["dlbricks.share"]) for facts in by_node if facts) == pytest.approx(1.0, abs=0.01)
    of_model = {it.key: it.value for it in found.metadata_props}
    assert float(of_model["dlbricks.latency_ms"]) == pytest.approx(len(crnn.layers))
    assert of_model["dlbricks.system"] == "here"


def test_the_copy_has_the_nodes_and_weights_of_the_file(crnn: LayerGraph, tmp_path: Path) -> None:
    assert crnn.file is not None
    written = tmp_path / "times.onnx"
    write_annotated_copy(written, crnn, one_ms_each(crnn), {})
    found = onnx.load(str(written), load_external_data=False)
    original = onnx.load(str(crnn.file), load_external_data=False)
    for node in found.graph.node:
        del node.metadata_props[:]
    assert found.graph == original.graph


def test_a_file_that_cannot_be_written_is_named(crnn: LayerGraph, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="name another file"):
        write_annotated_copy(tmp_path / "none" / "times.onnx", crnn, one_ms_each(crnn), {})


def test_the_times_of_an_annotated_file_are_replaced(crnn: LayerGraph, tmp_path: Path) -> None:
    first, second = tmp_path / "first.onnx", tmp_path / "second.onnx"
    write_annotated_copy(first, crnn, one_ms_each(crnn), {"system": "here"})
    write_annotated_copy(second, crnn.with_key("first", first), one_ms_each(crnn), {"system": "there"})
    found = onnx.load(str(second), load_external_data=False)
    names = [it.key for it in found.metadata_props]
    assert len(names) == len(set(names))
    assert ("dlbricks.system", "there") in [(it.key, it.value) for it in found.metadata_props]


def test_the_file_of_the_model_is_not_replaced(crnn: LayerGraph) -> None:
    assert crnn.file is not None
    before = crnn.file.read_bytes()
    with pytest.raises(ReportError, match="own file: name another file"):
        write_annotated_copy(crnn.file, crnn, one_ms_each(crnn), {})
    assert crnn.file.read_bytes() == before
