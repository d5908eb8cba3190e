from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.mxnet.symbol_writer import SymbolWriter
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import MXNET
from dlbricks_tui.settings import SAMPLE_MODELS, DataFolder
from dlbricks_tui.tui.opened import Wish
from dlbricks_tui.tui.opening import MOST_KEPT, Opener
from dlbricks_tui.tui.screens.corpus import errands
from dlbricks_tui.tui.screens.corpus.surveyed import HowSurveyed
from dlbricks_tui.tui.session import Session
from tests.models.onnx_models import saved, with_everything
from tests.tui.bench import LIBRARY
from tests.tui.results import source_called


def wish(name: str, granularity: int = 1, level: Level = Level.WRITTEN) -> Wish:
    return Wish(source_called(name), level, Cutting(granularity))


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    return Opener(DataFolder(tmp_path), SAMPLE_MODELS)


def test_a_model_is_read_once_however_it_is_cut(opener: Opener) -> None:
    first, second = opener.open(wish("resnet18_v1")), opener.open(wish("resnet18_v1", 4))
    assert second.graph is first.graph
    assert len(second.decomposition.occurrences) < len(first.decomposition.occurrences)


def test_of_many_models_the_last_few_are_kept(opener: Opener) -> None:
    names = LIBRARY[: MOST_KEPT + 1]
    graphs = [opener.open(wish(name)).graph for name in names]
    assert opener.open(wish(names[-1])).graph is graphs[-1]
    assert opener.open(wish(names[0])).graph is not graphs[0]


def test_a_passing_look_starts_no_framework(opener: Opener, tmp_path: Path) -> None:
    seen = opener.glance(wish("resnet18_v1"))
    assert seen is not None and len(seen.graph.layers) == 68
    assert opener.glance(wish("resnet18_v1", level=Level.FUSED)) is None
    assert not (tmp_path / "log").exists()


def test_one_model_without_its_framework_ends_no_survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Runtime("gone", "/nowhere/python", MXNET.framework, "1.9.1", "3.11.0")
    monkeypatch.setattr(Registry, "preferred", lambda registry: gone)
    monkeypatch.setattr(errands, "get_current_worker", lambda: SimpleNamespace(is_cancelled=False))
    writer = SymbolWriter()
    (tmp_path / "gone-symbol.json").write_bytes(writer.render(writer.op("exp", writer.input("data", (1, 8)))))
    damaged, whole = (saved(tmp_path, with_everything(), name) for name in ("damaged", "whole"))
    (tmp_path / "big").write_bytes(bytes(16))
    made = with_everything()
    made.graph.node[4].attribute[0].t.data_type = 99
    damaged.write_bytes(made.SerializeToString())

    posted: list[Any] = []
    wishes = [
        Wish(source_of(path), Level.WRITTEN, Cutting(1)) for path in (tmp_path / "gone-symbol.json", damaged, whole)
    ]
    session = Session(DataFolder(tmp_path / "data"))
    errands.CorpusErrands(session, posted.append).survey(wishes, HowSurveyed(Level.WRITTEN, Cutting(1), True))
    (compared,) = [message for message in posted if isinstance(message, errands.Compared)]
    assert [model.name for model in compared.surveyed.corpus.models] == ["whole"]
    gone_line, damaged_line = compared.surveyed.refused
    assert gone_line.startswith("gone: cannot start /nowhere/python")
    assert "'filled' is damaged" in damaged_line
    assert session.opener.glance(wishes[1]) is None
