from dataclasses import replace
from pathlib import Path
from typing import Any

from dlbricks_tui.answers.evaluating import (
    ComparedResult,
    EvaluatedLoad,
    EvaluatedResult,
    EvaluationName,
    EvaluationResult,
)
from dlbricks_tui.answers.loads import MeasuredScenario
from dlbricks_tui.documents.evaluation import comparison_parts, results_parts
from dlbricks_tui.estimate.estimate import Coverage
from dlbricks_tui.evaluations.baseline import Difference
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision
from dlbricks_tui.scenarios.scenario import ScenarioKind
from dlbricks_tui.store.change import Verdict
from tests.documents.snapshots import check

NAME = EvaluationName("nightly", "0123456789abcdef" * 4, Path("nightly.toml"))
WHEN = "2026-11-21T08:00:00+00:00"
TURBO = "turbo is on, not off"


def result(**changed: Any) -> EvaluatedResult:
    values: dict[str, Any] = {
        "model": "resnet18_v1",
        "framework": "onnxruntime",
        "version": "1.20.0",
        "runtime": "onnxruntime-1.20.0 threads-2",
        "system": "c5",
        "level": Level.FUSED,
        "threads": 2,
        "batch": 1,
        "precision": Precision.F32,
        "instructions": InstructionSet.ALL,
        "optimisation": Optimisation.ALL,
        "variables": {},
        "measured_ms": 12.5,
        "measured_interval_ms": (12.4, 12.6),
        "samples": 25,
        "estimate_ms": 12.0,
        "interval_ms": (11.9, 12.1),
        "coverage": Coverage(2, 0, 0),
        "when": WHEN,
        "run": "r1",
        "sha256": "ab" * 32,
        "packages": {},
        "host": {},
        "unmet": (),
    }
    return EvaluatedResult(**{**values, **changed})


UNMEASURED: dict[str, Any] = {
    "measured_ms": None,
    "measured_interval_ms": None,
    "samples": 0,
    "estimate_ms": None,
    "when": None,
}


OUTCOME = MeasuredScenario(
    p50_ms=8.0,
    p90_ms=9.0,
    p99_ms=12.0,
    p999_ms=13.0,
    per_second=39.6,
    valid=True,
    reasons=(),
    queries=700,
    batch_size=1,
    percentile_ms=12.0,
    bound_met=True,
    rate=40.0,
    sought=True,
    confidence=0.99,
    passing_ms=0.1,
    wake_up_ms=0.0,
    seconds=17.5,
    when=WHEN,
    id="u",
    logs=None,
)


def load(**changed: Any) -> EvaluatedLoad:
    values: dict[str, Any] = {
        "model": "resnet18_v1",
        "runtime": "onnxruntime-1.20.0 threads-2",
        "level": Level.FUSED,
        "kind": ScenarioKind.SERVER,
        "percentile": 99.0,
        "bound_ms": 20.0,
        "rate": None,
        "batch_sizes": (1,),
        "instances": 1,
        "measured": OUTCOME,
        "failure": None,
        "unmet": (),
    }
    return EvaluatedLoad(**{**values, **changed})


def compared(**changed: Any) -> ComparedResult:
    values: dict[str, Any] = {
        "model": "resnet18_v1",
        "framework": "onnxruntime",
        "threads": 2,
        "batch": 1,
        "precision": Precision.F32,
        "of": "end to end",
        "per_item": False,
        "was_ms": 12.0,
        "is_ms": 12.5,
        "when": WHEN,
        "change": 0.0417,
        "interval": (0.03, 0.05),
        "significant": True,
        "verdict": Verdict.SAME,
        "reason": "",
        "differences": (),
    }
    return ComparedResult(**{**values, **changed})


def evaluated(*results: EvaluatedResult, loads: tuple[EvaluatedLoad, ...] = (), **changed: Any) -> EvaluationResult:
    return EvaluationResult(
        evaluation=NAME, same=(), refused=False, results=results, scenarios=loads, failures=(), **changed
    )


def test_results_and_scenarios_have_a_row_each_with_marks_of_what_they_did_not_meet() -> None:
    limited = result(
        framework="unheard-of",
        threads=None,
        instructions=InstructionSet.AVX2,
        optimisation=Optimisation.NONE,
        unmet=("4 cores, not 8", TURBO),
        **UNMEASURED,
    )
    offline = load(kind=ScenarioKind.OFFLINE, percentile=99.9, bound_ms=None, measured=None, unmet=(TURBO, "one more"))
    invalid = load(measured=replace(OUTCOME, valid=False))
    check(
        "evaluation",
        {
            "nothing": results_parts(evaluated()),
            "results": results_parts(
                evaluated(result(), limited, result(unmet=(TURBO,)), loads=(load(), offline, invalid))
            ),
        },
        width=140,
    )
    check("evaluation-narrow", {"results": results_parts(evaluated(result(), loads=(load(),)))}, width=72)


def test_a_comparison_has_both_latencies_and_the_differences_of_each_result() -> None:
    unknown = compared(
        threads=None, of=None, was_ms=None, is_ms=None, change=None, interval=None, verdict=Verdict.UNKNOWN
    )
    threads = (Difference("threads", "1", "2"), Difference("turbo", "on", "off"))
    found = (
        compared(verdict=Verdict.SLOWER, differences=threads),
        compared(model="alexnet", per_item=True, differences=threads),
        compared(model="lstm", framework="unheard-of", of="estimate", reason="no earlier result"),
        unknown,
    )
    alike = tuple(compared(model=name, differences=threads[:1]) for name in ("one", "two"))
    check(
        "evaluation-compared",
        {
            "with the file": comparison_parts(evaluated(compared_with="file", comparison=found), 0.025),
            "with the store": comparison_parts(evaluated(compared_with="store", comparison=alike), 0.03),
            "with nothing": comparison_parts(evaluated(compared_with="store"), 0.03),
        },
        width=140,
    )
