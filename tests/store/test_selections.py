import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tinydb import where

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.columns import COLUMNS, Content
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import QueryError
from dlbricks_tui.store.records import Measurement
from dlbricks_tui.store.selections import (
    OLDEST_FIRST,
    Combination,
    SortOrder,
    checked_columns,
    combinations,
    equal,
    parse_order,
)
from dlbricks_tui.store.statistics import summarise
from tests.store.samples import brick, end_to_end, failure, form, measurement, run

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def at(day: int) -> str:
    return f"2026-11-{day:02}T08:00:00.000000+00:00"


FAST = measurement(0.5, brick=brick(0), when=at(1), uuid="0a" * 16)
POOLING = form(1, "Pooling")
SLOW = measurement(8.0, brick=POOLING.key, when=at(2), system="c5.2xlarge", uuid="0b" * 16)
DOUBTFUL = measurement(0.6, brick=brick(0), when=at(3), flags=("drift",), uuid="0c" * 16)
BLOCKED = measurement(0.4, brick=brick(0), context="blocked", when=at(4), level=Level.WRITTEN, uuid="ab" * 16)
MODEL = end_to_end(30.0, when=at(5), uuid="ac" * 16)
ALL = (FAST, SLOW, DOUBTFUL, BLOCKED, MODEL)


def test_the_speed_of_the_host_is_a_column(tmp_path: Path) -> None:
    said = [(("reference_ms", value),) for value in (0.6, "quick", None, True)]
    with ResultsDatabase(tmp_path) as store:
        store.add(*(measurement(noise=noise, when=at(1 + day)) for day, noise in enumerate([(), *said])))
        assert store.select(order=OLDEST_FIRST).values("reference_ms") == [0.0, 0.6, 0.0, 0.0, 0.0]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResultsDatabase]:
    """Return a store with four measurements and one model, each a day younger than the one before."""
    with ResultsDatabase(tmp_path_factory.mktemp("store")) as store:
        store.add(form(0), POOLING, failure(), *ALL)
        yield store


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], ALL),
        (["system=c5.2xlarge"], (SLOW,)),
        (["system=c5.2xlarge,nowhere"], (SLOW,)),
        (["system!=c5.2xlarge"], (FAST, DOUBTFUL, BLOCKED, MODEL)),
        (["name=resnet50_v1"], (MODEL,)),
        (["pooling"], (SLOW,)),
        (["kind=convolution"], (FAST, DOUBTFUL, BLOCKED)),
        (["kind="], (MODEL,)),
        (["2026-11-03"], (DOUBTFUL,)),
        (["2026-13-03"], ()),
        (["of=brick"], (FAST, SLOW, DOUBTFUL, BLOCKED)),
        (["good=no"], (DOUBTFUL,)),
        (["good=yes", "context=plain"], (FAST, SLOW)),
        (["level=written"], (BLOCKED,)),
        ([f"brick={brick(0)[:6]}"], (FAST, DOUBTFUL, BLOCKED)),
        ([f"brick={brick(0)[:6]},{POOLING.key[:6]}"], (FAST, SLOW, DOUBTFUL, BLOCKED)),
        ([f"brick=={brick(0)[:6]}"], ()),
        (["id=0"], (FAST, SLOW, DOUBTFUL)),
        (["id=ab,ac"], (BLOCKED, MODEL)),
        (["id=abab", "id!=0"], (BLOCKED,)),
        (["trimmed_mean_ms>1", "trimmed_mean_ms<=10"], (SLOW,)),
        (["ms>1", "ms<=10"], (SLOW,)),
        (["batch_size=1,2"], ALL),
        (["when>=2026-11-04"], (BLOCKED, MODEL)),
        (["when<2026-11-02"], (FAST,)),
        (["when=2026-11-03"], (DOUBTFUL,)),
        (["when!=2026-11-03"], (FAST, SLOW, BLOCKED, MODEL)),
        (["when=2026-11-03T08:00:00"], (DOUBTFUL,)),
        (["when<2026-11-03T09:00:00+01:00"], (FAST, SLOW)),
    ],
)
def test_filters_find_the_expected_results(
    store: ResultsDatabase, filters: list[str], expected: tuple[Any, ...]
) -> None:
    found = store.select(*filters, order=OLDEST_FIRST)
    assert found.values("id") == [record.uuid for record in expected]


