"""Two things or selections side by side, and the results of evaluations."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.evaluating import (
    EvaluatedLoad,
    EvaluatedResult,
    EvaluationName,
    EvaluationResult,
    comparison,
)
from dlbricks_tui.api.loads import measured_scenario
from dlbricks_tui.api.open_models import PairKind
from dlbricks_tui.api.pairs import ComparedPart, ComparedSide, ComparedTwo
from dlbricks_tui.documents.comparison import (
    answer_words,
    compared_parts,
    comparison_parts,
    latencies_picture,
    question_words,
    results_parts,
)
from dlbricks_tui.estimate.estimate import Coverage
from dlbricks_tui.evaluations.baseline import Difference
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import Scenario
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording import numbers
from tests.documents.snapshots import check
from tests.evaluations.example import baseline, recorded
from tests.store.samples import WHEN, load_test

FOUND = ComparedTwo(
    of=PairKind.SYSTEM,
    a=ComparedSide("c5", "measured", 8.0, (7.9, 8.1)),
    b=ComparedSide("c6i", "sum of 2 bricks", 12.0, (11.9, 12.1)),
    ratio=1.5,
    interval=(1.45, 1.55),
    verdict=Verdict.SLOWER,
    reason="",
    parts_are="bricks",
    parts=(
        ComparedPart("conv 3x3", 1.0, 1.5, Verdict.SLOWER),
        ComparedPart("pool", 1.0, 1.01, Verdict.SAME),
        ComparedPart("relu", None, 0.5),
    ),
    differences={"cores": ("4", "2"), "models": ("", "of the library, all fifty of them")},
    remarks=("A: 1 result in doubt left out.",),
)


def test_a_comparison_has_its_verdict_both_sides_the_parts_and_what_else_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numbers, "now", lambda: datetime.fromisoformat(WHEN).timestamp() + 7200)
    guessed = replace(FOUND.b, how="estimated, partly predicted")
    sums = replace(FOUND, b=guessed, parts=(ComparedPart("convolution", 1.0, 1.5),), differences={}, remarks=())
    aged = replace(FOUND, a=replace(FOUND.a, since=WHEN), parts=(ComparedPart("none", 0.0, 1.5, Verdict.UNKNOWN),))
    check(
        "comparison",
        {
            "several parts": comparison_parts(FOUND, 9),
            "the first part": comparison_parts(replace(aged, verdict=Verdict.FASTER), 1),
            "sums": comparison_parts(sums, 9),
            "no parts": comparison_parts(replace(sums, verdict=Verdict.SAME), 0),
        },
        width=70,
    )
    check("comparison-narrow", {"several parts": comparison_parts(FOUND, 9)}, width=42)


def test_the_question_and_the_answer_are_one_sentence_each() -> None:
    cases = [(Verdict.SLOWER, ratio) for ratio in (12.34, 9.996, 100.0, 1234.5)]
    cases = [(Verdict.FASTER, 0.05), *cases, (Verdict.SAME, 1.0)]
    unknown = replace(FOUND, verdict=Verdict.UNKNOWN, reason="it may be chance")
    told = [answer_words(replace(FOUND, verdict=verdict, ratio=ratio)) for verdict, ratio in cases]
    # Results and selections have no kind.
    question = question_words(PairKind.RESULT, "one", "two\n")
    check("comparison-words", {"answers": told, "in doubt": answer_words(unknown), "question": question})


def test_a_picture_tells_large_and_small_differences_without_exponents() -> None:
    parts = (ComparedPart("conv 3x3", 1000.0, 2300.0), ComparedPart("pool", 1.0, 1.000_01))
    sides = replace(FOUND.a, ms=1001.0), replace(FOUND.b, ms=2301.000_01)
    found = latencies_picture(replace(FOUND, a=sides[0], b=sides[1], parts=parts))
    assert [row.text for row in found.rows[2:]] == ["+1300 ms", "+0.00001000 ms"]
    assert found.says.endswith("most of all by conv 3x3 (+1300 ms).")


NAME = EvaluationName("nightly", "0123456789abcdef" * 4, Path("nightly.toml"))
TURBO = "turbo is on, not off"
OF_LEVEL: dict[str, Any] = {"runtime": "onnxruntime-1.23.2 threads-2", "level": Level.FUSED, "unmet": ()}
RESULT = taken(
    EvaluatedResult,
    recorded(12.5),
    system="c5",
    variables={},
    measured_interval_ms=(12.4, 12.6),
    samples=25,
    interval_ms=(11.9, 12.1),
    coverage=Coverage(2, 0, 0),
    run="r1",
    **OF_LEVEL,
)
OUTCOME = measured_scenario(load_test(), DataFolder(Path("data")))
ASKED = Scenario(kind=ScenarioKind.SERVER, percentile=99.0, bound_ms=20.0)
LOAD = taken(EvaluatedLoad, ASKED, model="resnet50_v1", measured=OUTCOME, failure=None, **OF_LEVEL)
(COMPARED,) = comparison([baseline(12.5)], [baseline(12.0)], 0.05)


def evaluated(*results: EvaluatedResult, loads: tuple[EvaluatedLoad, ...] = (), **changed: Any) -> EvaluationResult:
    return EvaluationResult(
        evaluation=NAME, same=(), refused=False, results=results, scenarios=loads, failures=(), **changed
    )


def test_results_and_scenarios_have_a_row_each_with_marks_of_what_they_did_not_meet() -> None:
    lacking: dict[str, Any] = dict.fromkeys(("measured_ms", "measured_interval_ms", "estimate_ms", "when"))
    limited = replace(
        RESULT,
        framework="unheard-of",
        threads=None,
        instructions=InstructionSet.AVX2,
        optimisation=Optimisation.NONE,
        unmet=("4 cores, not 8", TURBO),
        samples=0,
        **lacking,
    )
    offline = replace(LOAD, kind=ScenarioKind.OFFLINE, percentile=99.9, bound_ms=None, measured=None)
    loads = LOAD, replace(offline, unmet=(TURBO, "one more")), replace(LOAD, measured=replace(OUTCOME, valid=False))
    found = evaluated(RESULT, limited, replace(RESULT, unmet=(TURBO,)), loads=loads)
    check("evaluation", {"nothing": results_parts(evaluated()), "results": results_parts(found)}, width=140)
    check("evaluation-narrow", {"results": results_parts(evaluated(RESULT, loads=(LOAD,)))}, width=72)


def test_a_comparison_has_both_latencies_and_the_differences_of_each_result() -> None:
    lacking: dict[str, Any] = dict.fromkeys(("threads", "of", "was_ms", "is_ms", "change", "interval"))
    threads = (Difference("threads", "1", "2"), Difference("turbo", "on", "off"))
    found = (
        replace(COMPARED, verdict=Verdict.SLOWER, differences=threads),
        replace(COMPARED, model="alexnet", per_item=True, differences=threads),
        replace(COMPARED, model="lstm", framework="unheard-of", of="estimate", reason="no earlier result"),
        replace(COMPARED, verdict=Verdict.UNKNOWN, **lacking),
    )
    alike = tuple(replace(COMPARED, model=name, differences=threads[:1]) for name in ("one", "two"))
    check(
        "evaluation-compared",
        {
            "with the file": compared_parts(evaluated(compared_with="file", comparison=found), 0.025),
            "with the store": compared_parts(evaluated(compared_with="store", comparison=alike), 0.03),
            "with nothing": compared_parts(evaluated(compared_with="store"), 0.03),
        },
        width=140,
    )
