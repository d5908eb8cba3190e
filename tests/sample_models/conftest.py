from collections.abc import Callable
from pathlib import Path

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from sample_models.builders.__main__ import SAMPLES
from sample_models.builders.delivered_types import NoFramework


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelSource, ...]:
    return Library(SAMPLES, tmp_path_factory.mktemp("data")).samples()


@pytest.fixture(scope="session")
def decomposed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[ModelSource], Decomposition]:
    """Decompose each file once, where there is no framework and nothing was inferred before."""
    cache = tmp_path_factory.mktemp("cache")
    loader = Loader(cache, NoFramework())
    known: dict[Path, Decomposition] = {}

    def found(source: ModelSource) -> Decomposition:
        if source.path not in known:
            known[source.path] = decompose(loader.load(source))
            assert not list(cache.rglob("*.json")), "answers of a framework"
        return known[source.path]

    return found
