"""The contents of reports: series, estimates, rows of analyses, and what the paper has published."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.analysis.bounds import GroupTimes
from dlbricks_tui.api.analyses import by_loss, csv_rows
from dlbricks_tui.api.reported import (
    COMPOSED_SYSTEM,
    LAYERS,
    LONGEST_LABEL,
    SPEEDUP,
    SYSTEMS,
    ReportContents,
    ReportedModel,
    find_contents,
    geometric_mean,
    published_model,
    published_models,
    reported_model,
)
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.store.records import PUBLISHED, EndToEnd, Record
from tests.analysis.executions import analysed
from tests.estimate.stored import brick_records, model_record, store_of
from tests.estimate.table1 import NoFramework, table1
from tests.store.samples import run, system

# CapsNet and SqueezeNet; 2 and 3 are one network.
CAPSNET, SQUEEZENET, VGG = (decompose(table1()[number]) for number in ("4", "16", "2"))
HOST: dict[str, Any] = {"system": "here", "runtime": "ours"}
C5: dict[str, Any] = {"system": "c5.xlarge", "runtime": "mxnet-1.5.1"}


def sources(*names: str) -> tuple[ModelSource, ...]:
    return Library(SAMPLE_MODELS, Path("nowhere")).find_all(names)


def contents_of(
    folder: Path, records: Sequence[Record], *names: str, only: frozenset[str] | None = None
) -> ReportContents:
    with store_of(folder / "store", *records) as store:
        loader = Loader(folder / "cache", NoFramework())
        return find_contents(store, lambda _: loader, sources(*names), names, "here", only)


def test_an_empty_store_gives_the_figures_without_latencies(tmp_path: Path) -> None:
    found = contents_of(tmp_path, [], "table1:4", "table1:16")
    assert [(it.name, it.layers) for it in found.corpus.models] == [
        ("CapsNet Trained on MNIST Data", 53),
        ("SqueezeNet V1.1 Trained on ImageNet Competition Data", 69),
    ]
    assert found.series == ()


def test_each_series_is_listed_and_this_host_comes_first(tmp_path: Path) -> None:
    there = [*brick_records(SQUEEZENET, **C5), model_record(SQUEEZENET, 30.0, **C5)]
    here = [*brick_records(SQUEEZENET, **HOST), model_record(SQUEEZENET, 20.0, **HOST)]
    found = contents_of(tmp_path, [system("c5.xlarge"), *there, *here], "table1:16")
    assert [(it.way.system, it.title, it.slug) for it in found.series] == [
        ("here", "here, written", "here-written"),
        ("c5.xlarge", "c5.xlarge, written", "c5.xlarge-written"),
    ]
    ours, theirs = (series.results[0] for series in found.series)
    assert ours.found.sequential_ms == theirs.found.sequential_ms
    assert (ours.found.end_to_end, theirs.found.end_to_end) == ((20.0, 19.8, 20.2), (30.0, 29.7, 30.3))
    assert ours.result_id == here[-1].uuid if isinstance(here[-1], EndToEnd) else False
    assert (
        contents_of(tmp_path / "again", [*there, *here], "table1:16", only=frozenset({"here"})).series[0].way.system
        == "here"
    )


def test_series_of_one_system_have_distinct_names_and_files(tmp_path: Path) -> None:
    records = [it for name in ("one", "two") for it in brick_records(SQUEEZENET, system="here", runtime=name)]
    found = contents_of(tmp_path, records, "table1:16")
    assert [it.title for it in found.series] == ["here, written, one", "here, written, two"]
    assert [it.slug for it in found.series] == ["here-written-1", "here-written-2"]


def test_granularities_are_those_of_the_runs(tmp_path: Path) -> None:
    pairs = decompose(SQUEEZENET.graph, Cutting(2))
    records = [
        *brick_records(SQUEEZENET, **HOST),
        *brick_records(pairs, **HOST),
        model_record(SQUEEZENET, 20.0, **HOST),
    ]
    asked = run(granularity=2, level=Level.WRITTEN, **HOST)
    (series,) = contents_of(tmp_path, [*records, asked], "table1:16").series
    assert series.granularities == (1, 2)
    assert [len(it.found.estimate.parts) for it in series.results] == [69, len(pairs.occurrences)]
    (alone,) = contents_of(tmp_path / "alone", records, "table1:16").series
    assert alone.granularities == (1,)


@pytest.mark.parametrize(("protocol", "own"), [(PUBLISHED, True), ("hot", False)])
def test_equal_models_keep_their_own_published_end_to_end_latencies(tmp_path: Path, protocol: str, own: bool) -> None:
    way = {**HOST, "protocol": protocol}
    names = [source.name for source in sources("table1:2", "table1:3")]
    timed = [model_record(VGG, latency, name=name, **way) for name, latency in zip(names, (100.0, 110.0), strict=True)]
    (series,) = contents_of(tmp_path, [*brick_records(VGG, **way), *timed], "table1:2", "table1:3").series
    assert [(it.reported.name, it.found.estimate.model, it.result_id) for it in series.results] == [
        (name, name, (it if own else timed[-1]).uuid) for name, it in zip(names, timed, strict=True)
    ]
    assert len({it.found.sequential_ms for it in series.results}) == 1


def test_incomplete_or_untimed_models_are_not_judged(tmp_path: Path) -> None:
    gone = sorted(CAPSNET.suite)[:1]
    timed = model_record(CAPSNET, 9.0, **HOST)
    records = [*brick_records(CAPSNET, without=gone, **HOST), timed, *brick_records(VGG, **HOST)]
    (series,) = contents_of(tmp_path, records, "table1:4", "table1:2").series
    assert [it.judged for it in series.results] == [False, False]
    assert series.granularities == () and series.accuracy(1) is None
    # A model that was timed only end to end is marked.
    ((found,),) = (it.results for it in contents_of(tmp_path / "timed", [timed], "table1:4").series)
    assert found.found.sequential_ms is None and found.found.end_to_end is not None


def test_unreadable_models_are_named_and_the_others_are_reported(tmp_path: Path) -> None:
    broken = tmp_path / "broken-symbol.json"
    broken.write_text("{}")
    found = contents_of(tmp_path, [], "table1:4", str(broken))
    assert [it.table1_id for it in found.reported_models] == ["4"]
    assert found.left_out[0].startswith("broken: ")
    with pytest.raises(ModelError, match="broken"):
        contents_of(tmp_path / "alone", [], str(broken))


def test_the_fifty_have_unique_labels_that_fit_and_are_those_of_table_1() -> None:
    fifty = Library(SAMPLE_MODELS, SAMPLE_MODELS).find("table1")
    labels = [reported_model(source).label for source in fifty]
    assert len(set(labels)) == 50 and max(map(len, labels)) <= LONGEST_LABEL
    assert labels[8] == "9 Inception V3"
    # A model of the user is labelled by its name.
    assert ReportedModel("resnet18_v1").label == "resnet18_v1"
    assert ReportedModel("x" * 80).label == "x" * (LONGEST_LABEL - 1) + "…"
    published = [published_model(source.table1_id) for source in fifty]
    assert [it.layers for it in published if it] == [source.layers for source in fifty]
    assert sum(it.layers for it in published_models().values()) == LAYERS
    assert published_model(None) is published_model("51") is None


def test_single_layers_add_up_to_the_published_sums() -> None:
    for name, mean, models in (
        ("c4.xlarge", 1.125, 49),
        ("c4.2xlarge", 1.086, 49),
        ("c5.xlarge", 0.969, 49),
        ("c5.2xlarge", 1.033, 48),
    ):
        assert geometric_mean(name) == pytest.approx(mean, abs=0.001)
        assert sum(it.ratio(name) is not None for it in published_models().values()) == models
        assert name in SPEEDUP
    assert geometric_mean("m7i.large") is None


def test_running_in_parallel_is_never_slower_than_in_sequence() -> None:
    for model in published_models().values():
        assert set(model.end_to_end_ms) == set(SYSTEMS)
        assert model.parallel_ratio <= model.sequential_ratio < 1
        assert model.sequential_ratio == model.sequential_ms / model.end_to_end_ms[COMPOSED_SYSTEM]


def test_comma_separated_rows_have_a_cell_for_each_column() -> None:
    columns, full, empty = csv_rows([analysed("a"), analysed("b", best_ms=None, gap=None, gains={})])
    assert len(columns) == len(set(columns)) == len(full) == len(empty)
    held = dict(zip(columns, full, strict=True))
    assert (held["model"], held["best_runtime"], held["runtime_gain"]) == ("a", "runtime-other", 0.25)


def test_layers_that_lose_most_come_first() -> None:
    losses = ("long", 90, 85), ("short", 20, 5), ("best", 30, 30)
    groups = [GroupTimes((name,), latency_ps, best_ps, ()) for name, latency_ps, best_ps in losses]
    assert [it.layers[0] for it in by_loss(groups)] == ["short", "long", "best"]
