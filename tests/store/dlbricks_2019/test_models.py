from pathlib import Path

import pytest

from dlbricks_tui.bricks.identity import brick_of, whole_model
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.store.dlbricks_2019.checkout import PublishedModels
from tests.bricks.graphs import DATA, Spec, after, built
from tests.models.table_framework import TableFramework

NAMES = ("conv/1", "conv1", "Conv1")
GRAPH = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("relu", after(1))], NAMES.__getitem__)


def source(name: str, number: str | None = "1") -> ModelSource:
    return ModelSource(name, Path("somewhere"), table1_id=number)


@pytest.fixture(scope="module")
def fifty(tmp_path_factory: pytest.TempPathFactory) -> PublishedModels:
    """Return the models of Table 1, which are read without a framework."""
    folder = tmp_path_factory.mktemp("library")
    return PublishedModels(Library(SAMPLE_MODELS, folder).samples(), Loader(folder, TableFramework()).load)


@pytest.mark.parametrize("name", ["Tiny Net V1.1 (A-to-B)", "tiny_net_v1.1_a-to-b", "“Tiny Net” V1.1, A to B"])
def test_a_model_is_found_with_any_punctuation_in_its_name(name: str) -> None:
    found = PublishedModels([source("Tiny Net V1.1 (A-to-B)")], lambda _: GRAPH).find(name)
    assert found is not None
    assert found.name == "Tiny Net V1.1 (A-to-B)"
    assert found.key == whole_model(GRAPH).key


@pytest.mark.parametrize("name", ["Tiny Net V1.2 (A-to-B)", "Tiny", "", "\x00", "x" * 100_000])
def test_a_similar_name_is_not_accepted(name: str) -> None:
    assert PublishedModels([source("Tiny Net V1.1 (A-to-B)")], lambda _: GRAPH).find(name) is None


def test_only_models_of_table_1_were_published() -> None:
    assert PublishedModels([source("resnet50_v1", None)], lambda _: GRAPH).find("resnet50_v1") is None


def test_a_layer_is_found_by_its_exact_name_with_or_without_quotes() -> None:
    found = PublishedModels([source("Tiny Net")], lambda _: GRAPH).find("Tiny Net")
    assert found is not None
    assert found.brick("conv/1") == found.brick(' "conv" / "1"') == brick_of(GRAPH, [0])
    assert found.brick("conv1") == brick_of(GRAPH, [1])
    assert found.brick("CONV1") is None


def test_a_model_is_read_on_first_use_and_only_once() -> None:
    read: list[str] = []

    def load(asked: ModelSource) -> LayerGraph:
        read.append(asked.name)
        return GRAPH

    models = PublishedModels([source("One"), source("Two", "2")], load)
    assert read == []
    assert models.find("Two") is models.find("two")
    assert read == ["Two"]


@pytest.mark.soak
def test_layer_names_of_the_fifty_are_unique(fifty: PublishedModels, tmp_path: Path) -> None:
    sources = [each for each in Library(SAMPLE_MODELS, tmp_path).samples() if each.table1_id is not None]
    found = [fifty.find(each.name) for each in sources]
    assert [each.name for each in found if each is not None] == [each.name for each in sources]
    assert sum(len(each.bricks) for each in found if each is not None) == 10_815


@pytest.mark.parametrize(
    ("published", "number"),
    [
        ("ResNet-101 Trained on YFCC100m Geotagged Data", "12"),
        ("Unguided Volumetric Regression Net for 3D Face Reconstruction", "47"),
    ],
)
def test_names_that_differ_from_the_paper_are_known(
    fifty: PublishedModels, tmp_path: Path, published: str, number: str
) -> None:
    (meant,) = Library(SAMPLE_MODELS, tmp_path).find(f"table1:{number}")
    found = fifty.find(published)
    assert found is not None
    assert found.name == meant.name
