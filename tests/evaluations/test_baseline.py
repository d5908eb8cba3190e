"""Recorded results as a baseline, and how their circumstances differ."""

from typing import Any

import pytest

from dlbricks_tui.evaluations.baseline import (
    Baseline,
    baselines_of_evaluation,
    baselines_of_records,
    comparable,
    differences,
    facts_of_host,
    nearest,
    tuning_variables,
)
from dlbricks_tui.evaluations.evaluation import EvaluatedModel, EvaluatedRuntime, Evaluation
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision
from dlbricks_tui.store.records import EndToEnd
from dlbricks_tui.store.statistics import summarise
from tests.documents.snapshots import check
from tests.evaluations.example import baseline, recorded
from tests.store.samples import end_to_end, provenance, runtime, system

UNTIMED: dict[str, Any] = {"measured_ms": None, "low_ms": None, "high_ms": None, "samples_ms": ()}
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


def test_the_last_results_of_the_runs_of_one_night_count_together() -> None:
    whens = (("01:00:00", "r0", 50.0), ("18:00:00", "r1", 50.0), ("19:00:00", "r1", 10.0), ("20:00:00", "r2", 11.0))
    (found,) = baselines(*(timed(latency_ms, when, run=run) for when, run, latency_ms in whens))
    assert found.timing is not None and len(found.timing.samples_ms) == 40
    assert found.timing.value_ms == pytest.approx((10.2 + 11.22) / 2, rel=0.01)
    # The interval tells how far the two differ.
    assert found.timing.low_ms < 10.3 and found.timing.high_ms > 11.1


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
    (found,) = baselines(timed(10.0, samples_ms=(90.0, 10.0, 10.1, 9.9), statistics=summarise((10.0, 10.1, 9.9))))
    assert found.timing is not None and found.timing.samples_ms == (10.0, 10.1, 9.9)


def test_the_origin_of_a_result_names_its_packages_and_the_kernel() -> None:
    result = timed(10.0, run="r7")
    facts: dict[str, Any] = {"packages": (("onednn", "3.5"),), "host": (("kernel", "6.1"),)}
    models = ((result.model, "ab" * 32),)
    origin = provenance(run="r7", system="here", runtime=TWO_THREADS, protocol=result.protocol, models=models, **facts)
    (found,) = baselines_of_records([HOST, RUNTIME, result, origin], "here")
    assert dict(found.result.packages)["onednn"] == "3.5"
    assert dict(found.result.host)["kernel"] == "6.1"
    assert found.result.sha256 == "ab" * 32


def test_the_results_of_an_evaluation_have_its_level_their_method_and_their_interval_or_that_of_their_samples() -> None:
    def found(**fields: Any) -> Baseline:
        runtimes, models = (EvaluatedRuntime(framework="onnxruntime"),), ("resnet50_v1", "other")
        named = tuple(EvaluatedModel(name=it) for it in models)
        evaluation = Evaluation(name="night", models=named, runtimes=runtimes, results=(recorded(**fields),))
        (one,) = baselines_of_evaluation(evaluation)
        return one

    one = found(low_ms=29.0, high_ms=31.0, packages=(("method", "inside-12345678"),))
    assert (one.level, one.method, [it.name for it in one.models]) == (Level.FUSED, Method.INSIDE, ["resnet50_v1"])
    assert one.timing is not None and (one.timing.low_ms, one.timing.high_ms) == (29.0, 31.0)
    samples = tuple(4.0 + number / 100 for number in range(20))
    timing = found(low_ms=None, high_ms=None, samples_ms=samples).timing
    assert timing is not None and 4.0 < timing.low_ms < timing.high_ms < 4.2
    assert found(low_ms=None, high_ms=None, samples_ms=()).timing is None
    assert found(**UNTIMED, estimate_ms=4.2).timing is None


