"""Results, and the layers that models have in common."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from dlbricks_tui.api.model_reading import GroupAccuracy
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Corpus, ModelBricks, corpus_of_bricks
from dlbricks_tui.documents.corpus import common_words, corpus_parts, granularity_columns, model_columns, models_of
from dlbricks_tui.documents.layout import TableLayout
from dlbricks_tui.documents.parts import Part, Table
from dlbricks_tui.documents.results import (
    RESULT_COLUMNS,
    cell,
    histogram_parts,
    history_columns,
    result_parts,
    results_answer,
    short_cell,
    short_cells,
)
from dlbricks_tui.estimate.comparison import Accuracy, SharedSettings
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.store.columns import COLUMNS, Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Result
from dlbricks_tui.store.selections import OLDEST_FIRST, SortOrder, Way, parse_filter
from dlbricks_tui.wording import numbers
from dlbricks_tui.wording.numbers import age, seconds_since
from tests.documents.snapshots import check
from tests.store.samples import WHEN, end_to_end, form, measurement, provenance, run


def summaries(tmp_path: Path, *results: Result) -> list[Summary]:
    with ResultsDatabase(tmp_path / "store") as store:
        store.add(*results)
        return store.results(order=OLDEST_FIRST).summaries()


def test_a_result_has_its_samples_how_it_was_measured_and_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "now", lambda: datetime.fromisoformat(WHEN).timestamp() + 3600)
    flagged = measurement(8.0, flags=("drift",), noise=(("load", 0.25), ("turbo", True), ("steal", None)))
    one, whole = replace(flagged, uuid="1" * 32, occurrence=(("layer", "conv1"),)), end_to_end(uuid="2" * 32)
    of_one, of_whole = summaries(tmp_path, one, whole)
    origin = provenance(evaluation="nightly.toml", unmet=("turbo is on", "4 cores"))
    check(
        "results",
        {
            "a brick": result_parts(of_one, one, None, (), "theirs.json"),
            "a mean": result_parts(of_one, one, provenance(), (("conv0", 1.0), ("conv1", 2.0))),
            "a model": result_parts(of_whole, replace(whole, noise=(("shared", 0.25),)), origin),
            "one whose samples are damaged": result_parts(of_whole, None, None),
        },
        width=140,
    )


def test_a_history_tells_changes_and_those_that_may_be_due_to_sampling(tmp_path: Path) -> None:
    days = [
        measurement(ms, uuid=f"{day:032x}", when=f"2026-11-0{day}T08:00:00.000000+00:00", run=f"r{day}")
        for day, ms in ((1, 2.0), (2, 1.0), (3, 1.001), (4, 2.0))
    ]
    found = summaries(tmp_path, *days)[::-1]
    alike = measurement(1.0, uuid="9" * 32, when="2026-11-05T08:00:00.000000+00:00", run="r9", flags=("drift",))
    (doubtful,) = summaries(tmp_path / "other", alike)
    cases = {"four days": found, "one day": found[:1], "a doubtful day": [doubtful], "no day": []}
    check("history", {name: [Table(history_columns(each), each)] for name, each in cases.items()}, width=60)


def test_every_column_is_declared() -> None:
    assert list(RESULT_COLUMNS) == list(COLUMNS)


def test_a_value_has_a_text_a_precise_one_and_a_short_one() -> None:
    runtime, when = "onnxruntime-1.23 python-3.11", "2026-11-21T12:34:56.789000+00:00"
    for column, value, text, precise, short in (
        ("trimmed_mean_ms", 1234.5678, "1,235", "1235", "1,235"),
        ("id", "0123456789abcdef", "0123456789ab", "0123456789ab", "0123456789ab"),
        ("good", False, "no", "no", "no"),
        ("good", True, "yes", "yes", "yes"),
        ("runtime", runtime, runtime, runtime, "ONNX Runtime 1.23"),
        ("threads", 0, "0", "0", "default"),
        ("when", when, "2026-11-21 12:34", "2026-11-21 12:34:56", age(seconds_since(when))),
    ):
        found = cell(column, value), cell(column, value, precise=True), short_cell(column, value)
        assert found == (text, precise, short)


def test_every_age_fits_its_column() -> None:
    now = datetime.now(tz=timezone.utc)
    ages = {short_cell("when", (now - timedelta(seconds=7**power)).isoformat()) for power in range(10)}
    assert "now" in ages and all(len(it) <= RESULT_COLUMNS["when"].least for it in ages)


def test_a_brick_in_a_list_has_its_part_beside_its_model_or_says_that_it_is_a_part(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path / "store") as store:
        # A run of two models, of which one was timed, and a brick that was imported.
        store.add(form(), run(models=("resnet50_v1", "alexnet")), measurement(), measurement(run="imported"))
        store.add(end_to_end())
        found = store.results(order=(SortOrder("of"), SortOrder("models")))
        assert short_cells(found, ("models",))["models"] == [
            found.values("name")[0],
            "part of resnet50_v1, alexnet",
            "resnet50_v1",
        ]
        assert short_cells(found, ("models", "name")) == {
            "models": ["", "resnet50_v1, alexnet", "resnet50_v1"],
            "name": [*found.values("name")[:2], "whole model"],
        }
        assert short_cells(found, ("name",))["name"] == found.values("name")
        for sought in ("model=resnet50_v1", "models~alex", "model=ab", "part~Convolution models~alex"):
            assert len(store.results(*map(parse_filter, sought.split()))) == 1, sought


def test_the_answer_about_results_counts_them_and_their_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "now", lambda: datetime.fromisoformat(WHEN).timestamp() + 36 * 3600)
    assert results_answer(1041, 17, WHEN) == "1,041 results of 17 models; the newest 36 h ago"
    assert results_answer(1, 0, WHEN) == "1 result; the newest 36 h ago"


CONVOLUTIONS = (Kind.CONVOLUTION, Kind.CONVOLUTION, Kind.LINEAR)
ONE = ModelBricks("one", ("a", "a", "b"), ("", "", ""), CONVOLUTIONS)
TWO = ModelBricks("two", ("a",), ("x",), CONVOLUTIONS[:1])


def parts(corpus: Corpus, unit: str = "layer", speedup: float | None = None) -> Iterator[Part]:
    return corpus_parts(corpus, [it.name for it in corpus.models], unit, speedup)


def test_a_corpus_has_its_totals_unique_layers_repeated_kinds_and_similarity() -> None:
    check(
        "corpus",
        {
            "two models": parts(corpus_of_bricks([ONE, TWO]), speedup=1.5),
            "one model in sequences": parts(corpus_of_bricks([ONE]), "sequence"),
            "no layers": parts(corpus_of_bricks([ModelBricks("none", (), (), ())])),
        },
        width=60,
    )


def test_the_names_of_all_models_are_fitted_together_and_found_words_are_highlighted() -> None:
    models = models_of(corpus_of_bricks([ONE, TWO]), ["a long name", "a long day"])
    columns = model_columns("layer", lambda names, width: [it[-min(width, 9) :] for it in names])
    layout = TableLayout(Table(columns, models), 60)
    assert [layout.row(at, ["day"])[2:4] for at in (0, 1)] == [
        (("long name", "text"), ("  ", "text")),
        ((" long ", "text"), ("day", "match")),
    ]


def measured(granularity: int, system: str, speedup: float | None) -> GroupAccuracy:
    way = Way(system, "onnxruntime-1.23.0 threads-2", Level.FUSED, "hot")
    return GroupAccuracy(
        SharedSettings(way, granularity, Cut.CHAIN),
        Accuracy(3, 1.0, 0.021, -0.05, 1.0, 1.0, 2, 0.03, 1.0, speedup),
        "2 d ago",
    )


def test_granularities_tell_what_differs_and_in_common_is_the_rest() -> None:
    found = [measured(1, "here", 2.0), measured(2, "there", None), measured(3, "here", 1.0)]
    assert common_words(found) == ("2 threads", "fused", "ONNX Runtime 1.23.0") and not common_words(found[:1])
    cases = {"several": found, "one without a speed-up": found[1:2], "none": []}
    check("granularities", {name: [Table(granularity_columns(each), each)] for name, each in cases.items()}, width=80)


def test_a_histogram_shows_the_bound_and_how_many_samples_are_above_it() -> None:
    samples = [*[1.0] * 8, 5.0, 6.0]
    bounds = {"a bound": 5.5, "one below all": 0.5, "one above all": 9.0}
    cases = {name: histogram_parts(samples, bound) for name, bound in bounds.items()}
    cases |= {"no bound": histogram_parts(samples), "no samples": histogram_parts([], 1.0)}
    check("histogram", cases, width=80)
