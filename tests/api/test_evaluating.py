"""Evaluations: their scenarios, and the comparison with earlier results."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api.evaluating import EvaluatedLoad, MeasureLoad, comparison, ready_loads
from dlbricks_tui.api.from_run import results_in_other_variants
from dlbricks_tui.api.loads import LoadProcessError
from dlbricks_tui.api.preparing import CheckedEvaluation, EvaluationPart, LocatedModel
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.evaluations.baseline import Baseline
from dlbricks_tui.evaluations.evaluation import (
    EvaluatedModel,
    EvaluatedRuntime,
    EvaluatedScenario,
    Evaluation,
    Measuring,
)
from dlbricks_tui.evaluations.matching import Match
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.jobs import CutModel
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import ScenarioOrder
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import summarise
from tests.bricks.graphs import chain
from tests.estimate.stored import model_record, store_of
from tests.evaluations.example import baseline
from tests.runs.runs import FAKE, MODEL, Site
from tests.store.samples import load_test

SERVER = EvaluatedScenario(kind=ScenarioKind.SERVER, bound_ms=20.0)
QUIET = Match(subject="quiet", wanted="quiet", found="busy", matches=False)
CORES = Match(subject="cores", wanted="8", found="2", matches=False)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "data")


@pytest.fixture(autouse=True)
def _loadgen_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlbricks_tui.scenarios.loadgen.require_loadgen", lambda: None)


def checked(site: Site, *scenarios: EvaluatedScenario, unmet: tuple[Match, ...] = ()) -> CheckedEvaluation:
    (found,) = Library(SAMPLE_MODELS, site.path, Format.MXNET).find(MODEL)
    wanted = EvaluatedModel(name="ours")
    match = Match(subject="model ours", wanted="any content", found="a file", matches=True)
    model = LocatedModel(wanted, replace(found, twin=None), "ab" * 32, {}, {}, match)
    evaluation = Evaluation(
        name="load",
        models=(wanted,),
        runtimes=(EvaluatedRuntime(framework="mxnet"),),
        measuring=Measuring(level=Level.WRITTEN),
        scenarios=scenarios,
    )
    part = EvaluationPart((model,), (FAKE,), None, unmet)
    return CheckedEvaluation(evaluation, site.path / "load.toml", (*unmet, match), (part,))


def measured_loads(
    site: Site, asked: CheckedEvaluation, measure: MeasureLoad, *, again: bool = False
) -> list[EvaluatedLoad]:
    return [it.measured(site.data, measure) for it in ready_loads(asked, site.data, again=again)]


def test_a_scenario_is_measured_once_and_then_taken_from_the_store(site: Site) -> None:
    orders: list[ScenarioOrder] = []

    def measure(order: ScenarioOrder) -> LoadTest:
        orders.append(order)
        test = load_test(
            model=keys[0],
            name=MODEL,
            system=fingerprint().id,
            runtime=FAKE.identity,
            level=Level.WRITTEN,
        )
        with ResultsDatabase(site.data.store) as store:
            store.add(test)
        return test

    keys = model_keys(site)
    asked = checked(site, SERVER, unmet=(QUIET, CORES))
    (found,) = measured_loads(site, asked, measure)
    assert found.measured is not None and found.failure is None
    assert (found.model, found.kind, found.percentile, found.bound_ms) == ("ours", ScenarioKind.SERVER, 99.0, 20.0)
    assert found.unmet == ("quiet: wanted quiet, found busy", "cores: wanted 8, found 2")
    assert (orders[0].evaluation, orders[0].unmet) == (asked.evaluation.label, found.unmet)
    (again,) = measured_loads(site, asked, measure)
    assert again.measured == found.measured
    # The host may have been quiet when the stored test was measured.
    assert again.unmet == ("cores: wanted 8, found 2",)
    assert len(orders) == 1
    # Another bound is another scenario.
    measured_loads(site, checked(site, replace(SERVER, bound_ms=30.0)), measure)
    assert len(orders) == 2
    measured_loads(site, asked, measure, again=True)
    assert len(orders) == 3


def test_a_scenario_that_cannot_be_measured_is_a_failure_with_its_reason(site: Site) -> None:
    def fail(_: ScenarioOrder) -> LoadTest:
        raise LoadProcessError("the worker crashed")

    (found,) = measured_loads(site, checked(site, SERVER), fail)
    assert (found.measured, found.failure) == (None, "ours, scenario server: the worker crashed")


def model_keys(site: Site) -> list[str]:
    """Return the key under which tests of the model are stored, as a run stores its whole model."""
    site.run(site.request(end_to_end=True, bricks=False, runtime=FAKE))
    return [it.model for it in site.contents().end_to_end]


UNTIMED: dict[str, Any] = {"measured_ms": None, "low_ms": None, "high_ms": None, "samples_ms": ()}
UNESTIMATED: dict[str, Any] = {"estimate_ms": None, "estimate_low_ms": None, "estimate_high_ms": None}


NO_EARLIER = "there is no earlier result of this model by this framework"
NOT_COMPARABLE = "it was not measured both times: time whole models, or all bricks, in both"
UNSURE = "its interval reaches more than 3.0 % to a side"
APART = "processes differ by up to 10.0 %: measure both in 3 runs"


@pytest.mark.parametrize(
    ("now", "was", "verdict", "reason"),
    [
        (baseline(framework="openvino"), baseline(), Verdict.UNKNOWN, NO_EARLIER),
        (baseline(**UNTIMED, **UNESTIMATED), baseline(), Verdict.UNKNOWN, NOT_COMPARABLE),
        (baseline(samples_ms=(30.0, 30.1)), baseline(), Verdict.UNKNOWN, "fewer than 5 samples"),
        (baseline(low_ms=20.0, high_ms=40.0), baseline(), Verdict.UNKNOWN, UNSURE),
        # An earlier result of one process gives no verdict on twelve percent.
        (baseline(33.6), baseline(processes=1), Verdict.UNKNOWN, APART),
        (baseline(33.6), baseline(), Verdict.SLOWER, ""),
        (baseline(), baseline(), Verdict.SAME, ""),
    ],
)
def test_an_unknown_verdict_has_its_reason_and_others_need_none(
    now: Baseline, was: Baseline, verdict: Verdict, reason: str
) -> None:
    (found,) = comparison([now], [was], 0.03)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_the_latency_of_an_earlier_result_has_neither_its_warm_up_nor_hides_that_the_host_was_busy(
    tmp_path: Path,
) -> None:
    graph, here = chain("conv", "relu"), fingerprint()
    steady = (10.0, 10.1, 9.9, 10.0, 10.2)
    how = {"system": here.id, "samples_ms": (90.0, *steady), "statistics": summarise(steady)}
    timed = model_record(decompose(graph), 10.0, noise=(("warm_up", 1), ("shared", 0.2)), **how)
    with store_of(tmp_path, here, timed) as store:
        framework, model = timed.runtime.partition("-")[0], CutModel(decompose(graph), graph, timed.model)
        (found,) = results_in_other_variants(store, model, graph.name, framework)
    assert found.samples_ms == steady and found.low_ms is not None and found.low_ms == pytest.approx(8.0, abs=0.05)