def test_each_circumstance_that_has_changed_is_named_and_what_is_equal_or_was_not_told_is_not() -> None:
    variables = {"OMP_WAIT_POLICY": "active"}
    limits = {"instructions": InstructionSet.AVX2, "optimisation": Optimisation.BASIC}
    variant = {"threads": 1, "batch": 8, "precision": Precision.INT8, "variables": variables, **limits}
    was: dict[str, Any] = {
        "packages": (("dlbricks", "0.2.0"), ("onnxruntime", "1.23.2"), ("method", "inside-1"), ("onednn", "3.5.3")),
        "host": (("kernel", "6.1.0"), ("governor", "performance"), ("cpu", "Xeon"), ("memory_gib", 8), ("turbo", True)),
    }
    now: dict[str, Any] = {
        "packages": (("dlbricks", "0.3.0"), ("onnxruntime", "1.24.0"), ("method", "inside-2"), ("onednn", "3.6.1")),
        "host": (("kernel", "6.2.0"), ("governor", "powersave"), ("cpu", "EPYC"), ("memory_gib", 16), ("turbo", False)),
    }
    pairs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        # The version of the framework is named once.
        "all": (was, {**variant, **now, "version": "1.24.0", "sha256": "cd" * 32}),
        "usual threads": ({}, {"threads": None}),
        "another latency": ({}, {"measured_ms": 40.0}),
        "what one does not tell": ({"packages": (), "host": (), "sha256": ""}, {}),
        "what is unknown": ({"host": (("turbo", True), ("x", None))}, {"host": (("turbo", "unknown"), ("x", 1))}),
        "a whole number and an equal fraction": ({"host": (("cores", 2),)}, {"host": (("cores", 2.0),)}),
    }
    told = {
        f"{name}{direction}": [it.in_words for it in differences(baseline(**one), baseline(**other))]
        for name, both in pairs.items()
        for direction, (one, other) in {"": both, ", the other way round": both[::-1]}.items()
    }
    check("differences", told)


def test_an_exact_counterpart_is_nearer_than_any_other_of_the_same_model_and_framework() -> None:
    assert nearest(baseline(), [baseline(model="vgg16"), baseline(framework="openvino")]) is None
    exact = baseline(20.0, when="2026-11-20T08:00:00+00:00")
    others = [
        baseline(threads=1),
        baseline(batch=2),
        baseline(precision=Precision.INT8),
        baseline(version="1.22.0"),
        baseline(variables={"OMP_WAIT_POLICY": "active"}),
    ]
    assert nearest(baseline(), [*others, exact]) is exact
    # The same batch size and precision are nearer than the same threads, and newer results than older ones.
    one_thread, batched, older = others[0], baseline(batch=8), baseline(when="2026-11-20T08:00:00+00:00")
    assert nearest(baseline(threads=4), [batched, one_thread]) is one_thread
    assert nearest(baseline(threads=4), [baseline(precision=Precision.INT8, threads=4), one_thread]) is one_thread
    newer = baseline(when="2026-11-22T08:00:00+00:00")
    assert nearest(baseline(), [newer, older]) is nearest(baseline(), [older, newer]) is newer


def test_whole_models_are_compared_where_both_were_timed_and_estimates_elsewhere() -> None:
    found = comparable(baseline(30.0), baseline(40.0))
    assert found.end_to_end and found.was is not None and found.now is not None
    assert found.was.samples_ms == recorded(30.0).samples_ms
    assert found.now.value_ms == recorded(40.0).measured_ms
    found = comparable(baseline(30.0), baseline(40.0, **UNTIMED))
    assert not found.end_to_end and found.was is not None
    assert found.was.value_ms == pytest.approx(30.3)
    assert (found.was.low_ms, found.was.samples_ms) == (30.0, ())
    no_estimate = baseline(estimate_ms=None, estimate_low_ms=None, estimate_high_ms=None)
    found = comparable(no_estimate, baseline(**UNTIMED))
    assert (found.was, found.now) == (None, None)


def test_latencies_of_different_batch_sizes_are_compared_per_item() -> None:
    found = comparable(baseline(10.0), baseline(40.0, batch=4))
    assert found.per_item and found.was is not None and found.now is not None
    assert found.now.value_ms == pytest.approx(found.was.value_ms)
    assert found.now.samples_ms[0] == pytest.approx(10.0)


def test_facts_are_those_of_the_time_of_the_result_as_far_as_the_host_tells_them() -> None:
    here = system(instance_type="", facts=(("governor", "unknown"), ("turbo", None), ("hyper_threading", False)))
    told = {"cpu": "Xeon 8124M", "cores": 4, "memory_gib": 8, "hyper_threading": False}
    assert dict(facts_of_host(here, None)) == told
    origin = provenance(host=(("governor", "performance"), ("microcode", "unknown")))
    assert dict(facts_of_host(here, origin)) == {**told, "governor": "performance"}


def test_limits_on_kernels_are_parts_of_the_variant_and_no_variables() -> None:
    limited = {"DNNL_MAX_CPU_ISA": "AVX2", "OMP_DYNAMIC": "false"}
    assert tuning_variables(limited) == {"OMP_DYNAMIC": "false"}
