from dataclasses import replace
from typing import Any

import pytest

from dlbricks_tui.evaluations.baseline import Baseline, baselines_of_evaluation, baselines_of_records, steady_samples_ms
from dlbricks_tui.evaluations.evaluation import EvaluatedModel, EvaluatedRuntime, Evaluation, RecordedResult
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision
from dlbricks_tui.store.records import EndToEnd, Provenance
from dlbricks_tui.store.statistics import summarise
from tests.store.samples import end_to_end, runtime, system

HOST = system("here")
TWO_THREADS = "onnxruntime-1.20 python-3.11 threads-2"
RUNTIME = runtime(TWO_THREADS, framework="onnxruntime", version="1.20", settings=(("OMP_WAIT_POLICY", "active"),))


def timed(latency_ms: float, when: str = "08:00:00", **fields: Any) -> EndToEnd:
    samples = tuple(latency_ms * (1 + number % 5 / 100) for number in range(20))
    usual: dict[str, Any] = {"system": "here", "runtime": TWO_THREADS, "when": f"2026-11-21T{when}+00:00"}
    return end_to_end(**{**usual, "samples_ms": samples, "statistics": summarise(samples), **fields})


def baselines(*results: EndToEnd) -> tuple[Baseline, ...]:
    return baselines_of_records([HOST, RUNTIME, *results], "here")


def test_a_result_keeps_its_variant_version_and_host() -> None:
    (found,) = baselines(timed(10.0, protocol=Method.INSIDE.id, batch_size=4))
    one = found.result
    assert (one.model, one.framework, one.version) == ("resnet50_v1", "onnxruntime", "1.20")
    assert (one.threads, one.batch, one.precision) == (2, 4, Precision.F32)
    assert one.variables == {"OMP_WAIT_POLICY": "active"}
    assert dict(one.host)["cpu"] == "Xeon 8124M"
    assert (found.level, found.method, found.system) == (Level.FUSED, Method.INSIDE, "here")


def test_results_of_one_night_count_together_and_older_ones_do_not() -> None:
    results = [timed(50.0, "01:00:00", run="r0"), timed(10.0, "19:00:00", run="r1"), timed(11.0, "20:00:00", run="r2")]
    (found,) = baselines(*results)
    assert found.timing is not None
    assert found.timing.value_ms == pytest.approx((10.2 + 11.22) / 2, rel=0.01)
    assert len(found.timing.samples_ms) == 40
    # The interval tells how far the two differ.
    assert found.timing.low_ms < 10.3 and found.timing.high_ms > 11.1


def test_the_last_result_of_a_run_replaces_the_others() -> None:
    (found,) = baselines(timed(50.0, "08:00:00", run="r1"), timed(10.0, "08:01:00", run="r1"))
    assert found.timing is not None
    assert found.timing.value_ms == pytest.approx(10.2, rel=0.01) and len(found.timing.samples_ms) == 20


def test_each_combination_counts_once() -> None:
    found = baselines(
        timed(10.0), timed(40.0, batch_size=4), timed(12.0, level=Level.WRITTEN), timed(9.0, name="other")
    )
    assert len(found) == 4
    assert len({(it.result.model, it.result.batch, it.level) for it in found}) == 4


def test_doubtful_results_and_those_of_other_systems_do_not_count() -> None:
    (found,) = baselines(timed(10.0), timed(90.0, flags=("drift",), when="09:00:00"), timed(80.0, system="there"))
    assert found.timing is not None and found.timing.value_ms < 11


def test_the_warm_up_is_left_out_of_the_samples() -> None:
    result = timed(10.0, noise=(("warm_up", 3),))
    assert steady_samples_ms(result) == result.samples_ms[3:]
    (found,) = baselines(result)
    assert found.timing is not None and len(found.timing.samples_ms) == 17


def test_the_origin_of_a_result_names_its_packages_and_the_kernel() -> None:
    result = timed(10.0, run="r7")
    origin = Provenance(
        when=result.when,
        run="r7",
        system="here",
        runtime=TWO_THREADS,
        protocol=result.protocol,
        packages=(("onednn", "3.5"),),
        host=(("kernel", "6.1"),),
        models=((result.model, "ab" * 32),),
    )
    (found,) = baselines_of_records([HOST, RUNTIME, result, origin], "here")
    assert dict(found.result.packages)["onednn"] == "3.5"
    assert dict(found.result.host)["kernel"] == "6.1"
    assert found.result.sha256 == "ab" * 32


def recorded(**fields: Any) -> RecordedResult:
    usual: dict[str, Any] = {
        "model": "net",
        "framework": "onnxruntime",
        "version": "1.20",
        "threads": 1,
        "batch": 1,
        "precision": Precision.F32,
        "instructions": InstructionSet.ALL,
        "optimisation": Optimisation.ALL,
        "variables": {},
        "when": "2026-11-21T08:00:00+00:00",
        "measured_ms": 4.0,
        "low_ms": 3.9,
        "high_ms": 4.1,
        "samples_ms": (3.9, 4.0, 4.1),
        "estimate_ms": None,
        "estimate_low_ms": None,
        "estimate_high_ms": None,
        "packages": (("method", "inside-12345678"),),
    }
    return RecordedResult(**{**usual, **fields})


def evaluation(*results: RecordedResult) -> Evaluation:
    models = (EvaluatedModel(name="net"), EvaluatedModel(name="other"))
    return Evaluation(
        name="night", models=models, runtimes=(EvaluatedRuntime(framework="onnxruntime"),), results=results
    )


def test_the_results_of_an_evaluation_have_its_level_and_their_method() -> None:
    (found,) = baselines_of_evaluation(evaluation(recorded()))
    assert (found.level, found.method) == (Level.FUSED, Method.INSIDE)
    assert found.timing is not None and (found.timing.low_ms, found.timing.high_ms) == (3.9, 4.1)
    assert [model.name for model in found.models] == ["net"]


def test_a_result_of_bricks_only_has_no_timing() -> None:
    without = recorded(measured_ms=None, low_ms=None, high_ms=None, samples_ms=(), estimate_ms=4.2)
    (found,) = baselines_of_evaluation(evaluation(without))
    assert found.timing is None


def test_a_result_without_an_interval_takes_that_of_its_samples() -> None:
    samples = tuple(4.0 + number / 100 for number in range(20))
    (found,) = baselines_of_evaluation(evaluation(recorded(low_ms=None, high_ms=None, samples_ms=samples)))
    assert found.timing is not None and 4.0 < found.timing.low_ms < found.timing.high_ms < 4.2
    (unknown,) = baselines_of_evaluation(evaluation(recorded(low_ms=None, high_ms=None, samples_ms=())))
    assert unknown.timing is None


def test_a_variant_is_that_of_the_result() -> None:
    (found,) = baselines(replace(timed(10.0), batch_size=8))
    assert (found.result.threads, found.result.batch) == (2, 8)
