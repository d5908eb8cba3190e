"""Comparisons of results: sides by name, corresponding executions, changes, columns and estimates."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from onnx.helper import make_node

from dlbricks_tui.api.changes import (
    Columns,
    ComparedCell,
    ComparedRow,
    compare,
    compared_results,
    false_alarms,
    hosts_of,
    number_tested,
    overall,
    regrouped,
    versions_of,
)
from dlbricks_tui.api.open_models import ComparableRow, PairKind
from dlbricks_tui.api.pairs import (
    ComparedTwo,
    EstimatedSide,
    compare_estimates,
    compare_named,
    compare_rows,
    named_side,
)
from dlbricks_tui.api.side_estimates import estimates_of
from dlbricks_tui.api.sides import (
    KINDS,
    Found,
    Naming,
    NotComparableError,
    ResultExecution,
    Side,
    corresponding,
    facts_of,
    named_sides,
    read_sides,
    select_named,
    side_of,
)
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.documents.comparison import question_words
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.evaluations import baseline
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.variant import USUAL_KERNELS, Precision
from dlbricks_tui.store.change import Verdict, compared
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import QueryError
from dlbricks_tui.store.records import EndToEnd, Measurement, Record, new_uuid
from dlbricks_tui.wording.numbers import counted
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
from tests.documents.snapshots import check
from tests.estimate.stored import brick_records, model_record, store_of, timed
from tests.estimate.table1 import NoFramework, table1
from tests.models.onnx_models import model as onnx_model
from tests.models.onnx_models import saved
from tests.models.table_framework import TableFramework
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


def test_an_id_is_clear_whatever_else_is_called_the_same(store: ResultsDatabase) -> None:
    store.add(system("there", instance_type="here"), model("m", 9.0, system="there"))
    assert select_named(store, "here").words == "system here"


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
    marked = compare_rows(
        cast("Any", SimpleNamespace(results=lambda: ResultsDatabase(DataFolder(tmp_path).store))), one, other, None
    )
    assert isinstance(marked, ComparedTwo) and (marked.of, marked.verdict) == ("level", Verdict.FASTER)
    with pytest.raises(QueryError, match="is no system, runtime, run, level or day with results"):
        select_named(store, "fuse")


def test_a_side_of_two_runs_has_the_interval_of_their_mean(tmp_path: Path) -> None:
    two = [model("m", ms, run=f"r-{ms:g}") for ms in (10.0, 12.0)]
    with store_of(tmp_path / "store", *DEFINITIONS, *two, model("m", 20.0, system="there")) as store:
        found = compare_named(store, named_side(store, "here"), named_side(store, "there"))
    low, high = found.a.interval
    assert found.a.ms == pytest.approx(11.0, rel=0.01) and low < 10.0 < 12.0 < high


def test_parts_of_two_batch_sizes_are_those_of_an_item(tmp_path: Path) -> None:
    file, sides = saved(tmp_path, onnx_model([make_node("Relu", ["x"], ["y"])], {"x": ["batch", 8]}, ["y"])), []
    for size in (1, 8):
        cut = decompose(Loader(tmp_path, TableFramework()).load(source_of(file), batch_size=size))
        where: dict[str, Any] = {"system": "here", "runtime": ONE, "batch_size": size}
        with store_of(tmp_path / f"{size}", *DEFINITIONS, *brick_records(cut, **where)) as store:
            found = Inquiry(store, cut).on("here", ONE)
        assert found is not None
        sides.append(EstimatedSide(str(size), found))
    compared = compare_estimates(PairKind.VARIANT, *sides)
    for it, held in (
        (compared.a, [part.a_ms for part in compared.parts]),
        (compared.b, [part.b_ms for part in compared.parts]),
    ):
        assert sum(ms or 0.0 for ms in held) == pytest.approx(it.ms)


WHERE = ("here", "there", "busy")


def test_a_change_of_an_estimated_brick_counts_from_one_percent_on_and_that_of_its_model_from_three(
    tmp_path: Path,
) -> None:
    file = saved(tmp_path, onnx_model([make_node("Relu", ["x"], ["y"])], {"x": [1, 8]}, ["y"]))
    cut = decompose(Loader(tmp_path, TableFramework()).load(source_of(file)))
    records = brick_records(cut, system="here", runtime=ONE)
    slower = [
        replace(it, system="there", uuid=new_uuid(), statistics=timed(1.02 * it.statistics.trimmed_mean_ms))
        for it in records
        if isinstance(it, Measurement)
    ]
    busy = [replace(it, system="busy", uuid=new_uuid(), noise=(("shared", 0.2),)) for it in slower]
    with store_of(tmp_path / "store", *DEFINITIONS, *records, *slower, *busy) as store:
        inquiry = Inquiry(store, cut)
        here, *others = (EstimatedSide(it, found) for it in WHERE if (found := inquiry.on(it, ONE)) is not None)
    compared, doubted = (compare_estimates(PairKind.VARIANT, here, it) for it in others)
    assert (compared.verdict, {it.verdict for it in compared.parts}) == (Verdict.SAME, {Verdict.SLOWER})
    # A brick that was timed on a busy host is compared with that doubt.
    assert {it.verdict for it in doubted.parts} == {Verdict.UNKNOWN}


def test_files_are_read_in_their_order_with_the_state_of_their_signatures(tmp_path: Path) -> None:
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


def test_the_facts_of_each_side_are_shown_with_their_differences_and_signatures_if_any_is_known() -> None:
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
    # What one side does not tell is no difference.
    silent = side("c", model("m", 1.0))
    signed = side_of("a", [*DEFINITIONS, model("m", 1.0)], signature="signed by ann")
    cases = {"two": (first, second), "of a silent one": (silent, first), "signed": (signed, silent)}
    told = {
        name: [f"{it.name}: {' | '.join(it.values)}{' differs' * it.differs}" for it in facts_of(sides)]
        for name, sides in cases.items()
    }
    check("facts", told)


def test_results_in_doubt_are_left_out_and_a_side_without_good_results_is_one_line() -> None:
    doubtful = model("other", 1.0, flags=("noisy",))
    assert [it.name for it in side("a", model("m", 10.0), doubtful).results] == ["m"]
    for records, why in (
        ((), "it has no results of models or bricks"),
        ((doubtful,), "all 1 of its results are in doubt"),
    ):
        with pytest.raises(NotComparableError, match=f"a has nothing to compare: {why}"):
            side("a", *records)


def models(latencies: dict[str, float], runs: int = 3, **fields: Any) -> list[Record]:
    """A model for each name; the noisy one is noisy."""
    timed = [model(name, ms, noise=0.5 if name == "noisy" else 0.005, **fields) for name, ms in latencies.items()]
    return [*in_three_runs(*timed)] if runs == 3 else [*timed]


def exact(whole: float, *layers: float) -> list[Record]:
    of_layers = [layer(number, ms, noise=0.001) for number, ms in enumerate(layers)]
    return [*in_three_runs(model("m", whole, noise=0.001), *of_layers)]


def told(first: Sequence[Record], second: Sequence[Record]) -> list[str]:
    """Pairs with their changes and runs, what is not compared, and all models together."""
    found = compare(side("a", *first), side("b", *second))
    together = overall(found.models)
    pairs = [(it.name, it.change, f"{len(it.first)}:{len(it.second)}") for it in (*found.models, *found.bricks)]
    pairs += [("together", together, str(number_tested(found.models)))] if together else []
    lines = [
        f"{name}: {it.verdict.value} {it.was_ms:.3g} > {it.is_ms:.3g} ms, {it.change:+.1%} "
        f"({it.interval[0]:+.1%} to {it.interval[1]:+.1%}){'' if it.significant else ' by chance'}, {runs} {it.reason}"
        for name, it, runs in pairs
    ]
    return [*lines, *(f"of {it.side} alone: {it.of} {it.name}: {it.reason}" for held in found.alone for it in held)]


M10, SAME, BOTH = [model("m", 10.0)], [layer(0, 1.0)], model("both", 1.0)
BEFORE = {"slow": 10.0, "slower": 10.0, "fast": 10.0, "same": 10.0, "noisy": 10.0}
AFTER = {"slow": 10.8, "slower": 13.0, "fast": 8.0, "same": 10.1, "noisy": 10.2}
THREE_BEFORE, THREE_AFTER = (dict.fromkeys(("m0", "m1", "m2"), ms) for ms in (10.0, 10.8))
OF_A_FILE = [model("m", 10.0, model="ab" * 32), origin(models=(("ab" * 32, "0f" * 32),))]
FUSED = model("m", 10.0, model="cd" * 32, runtime=NEWER)
COMPARED: dict[str, tuple[Sequence[Record], Sequence[Record]]] = {
    "the largest change comes first": (models(BEFORE), models(AFTER)),
    "changes of bricks count from 1 % on, of models from 3 %": (exact(10.0, 10.0, 10.0), exact(10.2, 10.2, 10.05)),
    "another context": (SAME, [layer(0, 1.0, context="cold")]),
    "a latency of zero": ([layer(0, 0.0)], SAME),
    "other layers": ([BOTH], [model("both", 1.0, model="ef" * 32)]),
    "only one has it": ([BOTH, model("gone", 1.0), model("both", 1.0, runtime=TWO)], [BOTH, model("new", 1.0)]),
    "another format, by its name": (M10, [model("m", 5.0, runtime=MXNET, model="ef" * 32)]),
    # Other versions may fuse a model in another way if its file is the same.
    "the same file": (OF_A_FILE, [FUSED, origin(runtime=NEWER, models=(("cd" * 32, "0f" * 32),))]),
    "another file": (OF_A_FILE, [FUSED, origin(runtime=NEWER, models=(("cd" * 32, "1f" * 32),))]),
    "other batch sizes, per item": (M10, [model("m", 40.0, batch_size=8, model="ef" * 32)]),
    "one run": (M10, M10),
    "runs that differ": (M10, [model("m", 9.5, run="r1"), model("m", 10.5, run="r2")]),
    "results of another day": (M10, [model("m", 5.0, when="2026-11-19T08:00:00.000000+00:00", run="old"), *M10]),
    "all pairs of one run on a side": (models(THREE_BEFORE, 1), models(THREE_AFTER)),
    "of three runs on both": (models(THREE_BEFORE), models(THREE_AFTER)),
    "few samples": ([model("m", 1.0, count=4)], [model("m", 2.0, count=4)]),
}


def test_corresponding_results_are_compared_and_what_is_not_is_named_with_the_reason() -> None:
    check("compared", {name: told(*each) for name, each in COMPARED.items()}, width=160)


def test_what_was_timed_on_a_busy_host_is_compared_with_that_doubt() -> None:
    was, now = ([*in_three_runs(model("m", ms), layer(1, ms))] for ms in (10.0, 10.8))
    # The bricks of a carrier have something in common on a quiet host, too.
    calm, doubt = (("disturbed_rounds", 0),), (("shared", 0.2), ("disturbed_rounds", 3))
    quiet = [replace(it, noise=calm if isinstance(it, EndToEnd) else (*calm, ("shared", 0.2))) for it in now]
    busy = [replace(it, noise=doubt) for it in now]
    there, doubted = (compare(side("a", *was), side("b", *each)) for each in (quiet, busy))
    for (one,), (other,) in ((there.models, doubted.models), (there.bricks, doubted.bricks)):
        assert (one.change.verdict, other.change.verdict) == (Verdict.SLOWER, Verdict.UNKNOWN)
        assert other.change.reason.endswith("; the host was busy: measure again when it is quiet")
        assert overall([other]) == other.change
    # `dlbricks check` reads the same.
    first, second = (
        baseline.timing_of_results([it for it in held if isinstance(it, EndToEnd)]) for held in (was, busy)
    )
    assert compared(first, second).interval == doubted.models[0].change.interval


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
    # The mean of several models has no p.
    uneven = compare(side("a", *models(BEFORE)), side("b", *models(BEFORE | {"slow": 30.0}))).models
    together = overall(uneven)
    assert together is not None and together.reason == "it may be chance, as its interval holds 1"


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


def times_text(it: ComparedRow | ComparedCell) -> str:
    return f"{it.ms:.3g} ({it.estimate_ms and round(it.estimate_ms, 2)})"


def columns_of(found: Iterable[Columns]) -> list[str]:
    """Columns with their ratios, and rows with their latencies, estimates and verdicts."""
    lines = []
    for each in found:
        ratios = [f"{it.name} x{it.ratio or 0.0:.3f} of {counted(it.models, 'model')}" for it in each.others]
        lines.append(", ".join([f"{each.what}: {each.first}", *ratios]))
        for row in each.models:
            cells = [f"{times_text(it)} x{it.ratio:.2f} {it.verdict.value}" for it in row.others]
            lines.append(", ".join([row.model, row.execution, times_text(row), *cells]))
        lines += each.remarks
    return lines


def test_systems_frameworks_versions_and_releases_of_dlbricks_stand_side_by_side() -> None:
    there, alone = partial(model, system="there"), side("a", model("m", 10.0))
    first = side("a", model("m", 10.0), model("n", 20.0), model("only", 1.0))
    twice = [side("a", model("m", 10.0), there("m", 20.0)), side("b", model("m", 1.0), there("m", 1.0))]
    released = origin(runtime=NEWER, run="r2", packages=(("dlbricks", "0.3.0"),))
    newer = model("m", 8.0, runtime=NEWER, run="r2"), model("m", 20.0, runtime=MXNET, run="r2"), released
    hosts = {
        "systems, relative to the first": hosts_of([first, side("b", *(there(it, 5.0) for it in "mn"))], nothing),
        "with estimates": hosts_of([alone, side("b", there("m", 5.0))], lambda it: it.statistics.trimmed_mean_ms + 1.0),
        "a system in two sides counts with the first": hosts_of(twice, nothing),
        "without models of the first": hosts_of([alone, side("b", there("n", 5.0))], nothing),
        "one system": hosts_of([alone, side("b", model("m", 11.0))], nothing),
    }
    versions = {
        "one version": versions_of([alone, side("b", model("m", 11.0))], nothing),
        "several": versions_of([side("a", model("m", 10.0), origin()), side("b", *newer)], nothing),
    }
    shown = {**{name: [it] if it else [] for name, it in hosts.items()}, **versions}
    check("side-by-side", {name: columns_of(each) for name, each in shown.items()}, width=160)


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
    some = brick_records(CAPSNET, list(CAPSNET.pairs)[:3], **WAY)
    other = model_record(CAPSNET, 30.0, model="ef" * 32, **WAY)
    assert estimate_of(tmp_path, side_of("a", [*FORMS, *some, WHOLE])) is None
    assert estimate_of(tmp_path, side_of("a", [*FORMS, *bricks, WHOLE]), sources={}) is None
    assert estimate_of(tmp_path, side_of("a", [*FORMS, *bricks, other])) is None
