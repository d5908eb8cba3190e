import pytest

from dlbricks_tui.answers.reported import (
    COMPOSED_SYSTEM,
    LAYERS,
    SPEEDUP,
    SYSTEMS,
    geometric_mean,
    published_model,
    published_models,
)
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.library import Library


def test_the_published_models_are_those_of_table_1() -> None:
    sources = Library(SAMPLE_MODELS, SAMPLE_MODELS).find("table1")
    published = [published_model(source.table1_id) for source in sources]
    assert [it.layers for it in published if it] == [source.layers for source in sources]
    assert sum(it.layers for it in published_models().values()) == LAYERS


@pytest.mark.parametrize(
    ("system", "mean", "models"),
    [("c4.xlarge", 1.125, 49), ("c4.2xlarge", 1.086, 49), ("c5.xlarge", 0.969, 49), ("c5.2xlarge", 1.033, 48)],
)
def test_single_layers_add_up_to_the_published_sums(system: str, mean: float, models: int) -> None:
    assert geometric_mean(system) == pytest.approx(mean, abs=0.001)
    assert sum(it.ratio(system) is not None for it in published_models().values()) == models
    assert system in SPEEDUP


def test_other_systems_and_models_have_no_published_results() -> None:
    assert geometric_mean("m7i.large") is None
    assert published_model(None) is None
    assert published_model("51") is None


def test_running_in_parallel_is_never_slower_than_in_sequence() -> None:
    for model in published_models().values():
        assert set(model.end_to_end_ms) == set(SYSTEMS)
        assert model.parallel_ratio <= model.sequential_ratio < 1
        assert model.sequential_ratio == model.sequential_ms / model.end_to_end_ms[COMPOSED_SYSTEM]
