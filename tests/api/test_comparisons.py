"""Comparisons of results: sides by name, corresponding executions, changes, columns and estimates."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dlbricks_tui.api.changes import (
    NO_EXECUTION,
    NO_RESULT,
    NO_TIME,
    OTHER_CONTENT,
    Columns,
    EstimateOf,
    compare,
    compared_results,
    estimates_of,
    false_alarms,
    hosts_of,
    number_tested,
    overall,
    regrouped,
    versions_of,
)
from dlbricks_tui.api.open_models import ComparableRow
from dlbricks_tui.api.pairs import ComparedTwo, compare_named, compare_rows, named_side
from dlbricks_tui.api.sides import (
    KINDS,
    Found,
    Naming,
    NotComparableError,
    PairKind,
    ResultExecution,
    Side,
    corresponding,
    facts_of,
    named_sides,
    read_sides,
    select_named,
    side_of,
    value_in_words,
)
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.documents.comparison import question_words
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.variant import USUAL_KERNELS, Precision
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import QueryError
from dlbricks_tui.store.records import Record
from tests.api.exports import (
    DEFINITIONS,
    MXNET,
    NEWER,
    ONE,
    TWO,
    exported,
    in_three_runs,
    layer,
    model,
    origin,
    side,
)
from tests.estimate.stored import brick_records, model_record, store_of
from tests.estimate.table1 import NoFramework, table1
from tests.store.samples import runtime, system


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultsDatabase]:
    """One model that was timed at both levels, in three runs each."""
    with ResultsDatabase(DataFolder(tmp_path).store) as found:
        found.add(*DEFINITIONS)
        for level, latency_ms in ((Level.WRITTEN, 12.0), (Level.FUSED, 10.0)):
            found.add(*in_three_runs(model("m", latency_ms, level=level, run=f"r-{level.value}")))
        yield found


def test_one_word_has_its_kind_and_several_are_a_selection(store: ResultsDatabase) -> None:
    found = select_named(store, "onnxruntime")
    assert (found.kind, found.name, found.words) == (PairKind.RUNTIME, ONE, f"runtime {ONE}")
    found = select_named(store, "here of=model")
    assert (found.kind, found.name, found.words) == (PairKind.SELECTION, *["system here, of=model"] * 2)


def test_a_new_kind_of_results_needs_one_declaration(
    store: ResultsDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(QueryError, match="is no system, runtime, run or day with results"):
        select_named(store, "fused")
    # All that it needs, besides a panel with rows that stand for it.
    monkeypatch.setitem(KINDS, "level", Naming("level"))
    first, second = named_side(store, "written"), named_side(store, "fused")
    found = compare_named(store, first, second)
    assert question_words(found.of, found.a.name, found.b.name) == "Which level is faster: A written or B fused?"
    assert (found.verdict, round(found.ratio, 2)) == (Verdict.FASTER, 0.83)
    assert compared_results(store, first, second).a.name == "level written"
    assert [it.name for it in named_sides(["written", "fused"], DataFolder(tmp_path))] == [
        "level written",
        "level fused",
    ]
    one, other = (ComparableRow("level", it, it, it) for it in ("written", "fused"))
    session = SimpleNamespace(results=lambda: ResultsDatabase(DataFolder(tmp_path).store))
    marked = compare_rows(cast("Any", session), one, other, None)
    assert isinstance(marked, ComparedTwo) and (marked.of, marked.verdict) == ("level", Verdict.FASTER)
    with pytest.raises(QueryError, match="is no system, runtime, run, level or day with results"):
        select_named(store, "fuse")


@pytest.mark.parametrize("is_large", [False, True], ids=["in this process", "in processes of their own"])
def test_files_are_read_in_their_order_with_the_state_of_their_signatures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_large: bool
) -> None:
    if is_large:
        monkeypatch.setattr("dlbricks_tui.api.sides._LARGE_BYTES", 0)
    first, second = exported(tmp_path / "a.json", model("m", 1.0)), exported(tmp_path / "b.json.gz", layer(0, 1.0))
    (tmp_path / "b.json.gz.sig").write_text("a signature")
    sides = read_sides([second, first])
    assert [(it.name, len(it.results), it.signature) for it in sides] == [
        (str(second), 1, "b.json.gz.sig, not verified"),
        (str(first), 1, "none"),
    ]
    link = tmp_path / "link.json"
    link.symlink_to(first)
    with pytest.raises(NotComparableError, match="is named twice"):
        read_sides([first, link])


USUAL = ResultExecution(
    "here", "mxnet", "1.9.1", "3.11", 1, 1, Precision.F32, USUAL_KERNELS, (), Level.FUSED, "inside-1"
)


ONNX = replace(USUAL, framework="onnxruntime", version="1.20")
THREADS = {number: replace(USUAL, threads=number) for number in (1, 2, 4)}


@pytest.mark.parametrize(
    ("ones", "others", "differ"),
    [
        ([THREADS[1], THREADS[2]], [THREADS[2], THREADS[4]], [set()]),
        # What each group has one value of is compared, and named.
        ([USUAL], [replace(USUAL, system="there")], [{"system"}]),
        ([USUAL], [replace(USUAL, version="1.9.2")], [{"version"}]),
        ([USUAL], [THREADS[2]], [{"threads"}]),
        ([USUAL], [replace(USUAL, batch=8)], [{"batch"}]),
        ([USUAL], [replace(USUAL, precision=Precision.BF16)], [{"precision"}]),
        ([USUAL], [replace(USUAL, level=Level.WRITTEN)], [{"level"}]),
        ([USUAL], [replace(USUAL, variables=(("OMP_WAIT_POLICY", "active"),))], [{"variables"}]),
        ([USUAL], [replace(ONNX, threads=2)], [{"framework", "version", "threads"}]),
        # Several values on a side are not, and methods never.
        ([THREADS[1], THREADS[2]], [THREADS[4]], []),
        ([USUAL], [replace(USUAL, method="alone-1")], []),
        # The versions of each framework are compared.
        ([USUAL, ONNX], [USUAL, replace(ONNX, version="1.21")], [set(), {"version"}]),
    ],
)
def test_executions_correspond_unless_several_values_differ(
    ones: list[ResultExecution], others: list[ResultExecution], differ: list[set[str]]
) -> None:
    found = corresponding(ones, others)
    assert [set(it.differ) for it in found] == differ
    for it in found:
        assert it.first in ones and it.second in others
        assert {name for name in it.differ if getattr(it.first, name) == getattr(it.second, name)} == set()


def test_circumstances_have_words() -> None:
    words = {"threads": "1 thread", "batch": "1", "precision": "f32", "variables": "none", "level": "fused"}
    assert {name: value_in_words(name, USUAL) for name in words} == words


def test_the_facts_of_each_side_are_shown_and_only_differences_are_repeated() -> None:
    packages = (("dlbricks", "0.2.0"), ("python", "3.11.7"), ("onnxruntime", "1.20"))
    host = (("kernel", "6.1.0"), ("turbo", True))
    first = side("a.json", model("m", 1.0), layer(0, 1.0), origin(packages=packages, host=host))
    second = side(
        "b.json",
        model("m", 1.0, runtime=NEWER, when="2026-11-22T08:00:00.000000+00:00"),
        model("n", 1.0, runtime=NEWER, flags=("noisy",)),
        origin(
            runtime=NEWER, packages=(("dlbricks", "0.3.0"), *packages[1:]), host=(("kernel", "6.1.0"), ("turbo", False))
        ),
    )
    facts = {it.name: it for it in facts_of([first, second])}
    assert facts["models"].values == ("1", "1")
    assert facts["results in doubt"].values == ("0", "1")
    assert facts["measured"].values == ("2026-11-21", "2026-11-22")
    assert facts["framework"].values == ("ONNX Runtime 1.20", "ONNX Runtime 1.21")
    assert {name: it.values for name, it in facts.items() if it.differs} == {
        "framework": ("ONNX Runtime 1.20", "ONNX Runtime 1.21"),
        "dlbricks": ("0.2.0", "0.3.0"),
        "turbo": ("on", "off"),
    }


def test_what_one_side_does_not_tell_is_no_difference_and_signatures_are_shown_if_any_is_known() -> None:
    facts = facts_of([side("a", model("m", 1.0)), side("b", model("n", 1.0), origin())])
    assert not any(it.differs for it in facts)
    signed = side_of("a", [*DEFINITIONS, model("m", 1.0)], signature="signed by ann")
    known = {it.name: it for it in facts_of([signed, side("b", model("m", 1.0))])}
    assert known["signature"].values == ("signed by ann", "not known")


def test_results_in_doubt_are_left_out_and_a_side_without_good_results_is_one_line() -> None:
    doubtful = model("other", 1.0, flags=("noisy",))
    assert [it.name for it in side("a", model("m", 10.0), doubtful).results] == ["m"]
    for records, why in (
        ((), "it has no results of models or bricks"),
        ((doubtful,), "all 1 of its results are in doubt"),
    ):
        with pytest.raises(NotComparableError, match=f"a has nothing to compare: {why}"):
            side("a", *records)


def test_models_are_slower_faster_the_same_or_unknown_and_the_largest_change_comes_first() -> None:
    before = {"slow": 10.0, "slower": 10.0, "fast": 10.0, "same": 10.0, "noisy": 10.0}
    after = {"slow": 10.8, "slower": 13.0, "fast": 8.0, "same": 10.1, "noisy": 10.2}
    noise = {"noisy": 0.5}
    first, second = (
        side(letter, *in_three_runs(*(model(name, it, noise=noise.get(name, 0.005)) for name, it in each.items())))
        for letter, each in (("a", before), ("b", after))
    )
    found = compare(first, second)
    assert [(it.name, it.change.verdict) for it in found.models] == [
        ("slower", Verdict.SLOWER),
        ("slow", Verdict.SLOWER),
        ("fast", Verdict.FASTER),
        ("noisy", Verdict.UNKNOWN),
        ("same", Verdict.SAME),
    ]
    assert found.models[0].change.interval[0] < 0.3 < found.models[0].change.interval[1]
    assert (found.bricks, found.alone) == ((), ((), ()))


def test_a_change_of_a_brick_counts_from_one_percent_on_and_that_of_a_model_from_three() -> None:
    first = model("m", 10.0, noise=0.001), layer(0, 10.0, noise=0.001), layer(1, 10.0, noise=0.001)
    second = model("m", 10.2, noise=0.001), layer(0, 10.2, noise=0.001), layer(1, 10.05, noise=0.001)
    found = compare(side("a", *in_three_runs(*first)), side("b", *in_three_runs(*second)))
    assert [it.change.verdict for it in found.models] == [Verdict.SAME]
    assert [it.change.verdict for it in found.bricks] == [Verdict.SLOWER, Verdict.SAME]
    assert all(it.change.significant for it in (*found.models, *found.bricks))


SAME, MOVED, ZERO = layer(0, 1.0), layer(0, 1.0, context="cold"), layer(0, 0.0)
BOTH, GONE = model("both", 1.0), model("gone", 1.0)


@pytest.mark.parametrize(
    ("first", "second", "compared", "alone"),
    [
        ([SAME], [MOVED], 0, [[("conv", NO_RESULT)], [("conv", NO_RESULT)]]),
        ([ZERO], [SAME], 0, [[("conv", NO_TIME)], [("conv", NO_TIME)]]),
        ([BOTH], [model("both", 1.0, model="ef" * 32)], 0, [[("both", OTHER_CONTENT)], [("both", OTHER_CONTENT)]]),
        (
            [BOTH, GONE, model("both", 1.0, runtime=TWO)],
            [BOTH, model("new", 1.0)],
            1,
            [[("both", NO_EXECUTION), ("gone", NO_RESULT)], [("new", NO_RESULT)]],
        ),
    ],
    ids=["another context", "a latency of zero", "other layers", "only one has it"],
)
def test_what_is_not_compared_is_named_with_the_reason(
    first: list[Record], second: list[Record], compared: int, alone: list[list[tuple[str, str]]]
) -> None:
    found = compare(side("a", *first), side("b", *second))
    assert len(found.models) + len(found.bricks) == compared
    assert [[it.reason for it in held] for held in found.alone] == [[reason for _, reason in held] for held in alone]
    if found.models:
        assert [[(it.name, it.reason) for it in held] for held in found.alone] == alone


def test_a_model_of_another_format_is_compared_by_its_name() -> None:
    (pair,) = compare(side("a", model("m", 10.0)), side("b", model("m", 5.0, runtime=MXNET, model="ef" * 32))).models
    assert pair.change.ratio == pytest.approx(0.5)
    assert pair.change.verdict is Verdict.FASTER


@pytest.mark.parametrize(("digest", "count"), [("0f" * 32, 1), ("1f" * 32, 0)])
def test_other_versions_may_fuse_a_model_in_another_way_if_its_file_is_the_same(digest: str, count: int) -> None:
    first = side("a", model("m", 10.0, model="ab" * 32), origin(models=(("ab" * 32, "0f" * 32),)))
    newer = model("m", 10.0, model="cd" * 32, runtime=NEWER)
    second = side("b", newer, origin(runtime=NEWER, models=(("cd" * 32, digest),)))
    assert len(compare(first, second).models) == count


def test_other_batch_sizes_are_compared_per_item() -> None:
    (pair,) = compare(side("a", model("m", 10.0)), side("b", model("m", 40.0, batch_size=8, model="ef" * 32))).models
    assert [pair.change.was_ms, pair.change.is_ms] == pytest.approx([10.0, 5.0], rel=0.01)


def test_differences_between_runs_widen_the_interval() -> None:
    one = model("m", 10.0)
    apart = [model("m", latency_ms, run=name) for name, latency_ms in (("r1", 9.5), ("r2", 10.5))]
    (narrow,) = compare(side("a", one), side("b", model("m", 10.0))).models
    (wide,) = compare(side("a", one), side("b", *apart)).models
    widths = [it.change.interval[1] - it.change.interval[0] for it in (narrow, wide)]
    assert widths[1] > 3 * widths[0]
    assert len(wide.second) == 2


def test_results_of_another_day_do_not_count() -> None:
    old = model("m", 5.0, when="2026-11-19T08:00:00.000000+00:00", run="old")
    (pair,) = compare(side("a", model("m", 10.0)), side("b", old, model("m", 10.0))).models
    assert [it.run for it in pair.second] == ["r1"]


def test_all_pairs_of_one_run_on_a_side_need_a_larger_change() -> None:
    before, after = ([model(f"m{number}", ms) for number in range(3)] for ms in (10.0, 10.8))
    alone, several = (
        compare(side("a", *one), side("b", *other)).models
        for one, other in ((before, in_three_runs(*after)), (in_three_runs(*before), in_three_runs(*after)))
    )
    verdicts = [found.verdict for pairs in (alone, several) if (found := overall(pairs)) is not None]
    assert verdicts == [Verdict.UNKNOWN, Verdict.SLOWER]
    assert {it.change.verdict for it in alone} == {Verdict.UNKNOWN}


def test_few_samples_are_unknown_and_not_tested() -> None:
    found = compare(side("a", model("m", 1.0, count=4)), side("b", model("m", 2.0, count=4)))
    assert (found.models[0].change.verdict, number_tested(found.models)) == (Verdict.UNKNOWN, 0)


def test_one_in_twenty_significant_changes_is_expected_to_be_a_false_alarm() -> None:
    first = side("a", *(model(f"m{number}", 10.0) for number in range(20)))
    second = side("b", *(model(f"m{number}", 20.0) for number in range(20)))
    pairs = compare(first, second).models
    assert number_tested(pairs) == 20
    assert false_alarms(pairs) == pytest.approx(1.0)
    together = overall(pairs)
    assert together is not None and together.ratio == pytest.approx(2.0)
    assert (together.verdict, round(together.was_ms), round(together.is_ms)) == (Verdict.SLOWER, 200, 400)
    assert overall(()) is None


def test_a_label_counts_in_the_first_group_that_has_it() -> None:
    groups = [side("a", model("m", 1.0)), side("b", model("m", 2.0), model("n", 2.0, system="there"))]
    found = regrouped(groups, lambda it: it.execution.system)
    assert [(it.name, [result.name for result in it.results]) for it in found] == [("here", ["m"]), ("there", ["n"])]
    assert found[0].results[0].statistics.trimmed_mean_ms == pytest.approx(1.0, rel=0.01)


def test_the_order_of_results_changes_nothing() -> None:
    records: list[Record] = [model("m", 10.0, run="r1"), model("m", 11.0, run="r2"), model("n", 3.0), layer(0, 1.0)]
    other = side("b", model("m", 12.0), model("n", 3.0), layer(0, 2.0))
    straight, reverse = compare(side("a", *records), other), compare(side("a", *reversed(records)), other)
    assert straight.models == reverse.models and straight.bricks == reverse.bricks
    assert replace(straight, first=reverse.first) == reverse


def nothing(_: Found) -> None:
    """Know no estimates."""


def hosts(*sides: Side, estimate: EstimateOf = nothing) -> Columns:
    found = hosts_of(sides, estimate)
    assert found is not None
    return found


def test_systems_are_relative_to_the_first_one() -> None:
    first = side("a", model("m", 10.0), model("n", 20.0), model("only", 1.0))
    second = side("b", model("m", 5.0, system="there"), model("n", 5.0, system="there"))
    found = hosts(first, second)
    (there,) = found.others
    assert (found.first, there.name, there.models) == ("here", "there", 2)
    # The geometric mean of a half and a quarter.
    assert there.ratio == pytest.approx(0.125**0.5)
    assert [(row.model, *(it.verdict for it in row.others)) for row in found.models] == [
        ("m", Verdict.FASTER),
        ("n", Verdict.FASTER),
    ]


def test_both_sides_of_a_ratio_have_estimates() -> None:
    first, second = side("a", model("m", 10.0)), side("b", model("m", 5.0, system="there"))
    (row,) = hosts(first, second, estimate=lambda it: it.statistics.trimmed_mean_ms + 1.0).models
    assert (row.estimate_ms, row.others[0].estimate_ms) == (row.ms + 1.0, row.others[0].ms + 1.0)


def test_a_system_in_two_sides_counts_with_the_first_side() -> None:
    first = side("a", model("m", 10.0), model("m", 20.0, system="there"))
    second = side("b", model("m", 1.0), model("m", 1.0, system="there"))
    assert hosts(first, second).others[0].ratio == pytest.approx(2.0)


def test_one_system_or_version_has_no_columns_and_one_without_models_of_the_first_is_named() -> None:
    first, second = side("a", model("m", 10.0)), side("b", model("m", 11.0))
    assert hosts_of([first, second], nothing) is None
    assert list(versions_of([first, second], nothing)) == []
    assert hosts(first, side("b", model("n", 5.0, system="there"))).remarks == (
        "Of here and not compared with there: 1 model (m): no result there.",
        "Of there and not compared with here: 1 model (n): no result there.",
    )


def test_frameworks_versions_and_releases_of_dlbricks_stand_side_by_side() -> None:
    first = side("a", model("m", 10.0), origin())
    second = side(
        "b",
        model("m", 8.0, runtime=NEWER, run="r2"),
        model("m", 20.0, runtime=MXNET, run="r2"),
        origin(runtime=NEWER, run="r2", packages=(("dlbricks", "0.3.0"),)),
    )
    found = {it.what: it for it in versions_of([first, second], nothing)}
    assert list(found) == ["framework", "version of ONNX Runtime", "version of dlbricks"]
    names = {what: [it.first, *(column.name for column in it.others)] for what, it in found.items()}
    assert names["framework"] == ["ONNX Runtime", "MXNet"]
    assert names["version of ONNX Runtime"] == ["ONNX Runtime 1.20", "ONNX Runtime 1.21"]
    assert names["version of dlbricks"] == ["dlbricks 0.2.0", "dlbricks 0.3.0"]
    assert found["version of ONNX Runtime"].others[0].ratio == pytest.approx(0.8)


CAPSNET = decompose(table1()["4"])
WAY: dict[str, Any] = {"system": "here", "runtime": "mxnet-1.5.1"}
FORMS: tuple[Record, ...] = (system("here"), runtime("mxnet-1.5.1"))
WHOLE = model_record(CAPSNET, 30.0, **WAY)


def estimate_of(folder: Path, side: Side, **known: Any) -> float | None:
    """The estimate of the model that a side has timed."""
    sources = {it.name: it for it in Library(SAMPLE_MODELS, Path("nowhere")).find("table1:4")}
    loader = Loader(folder / "cache", NoFramework())
    timed: Found = next(it for it in side.results if it.subject.is_model)
    return estimates_of([side], known.get("sources", sources), lambda _: loader)(timed)


def test_estimates_are_those_of_the_store(tmp_path: Path) -> None:
    records = [*FORMS, *brick_records(CAPSNET, **WAY), WHOLE]
    with store_of(tmp_path / "store", *records) as store:
        expected = Inquiry(store, CAPSNET).on("here", "mxnet-1.5.1")
    assert expected is not None and expected.sequential_ms
    assert estimate_of(tmp_path, side_of("a", records)) == pytest.approx(expected.sequential_ms)


def test_a_model_that_lacks_bricks_or_that_the_library_does_not_know_has_no_estimate(tmp_path: Path) -> None:
    bricks = brick_records(CAPSNET, **WAY)
    some = brick_records(CAPSNET, list(CAPSNET.suite)[:3], **WAY)
    other = model_record(CAPSNET, 30.0, model="ef" * 32, **WAY)
    assert estimate_of(tmp_path, side_of("a", [*FORMS, *some, WHOLE])) is None
    assert estimate_of(tmp_path, side_of("a", [*FORMS, *bricks, WHOLE]), sources={}) is None
    assert estimate_of(tmp_path, side_of("a", [*FORMS, *bricks, other])) is None