def test_a_model_name_filters_the_results_of_its_runs(tmp_path: Path) -> None:
    of_both = measurement(0.5, run="both", when=at(1))
    of_one = measurement(0.6, run="one", when=at(2))
    unknown = measurement(0.7, run="from elsewhere", when=at(3))
    with ResultsDatabase(tmp_path) as store:
        store.add(form(0), of_both, of_one, unknown)
        store.add(run(id="both", models=("vgg16", "alexnet")), run(id="one", models=("alexnet",)))
    # From the saved index as well as from the documents.
    for _ in range(2):
        with ResultsDatabase(tmp_path) as store:
            for text, found in {
                "alexnet": [of_both, of_one],
                "VGG": [of_both],
                "models~vgg16": [of_both],
                "models=alexnet": [of_one],
                "models=": [unknown],
            }.items():
                ids = store.select(text, order=OLDEST_FIRST).values("id")
                assert ids == [each.uuid for each in found], text
            assert store.select(order=OLDEST_FIRST).values("models") == ["vgg16, alexnet", "alexnet", ""]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("colour=red", "there is no column 'colour'; the columns are id, of, name"),
        ("samples=many", "needs a number"),
        ("samples~1", "compares by ="),
        ("samples<1,2", "compares by ="),
        ("good=perhaps", "needs yes or no"),
        ("system>a", "compares texts by"),
        ("id=xyz", "needs an id"),
        ("id~ab", "compares ids by"),
        ("when=yesterday", "needs a date such as 2026-11-21"),
        ("when~2026", "compares times by"),
    ],
)
def test_an_invalid_filter_is_refused_with_the_reason(store: ResultsDatabase, text: str, complaint: str) -> None:
    with pytest.raises(QueryError, match=complaint):
        store.select(text)


def test_conditions_from_values_take_them_literally(store: ResultsDatabase) -> None:
    assert store.select(equal(brick=brick(0), good=True, batch_size=1), order=OLDEST_FIRST).values("id") == [
        FAST.uuid,
        BLOCKED.uuid,
    ]
    assert not len(store.select(equal(system="c5.xlarge,c5.2xlarge")))
    assert not len(store.select(equal(brick=brick(0)[:8])))
    assert store.select(equal(name="resnet50_v1")).values("id") == [MODEL.uuid]
    # c5.2xlarge comes before c5.xlarge.
    for query in (where("system") != "c5.xlarge", where("system") < "c5.xlarge"):
        assert store.select(query).values("id") == [SLOW.uuid]


def test_every_column_sorts_as_its_values_do(store: ResultsDatabase) -> None:
    for column in COLUMNS:
        ascending = store.select(order=[parse_order(column)]).values(column)
        assert ascending == sorted(ascending), column
        assert store.select(order=[parse_order(f"-{column}")]).values(column) == sorted(ascending, reverse=True)


def test_sorting_is_stable_and_uses_later_orders_for_ties(store: ResultsDatabase) -> None:
    def ids(*orders: SortOrder) -> list[str]:
        return [each[:2] for each in store.select(order=orders).values("id")]

    assert ids(SortOrder("of"), SortOrder("trimmed_mean_ms")) == ["ab", "0a", "0c", "0b", "ac"]
    assert ids(SortOrder("of", descending=True), SortOrder("when", descending=True)) == ["ac", "ab", "0c", "0b", "0a"]
    assert ids(SortOrder("dtype", descending=True)) == ids(SortOrder("dtype")) == ["0a", "0b", "0c", "ab", "ac"]


def test_an_unknown_column_is_refused() -> None:
    for names in (["colour"], ["id", "-when"]):
        with pytest.raises(QueryError, match="there is no column"):
            checked_columns(names)
    with pytest.raises(QueryError, match="there is no column 'colour'"):
        parse_order("-colour")


