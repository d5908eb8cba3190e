from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models.errors import WrongRuntimeError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.mxnet.symbol_writer import SymbolWriter
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import MXNET, Format
from dlbricks_tui.runtime.variant import Kernels, Optimisation, Precision
from dlbricks_tui.tui.corpus import screen as work
from dlbricks_tui.tui.model_reader import MOST_KEPT, ModelReader
from dlbricks_tui.tui.open_model import ModelSpec
from dlbricks_tui.tui.session import Session
from tests.models.onnx_models import saved, small, with_everything
from tests.tui.application import LIBRARY
from tests.tui.results import source_called


def wish(name: str, granularity: int = 1, level: Level = Level.WRITTEN) -> ModelSpec:
    return ModelSpec(source_called(name), level, Cutting(granularity))


@pytest.fixture
def reader(tmp_path: Path) -> ModelReader:
    return ModelReader(DataFolder(tmp_path), SAMPLE_MODELS)


def test_a_model_is_read_once_for_all_cuttings(reader: ModelReader) -> None:
    first, second = reader.open(wish("resnet18_v1")), reader.open(wish("resnet18_v1", 4))
    assert second.graph is first.graph
    assert len(second.decomposition.occurrences) < len(first.decomposition.occurrences)


def test_the_last_few_models_are_kept_in_memory(reader: ModelReader) -> None:
    names = LIBRARY[: MOST_KEPT + 1]
    graphs = [reader.open(wish(name)).graph for name in names]
    assert reader.open(wish(names[-1])).graph is graphs[-1]
    assert reader.open(wish(names[0])).graph is not graphs[0]


def test_reading_from_the_cache_starts_no_framework(reader: ModelReader, tmp_path: Path) -> None:
    seen = reader.decompose_cached(wish("resnet18_v1"))
    assert seen is not None and len(seen.graph.layers) == 68
    assert reader.decompose_cached(wish("resnet18_v1", level=Level.FUSED)) is None
    assert not (tmp_path / "log").exists()


def test_a_model_is_opened_as_its_runtime_optimises_it_at_a_limited_level(reader: ModelReader, tmp_path: Path) -> None:
    usual = ModelSpec(source_of(saved(tmp_path, small())), Level.FUSED, Cutting(1))
    limited = replace(usual, kernels=Kernels(optimisation=Optimisation.NONE))
    fused, plain = reader.open(usual).graph, reader.open(limited).graph
    ops = [it.op for it in plain.layers]
    assert "relu" in ops and "relu" not in [it.op for it in fused.layers]
    assert reader.open(usual).graph is fused
    found = reader.decompose_cached(limited)
    assert found is not None and [it.op for it in found.graph.layers] == ops


def test_a_quantised_copy_is_opened_beside_the_model_where_a_runtime_has_the_precision(
    reader: ModelReader, tmp_path: Path
) -> None:
    usual = ModelSpec(source_of(saved(tmp_path, small())), Level.FUSED, Cutting(1))
    copied = replace(usual, precision=Precision.INT8)
    assert not reader.open(usual).graph.is_quantised
    assert reader.open(copied).graph.is_quantised
    assert reader.decompose_cached(copied) is not None
    with pytest.raises(WrongRuntimeError, match="no runtime here computes MXNet models in int8: choose another prec"):
        reader.open(replace(wish("resnet18_v1"), precision=Precision.INT8))


def test_models_that_cannot_be_read_are_left_out_of_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Runtime("gone", "/nowhere/python", MXNET.framework, "1.9.1", "3.11.0")
    usual = Registry.preferred_for
    monkeypatch.setattr(
        Registry,
        "preferred_for",
        lambda registry, forms, precision=None: (
            gone if Format.MXNET in forms and gone.computes_in(precision) else usual(registry, forms, precision)
        ),
    )
    monkeypatch.setattr(work, "get_current_worker", lambda: SimpleNamespace(is_cancelled=False))
    writer = SymbolWriter()
    (tmp_path / "gone-symbol.json").write_bytes(writer.render(writer.op("exp", writer.input("data", (1, 8)))))
    damaged, whole = (saved(tmp_path, with_everything(), name) for name in ("damaged", "whole"))
    (tmp_path / "big").write_bytes(bytes(16))
    made = with_everything()
    made.graph.node[4].attribute[0].t.data_type = 99
    damaged.write_bytes(made.SerializeToString())

    specs = [
        ModelSpec(source_of(path), Level.WRITTEN, Cutting(1))
        for path in (tmp_path / "gone-symbol.json", damaged, whole)
    ]
    session = Session(DataFolder(tmp_path / "data"))
    # A busy host also gets comparisons of the models read so far.
    *_, compared = work.compare_models(session.reader, specs, read_all=True)
    assert [model.name for model in compared.corpus.models] == ["whole"]
    gone_line, damaged_line = compared.refused
    assert gone_line.startswith("gone: cannot start /nowhere/python")
    assert "'filled' is damaged" in damaged_line
    assert session.reader.decompose_cached(specs[1]) is None
