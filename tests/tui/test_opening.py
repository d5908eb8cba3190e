from pathlib import Path

import pytest

from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.models.graph import Level
from dlbricks_tui.settings import SAMPLE_MODELS, DataFolder
from dlbricks_tui.tui.opened import Wish
from dlbricks_tui.tui.opening import MOST_KEPT, Opener
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
