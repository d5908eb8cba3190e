from typing import Any

import pytest

from dlbricks_tui.evaluations.differences import Difference, comparable, differences, nearest
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision
from tests.evaluations.results import baseline, recorded


def test_equal_circumstances_have_no_difference() -> None:
    assert differences(recorded(30.0), recorded(40.0)) == ()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"threads": 1}, Difference("threads", "2 threads", "1 thread")),
        ({"threads": None}, Difference("threads", "2 threads", "default threads")),
        ({"batch": 8}, Difference("batch size", "1", "8")),
        ({"precision": Precision.INT8}, Difference("precision", "f32", "int8")),
        ({"instructions": InstructionSet.AVX2}, Difference("instruction set of the kernels", "all", "avx2")),
        ({"optimisation": Optimisation.BASIC}, Difference("graph optimisation", "all", "basic")),
        ({"variables": {"OMP_WAIT_POLICY": "active"}}, Difference("variable OMP_WAIT_POLICY", "not set", "active")),
        ({"version": "1.24.0"}, Difference("ONNX Runtime version", "1.23.2", "1.24.0")),
        ({"sha256": "cd" * 32}, Difference("model content", "ab" * 6, "cd" * 6)),
    ],
)
def test_each_changed_circumstance_is_named(changed: dict[str, Any], named: Difference) -> None:
    assert differences(recorded(), recorded(**changed)) == (named,)


@pytest.mark.parametrize(
    ("facts", "name", "was", "now", "subject"),
    [
        ("packages", "dlbricks", "0.2.0", "0.3.0", "dlbricks"),
        ("packages", "method", "inside-1", "inside-2", "method"),
        ("packages", "onednn", "3.5.3", "3.6.1", "oneDNN"),
        ("host", "kernel", "6.1.0", "6.2.0", "kernel"),
        ("host", "governor", "performance", "powersave", "governor"),
        ("host", "cpu", "Xeon 8124M", "EPYC 7R13", "processor"),
        ("host", "cores", "4", "2", "cores"),
        ("host", "memory_gib", "8", "16", "memory (GiB)"),
        ("host", "turbo", "on", "off", "turbo"),
    ],
)
def test_each_changed_fact_is_named(facts: str, name: str, was: str, now: str, subject: str) -> None:
    earlier: dict[str, Any] = {facts: ((name, {"on": True}.get(was, was)),)}
    later: dict[str, Any] = {facts: ((name, {"off": False}.get(now, now)),)}
    before, after = recorded(**earlier), recorded(**later)
    assert differences(before, after) == (Difference(subject, was, now),)


def test_facts_that_only_one_result_knows_are_no_difference() -> None:
    assert differences(recorded(packages=(), host=(), sha256=""), recorded()) == ()
    assert differences(recorded(), recorded(packages=(), host=())) == ()


@pytest.mark.parametrize("untold", ["unknown", None])
def test_facts_that_a_host_did_not_tell_are_no_difference(untold: str | None) -> None:
    told, not_told = recorded(host=(("turbo", True),)), recorded(host=(("turbo", untold),))
    assert differences(told, not_told) == differences(not_told, told) == ()


def test_the_version_of_the_framework_is_named_once() -> None:
    after = recorded(version="1.24.0", packages=(("dlbricks", "0.2.0"), ("onnxruntime", "1.24.0")))
    assert [it.subject for it in differences(recorded(), after)] == ["ONNX Runtime version"]


def test_whole_numbers_and_equal_fractions_are_the_same_fact() -> None:
    assert differences(recorded(host=(("quota_cores", 2),)), recorded(host=(("quota_cores", 2.0),))) == ()


def test_the_nearest_earlier_result_has_the_same_model_and_framework() -> None:
    others = [baseline(model="vgg16"), baseline(framework="openvino")]
    assert nearest(baseline(), others) is None
    assert nearest(baseline(), []) is None


def test_an_exact_counterpart_is_nearer_than_any_other() -> None:
    exact = baseline(20.0, when="2026-11-20T08:00:00+00:00")
    others = [
        baseline(threads=1),
        baseline(batch=2),
        baseline(precision=Precision.INT8),
        baseline(version="1.22.0"),
        baseline(variables={"OMP_WAIT_POLICY": "active"}),
    ]
    assert nearest(baseline(), [*others, exact]) is exact


def test_a_result_of_the_same_batch_size_and_precision_is_nearer_than_one_of_the_same_threads() -> None:
    one_thread, batched = baseline(threads=1), baseline(batch=8)
    assert nearest(baseline(threads=4), [batched, one_thread]) is one_thread
    assert nearest(baseline(threads=4), [baseline(precision=Precision.INT8, threads=4), one_thread]) is one_thread


def test_of_equally_near_results_the_newest_counts() -> None:
    older, newer = baseline(when="2026-11-20T08:00:00+00:00"), baseline(when="2026-11-22T08:00:00+00:00")
    assert nearest(baseline(), [newer, older]) is newer
    assert nearest(baseline(), [older, newer]) is newer


def test_whole_models_are_compared_where_both_were_timed_and_estimates_elsewhere() -> None:
    found = comparable(baseline(30.0), baseline(40.0))
    assert found.end_to_end and found.was is not None and found.now is not None
    assert found.was.samples_ms == recorded(30.0).samples_ms
    assert found.now.value_ms == recorded(40.0).measured_ms
    bricks_only: dict[str, Any] = {"measured_ms": None, "low_ms": None, "high_ms": None, "samples_ms": ()}
    found = comparable(baseline(30.0), baseline(40.0, **bricks_only))
    assert not found.end_to_end and found.was is not None
    assert found.was.value_ms == pytest.approx(30.3)
    assert (found.was.low_ms, found.was.samples_ms) == (30.0, ())


def test_results_without_a_common_kind_of_latency_cannot_be_compared() -> None:
    no_estimate = baseline(estimate_ms=None, estimate_low_ms=None, estimate_high_ms=None)
    found = comparable(no_estimate, baseline(measured_ms=None, low_ms=None, high_ms=None, samples_ms=()))
    assert (found.was, found.now) == (None, None)


def test_latencies_of_different_batch_sizes_are_compared_per_item() -> None:
    found = comparable(baseline(10.0), baseline(40.0, batch=4))
    assert found.per_item and found.was is not None and found.now is not None
    assert found.now.value_ms == pytest.approx(found.was.value_ms)
    assert found.now.samples_ms[0] == pytest.approx(10.0)