def test_a_summary_has_everything_but_the_samples_and_a_part_of_a_selection_keeps_its_order(
    store: ResultsDatabase,
) -> None:
    (it,) = store.select(equal(id=SLOW.uuid)).summaries()
    statistics = SLOW.statistics
    assert (it.trimmed_mean_ms, it.low_ms, it.samples) == (
        *(statistics.trimmed_mean_ms, statistics.low_ms, statistics.count),
    )
    assert (it.level, it.when, it.good, it.of) == (Level.FUSED, at(2), True, "brick")
    assert it.name == "Pooling 3x3/2 1x64x56x1"
    found = store.select(order=[SortOrder("when", descending=True)])
    assert found[1:3].values("id") == [BLOCKED.uuid, DOUBTFUL.uuid]
    assert found[1:3].result(1) == DOUBTFUL


def test_results_are_counted_by_series(store: ResultsDatabase) -> None:
    assert combinations(store.select()) == [
        Combination("c5.xlarge", "mxnet-1.9.1", Level.FUSED, "hot", pairs=1, measurements=2, models=1),
        Combination("c5.2xlarge", "mxnet-1.9.1", Level.FUSED, "hot", pairs=1, measurements=1, models=0),
        Combination("c5.xlarge", "mxnet-1.9.1", Level.WRITTEN, "hot", pairs=1, measurements=1, models=0),
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    column=st.sampled_from([name for name, content in COLUMNS.items() if content is Content.NUMBER]),
    comparison=st.sampled_from(list(COMPARISONS)),
    value=st.sampled_from([0.0, 0.4, 0.51, 1, 10, 30.6]),
)
def test_number_filters_agree_with_python(store: ResultsDatabase, column: str, comparison: str, value: float) -> None:
    test = COMPARISONS[comparison]
    kept = [each for each in store.select(order=OLDEST_FIRST).values(column) if test(each, value)]
    assert store.select(f"{column}{comparison}{value}", order=OLDEST_FIRST).values(column) == kept


def test_records_of_one_run_about_one_brick_are_one_result_at_their_mean(tmp_path: Path) -> None:
    def timed(brick: str, latency_ms: float, **more: Any) -> Measurement:
        samples = (latency_ms,) * 5
        return measurement(brick=brick, context="", samples_ms=samples, statistics=summarise(samples), **more)

    with ResultsDatabase(tmp_path) as store:
        one, other = form(1, "conv"), form(2, "relu")
        store.add(one, other, *(timed(one.key, each, run="a") for each in (1.0, 5.0)), timed(one.key, 4.0, run="b"))
        store.add(timed(other.key, 3.5, run="a"), *(end_to_end(run="a", when=at(it)) for it in (21, 22)))
        found = store.results("of=brick", order=["trimmed_mean_ms"])
        # Sorted by the mean: the records alone would have 5 ms last.
        assert [(it.name, it.run, it.trimmed_mean_ms, it.samples) for it in found] == [
            (store.select(f"brick={one.key}")[0].name, "a", 3.0, 10),
            (store.select(f"brick={other.key}")[0].name, "a", 3.5, 5),
            (store.select(f"brick={one.key}")[0].name, "b", 4.0, 5),
        ]
        assert found.values("trimmed_mean_ms") == [3.0, 3.5, 4.0]
        assert sorted(found.result(0).samples_ms) == [1.0] * 5 + [5.0] * 5
        assert len(found[:1].records) == 2 and len(found.records) == 4
        # Of a whole model the newest record counts.
        (whole,) = store.results("of=model")
        assert whole.when == at(22) and len(store.results("of=model").records) == 2
        assert store.result_of(store.select("of=model", order=["when"])[0])[0] == whole
        # Filters select whole results by these figures.
        by_figures = store.results("ms>3.2", "of=brick", order=["ms"])
        assert by_figures.values("trimmed_mean_ms") == [3.5, 4.0]
        assert store.results("n>5", "of=brick").values("trimmed_mean_ms") == [3.0]
        assert [store.results(f"id={it.id}")[0] for it in found[:1].records] == [found[0]] * 2
        assert not store.results(f"when<{whole.when}", "of=model")


def test_all_results_follow_what_is_stored_and_deleted(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(FAST, MODEL)
        assert store.results().values("id") == [MODEL.uuid, FAST.uuid]
        store.add(SLOW)
        assert store.results(order=["when"]).values("id") == [FAST.uuid, SLOW.uuid, MODEL.uuid]
        store.delete([SLOW.uuid])
        assert store.results().values("id") == [MODEL.uuid, FAST.uuid]
