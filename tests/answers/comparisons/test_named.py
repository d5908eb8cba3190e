"""Results by the names that a user gives, and all that a new kind of results needs to be compared."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dlbricks_tui.answers.changes import compared_results
from dlbricks_tui.answers.pairs import ComparedTwo, compare_named, named_side
from dlbricks_tui.answers.sides import KINDS, Naming, PairKind, named_sides, select_named
from dlbricks_tui.documents.comparison import question_words
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import QueryError
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.marks.work import compare_rows
from tests.answers.comparisons.exports import DEFINITIONS, ONE, in_three_runs, model


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
    marked = compare_rows(cast("Any", SimpleNamespace(data=DataFolder(tmp_path))), one, other, None)
    assert isinstance(marked, ComparedTwo) and (marked.of, marked.verdict) == ("level", Verdict.FASTER)
    with pytest.raises(QueryError, match="is no system, runtime, run, level or day with results"):
        select_named(store, "fuse")
