"""The what-ifs of an analysis, and the executions that they lack."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.analysis.bounds import by_layer_name, gain_between
from dlbricks_tui.analysis.groups import MeasuredExecution, latency_of
from dlbricks_tui.analysis.what_if import Correction, Doubt, Execution, Gain, WhatIf, WhatIfKind, corrected
from dlbricks_tui.analysis.what_ifs import (
    Host,
    Lack,
    expected_seconds,
    lacks_of,
    unfused,
    what_ifs_of,
)
from dlbricks_tui.api.analysing import requests_for
from dlbricks_tui.api.measuring import MeasureOptions, measured_by_settings
from dlbricks_tui.config.config import Config, Given
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import InstructionSet, Precision
from dlbricks_tui.store.records import Proof
from tests.analysis.executions import RUNTIME, executed, in_file, renamed, with_nodes
from tests.bricks.graphs import DATA, Spec, after, built, chain
from tests.store.samples import WHEN, proof

GRAPH = with_nodes(chain("conv", "relu", "pool"))
ONNX_RUNTIME = replace(RUNTIME, framework="onnxruntime", version="1.32.0")
OPENVINO = replace(RUNTIME, framework="openvino", version="2026.4.1")


def only(baseline: MeasuredExecution, *others: MeasuredExecution) -> WhatIf:
    (found,) = what_ifs_of(baseline, others)
    return found


def of_kind(kind: WhatIfKind, baseline: MeasuredExecution, *others: MeasuredExecution) -> list[WhatIf]:
    return [it for it in what_ifs_of(baseline, others) if it.kind is kind]


def test_more_threads_save_time_in_the_layers_that_become_faster() -> None:
    baseline = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0})
    found = only(baseline, executed(GRAPH, {0: 2.0, 1: 0.9, 2: 1.1}, threads=2))
    how = "OMP_NUM_THREADS=2 MXNET_ENGINE_TYPE=NaiveEngine"
    assert (found.id, found.kind, found.how) == ("threads-2", WhatIfKind.THREADS, how)
    assert found.estimate_ms == pytest.approx(4.0)
    assert found.gain.value == pytest.approx(1.0 - 4.0 / 6.0)
    assert found.gain.low < found.gain.value < found.gain.high
    assert found.layers == ("layer0", "layer1")
    assert found.change is not None
    assert found.change.runtime.settings.threads == 2


def test_a_change_that_costs_time_names_the_layers_that_become_slower() -> None:
    found = only(executed(GRAPH, {0: 1.0, 1: 1.0, 2: 1.0}), executed(GRAPH, {0: 3.0, 1: 0.5, 2: 1.5}, threads=2))
    assert found.gain.value < 0
    assert found.layers == ("layer0", "layer2")
    # Of several thread counts the best is named.
    times = {2: 2.0, 4: 1.0, 8: 3.0}
    others = [executed(GRAPH, {0: ms, 1: 1.0, 2: 1.0}, threads=threads) for threads, ms in times.items()]
    assert only(executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}), *others).id == "threads-4"


def test_independent_layers_run_on_workers_with_a_share_of_the_threads() -> None:
    fork = with_nodes(
        built([Spec("conv", DATA), Spec("relu", after(0)), Spec("pool", after(0)), Spec("add", after(1, 2))])
    )
    baseline = executed(fork, {0: 1.0, 1: 2.0, 2: 2.0, 3: 1.0}, threads=2)
    narrow = executed(fork, {0: 1.5, 1: 2.5, 2: 2.5, 3: 1.0}, threads=1)
    (found,) = of_kind(WhatIfKind.PARALLEL, baseline, narrow)
    assert found.id == "parallel-2"
    assert found.estimate_ms == pytest.approx(5.0)
    assert found.gain.value == pytest.approx(1.0 - 5.0 / 6.0)
    assert set(found.layers) == {"layer1", "layer2"}
    assert found.change is not None
    assert found.change.runtime.at_once == 2
    assert found.change.runtime.settings.threads == 1


def test_parallel_layers_are_a_bound_where_the_runtime_has_no_setting_and_need_free_cores() -> None:
    baseline, narrow = executed(GRAPH, runtime=OPENVINO, threads=2), executed(GRAPH, runtime=OPENVINO, threads=1)
    (found,) = of_kind(WhatIfKind.PARALLEL, baseline, narrow)
    assert found.change is None
    assert not of_kind(WhatIfKind.PARALLEL, executed(GRAPH, threads=1), executed(GRAPH, threads=2))


def test_other_kernels_are_named_by_their_setting_once_for_several_interpreters() -> None:
    settings = replace(RUNTIME.settings, environment=(("DNNL_MAX_CPU_ISA", "AVX2"),))
    runtimes = (replace(RUNTIME, settings=settings, python_version=it) for it in ("3.10.1", "3.11.7"))
    others = [executed(GRAPH, {0: 2.0}, runtime=it) for it in runtimes]
    for some in (others, others[:1]):
        found = only(executed(GRAPH, {0: 1.0}), *some)
        assert (found.id, found.how) == ("kernels-avx2", "DNNL_MAX_CPU_ISA=AVX2")


def test_another_runtime_of_the_same_file_also_gives_the_best_mix_as_a_bound() -> None:
    baseline = executed(GRAPH, {0: 3.0, 1: 1.0, 2: 1.0}, runtime=ONNX_RUNTIME)
    other = executed(GRAPH, {0: 2.0, 1: 1.0, 2: 2.0}, runtime=OPENVINO)
    whole, mix = what_ifs_of(baseline, [other])
    assert (whole.id, mix.id, mix.change) == ("runtime-openvino", "runtime-mix", None)
    assert (whole.estimate_ms, mix.estimate_ms) == pytest.approx((5.0, 4.0))
    assert mix.layers == ("layer0",)


def test_another_runtime_of_another_file_is_compared_layer_by_layer() -> None:
    baseline = in_file(executed(GRAPH, {0: 3.0, 1: 1.0, 2: 1.0}), "one-symbol.json")
    other = in_file(executed(GRAPH, {0: 2.0, 1: 1.0, 2: 3.0}, runtime=OPENVINO), "one.onnx")
    whole, mix = what_ifs_of(baseline, [other])
    assert (whole.id, whole.layers, mix.id, mix.layers) == ("runtime-openvino", ("layer2",), "runtime-mix", ("layer0",))
    assert mix.estimate_ms == pytest.approx(4.0)


def test_a_runtime_that_was_only_measured_on_other_threads_is_compared_with_the_fastest_of_them() -> None:
    baseline = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}, runtime=ONNX_RUNTIME, threads=1)
    two, four = (executed(GRAPH, {0: ms}, runtime=OPENVINO, threads=threads) for threads, ms in ((2, 1.0), (4, 3.0)))
    found = only(baseline, four, two)
    assert found.id == "runtime-openvino" and found.estimate_ms == pytest.approx(latency_of(two).value_ms)
    assert "OpenVINO 2026.4.1 on 2 threads" in found.how
    assert found.change is not None and found.change.runtime.settings.threads == 2
    # The same number of threads says more, however fast it is.
    one = executed(GRAPH, {0: 5.0}, runtime=OPENVINO, threads=1)
    (found,) = (it for it in what_ifs_of(baseline, [two, one]) if it.id == "runtime-openvino")
    assert found.change is not None and found.change.runtime.settings.threads == 1
    assert "threads" not in found.how


def test_the_default_engine_costs_the_difference_between_whole_models() -> None:
    baseline = executed(GRAPH, {0: 2.0, 1: 0.5, 2: 0.5}, threads=2, end_to_end=Latency(3.1, 3.0, 3.2))
    runtime = baseline.execution.runtime.with_default_engine()
    assert runtime is not None
    change = replace(baseline.execution, runtime=runtime)
    (found,) = what_ifs_of(baseline, [], by_default=(change, Latency(6.2, 6.1, 6.3)))
    assert (found.id, found.kind, found.layers) == ("runtime-default-engine", WhatIfKind.RUNTIME, ())
    assert found.how == "MXNET_ENGINE_TYPE=ThreadedEnginePerDevice, the default of MXNet"
    assert found.change == change
    assert found.estimate_ms == 6.2
    assert found.gain.value == pytest.approx(-1.0)
    assert found.gain.low < -1.0 < found.gain.high


def test_fusing_written_layers_saves_the_time_of_those_that_go() -> None:
    written = executed(replace(GRAPH, level=Level.WRITTEN), {0: 2.0, 1: 1.0, 2: 1.0})
    fused = executed(replace(GRAPH, level=Level.FUSED), {0: 2.2, 2: 1.0}, granularity=2)
    (found,) = of_kind(WhatIfKind.FUSION, written, fused)
    assert (found.id, found.change) == ("fusion", fused.execution)
    assert found.gain.value == pytest.approx(1.0 - 3.2 / 4.0)
    assert found.layers == ("layer0",)
    (back,) = of_kind(WhatIfKind.FUSION, fused, written)
    assert (back.id, back.gain.value < 0) == ("fusion-off", True)


def test_layers_that_could_have_been_fused_are_found_in_the_graph_that_ran() -> None:
    ops = [("conv", DATA), ("relu", after(0)), ("conv", after(1)), ("add", after(2, 1)), ("pool", after(3))]
    graph = built([*(Spec(op, feeds) for op, feeds in ops), Spec("relu", after(4))])
    one = executed(with_nodes(replace(graph, level=Level.FUSED)), dict.fromkeys(range(6), 1.0))
    assert unfused(one) == (1, 3)
    found = only(one)
    assert (found.id, found.change, found.layers) == ("fusion", None, ("layer1", "layer3"))
    assert found.estimate_ms == pytest.approx(4.0)
    # A layer whose input others read too is not missed.
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("pool", after(0)), Spec("add", after(1, 2))])
    assert unfused(executed(with_nodes(replace(graph, level=Level.FUSED)), dict.fromkeys(range(4), 1.0))) == ()


QUANTISED = replace(GRAPH.layers[2], kind=Kind.QUANTIZE, name="quantise")
# The same layers in another file, the last of which converts numbers.
COPY = executed(
    replace(GRAPH, layers=(*GRAPH.layers[:2], QUANTISED)).with_key("copy", Path("copy.onnx")),
    {0: 1.0, 1: 1.5, 2: 1.5},
    runtime=ONNX_RUNTIME.with_precision(Precision.INT8),
)


def test_another_precision_counts_with_its_conversions_and_is_advised_against_without_instructions() -> None:
    baseline = executed(GRAPH, {0: 1.9, 1: 1.4, 2: 1.0}, runtime=ONNX_RUNTIME)
    (found,) = of_kind(WhatIfKind.PRECISION, baseline, COPY)
    assert (found.id, found.layers) == ("precision-int8", ("layer0",))
    assert found.estimate_ms == pytest.approx(4.0)
    assert "1 of 2 layers gain" in found.how
    assert "conversions take 1.5 ms" in found.how
    unnamed = in_file(replace(COPY, graph=renamed(COPY.graph, range(3))), "copy.onnx")
    assert "gain" not in of_kind(WhatIfKind.PRECISION, baseline, unnamed)[0].how
    (found,) = what_ifs_of(baseline, [COPY], {Precision.INT8: "VNNI"})
    assert found.how.startswith("do not: this processor has no VNNI instructions")


def test_layers_of_a_quantised_copy_are_found_by_the_written_layers_behind_them() -> None:
    baseline = replace(executed(GRAPH, {0: 4.0, 2: 1.0}, runtime=ONNX_RUNTIME, granularity=2), written=GRAPH)
    copy = replace(in_file(replace(COPY, graph=renamed(COPY.graph, range(3))), "copy"), written=COPY.graph)
    assert [(it.layers, it.saved_ms) for it in by_layer_name(baseline, copy)] == [(("layer0", "layer1"), 1.5)]


def test_batches_are_compared_by_the_time_for_an_item() -> None:
    baseline = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0})
    larger = replace(GRAPH, batch_size=4)
    (found,) = what_ifs_of(baseline, [executed(larger, {0: 8.0, 1: 2.0, 2: 2.0})])
    assert found.id == "batch-4"
    assert found.estimate_ms == pytest.approx(3.0)
    assert found.gain.value == pytest.approx(0.5)


def test_executions_with_missing_layers_do_not_count() -> None:
    baseline, other = executed(GRAPH, {0: 4.0}), executed(GRAPH, {0: 1.0}, threads=2)
    part = replace(other.parts[0], standing=Standing.MISSING, measured=None)
    coverage = replace(other.estimate.coverage, measured=2, missing=1)
    lacking = replace(other.estimate, parts=(part, *other.parts[1:]), coverage=coverage)
    incomplete = replace(other, found=replace(other.found, estimate=lacking))
    assert not what_ifs_of(baseline, [incomplete])


def test_a_host_of_another_speed_widens_the_interval_of_a_gain() -> None:
    before, changed = Latency(2.0, 1.9, 2.1), Latency(1.0, 0.95, 1.05)
    calm, moved = gain_between(before, changed), gain_between(before, changed, speed_difference=0.2)
    assert calm.value == moved.value == 0.5
    assert moved.low < calm.low < calm.high < moved.high


@pytest.mark.parametrize(
    ("kind", "gain", "doubt"),
    [
        (WhatIfKind.PARALLEL, 0.4, Doubt.PARALLEL),
        (WhatIfKind.PARALLEL, -0.4, Doubt.PARALLEL),
        (WhatIfKind.THREADS, 0.06, Doubt.SMALL_GAIN),
        (WhatIfKind.KERNELS, -0.6, Doubt.LOSS),
        (WhatIfKind.THREADS, 0.1, None),
    ],
)
def test_small_gains_losses_and_parallel_layers_are_not_trusted(
    kind: WhatIfKind, gain: float, doubt: Doubt | None
) -> None:
    baseline = Execution(RUNTIME, Level.FUSED)
    found = WhatIf("it", kind, baseline, baseline, 1.0, Gain(gain, gain, gain), (), "")
    assert found.doubt is doubt
    assert replace(found, change=None).doubt is None


def told_wrong(model: str, predicted: float, measured: float, when: str = WHEN) -> Proof:
    """The proof of a change of a model, whose gain was predicted otherwise."""
    one: dict[str, Any] = {"model": model, "gain": measured, "predicted_gain": predicted, "when": when}
    change = RUNTIME.with_threads(4).identity
    return proof(what_if="it", runtime=RUNTIME.identity, changed_runtime=change, **one)


def test_proofs_of_other_models_correct_a_prediction_and_end_the_promise_of_a_change_that_cost_time() -> None:
    ways = Execution(RUNTIME, Level.FUSED), Execution(RUNTIME.with_threads(4), Level.FUSED)
    found = WhatIf("it", WhatIfKind.THREADS, *ways, 9.0, Gain(0.1, 0.08, 0.12), (), "")
    wrong = told_wrong("a", 0.1, -0.2)
    assert corrected(found, []) == found == corrected(found, [replace(wrong, what_if="other")])
    once = corrected(found, [wrong])
    assert once.gain.low == pytest.approx(-0.2)
    assert once.gain.value == pytest.approx(0.1), "a single proof may be wrong itself"
    older = told_wrong("a", 0.1, 0.1, "2020-01-01T00:00:00+00:00")
    twice = corrected(found, [wrong, told_wrong("b", 0.1, -0.2), older])
    assert twice.gain.value == pytest.approx(-0.2), "each proof counts, and the newest of a model"
    others = [told_wrong("b", 0.1, 0.1), told_wrong("c", 0.1, 0.11), told_wrong("d", 0.1, 0.12)]
    assert corrected(found, [wrong, *others]).gain.value == pytest.approx(0.1), "one of many is an exception"
    assert twice.estimate_ms == pytest.approx(9.0 * (1 - twice.gain.value) / 0.9)
    assert twice.correction == Correction(2, found.gain) and twice.uncorrected_gain == found.gain
    # Predictions that were right change nothing.
    right = corrected(found, [told_wrong("a", 0.1, 0.1), told_wrong("b", 0.3, 0.3)])
    assert (right.gain.value, right.gain.low) == pytest.approx((0.1, 0.08))


MXNET = Runtime("default", "python", "mxnet", "1.9.1", "3.11")
ORT = Runtime("default-onnx", "python", "onnxruntime", "1.32", "3.11")
INSTALLED = Runtime("default-openvino", "python", "openvino", "2026.4", "3.11")
SETS = (InstructionSet.AVX2, InstructionSet.AVX512_CORE, InstructionSet.AVX512_CORE_VNNI)
HOST = Host(4, SETS, (MXNET, ORT, INSTALLED))
BOTH = ModelSource("net", Path("net-symbol.json"), twin=ModelSource("net", Path("net.onnx")))
ONNX = ModelSource("net", Path("net.onnx"))


def identities(lacks: tuple[Lack, ...], kind: WhatIfKind) -> list[str]:
    return [lack.in_words for lack in lacks if lack.kind is kind]


def test_every_kind_of_what_if_has_the_executions_that_it_compares() -> None:
    baseline = Execution(MXNET.with_threads(4), Level.FUSED)
    lacks = lacks_of(BOTH, baseline, (), HOST)
    assert lacks[0] == Lack(baseline, None)
    assert identities(lacks, WhatIfKind.PARALLEL) == ["MXNet, 2 threads", "MXNet, 1 thread"]
    limited = ["MXNet, 4 threads, avx2 kernels", "MXNet, 4 threads, avx512_core kernels"]
    assert identities(lacks, WhatIfKind.KERNELS) == limited
    others = ["ONNX Runtime, 4 threads", "OpenVINO, 4 threads"]
    assert identities(lacks, WhatIfKind.RUNTIME) == [*others, "MXNet, 4 threads, default engine"]
    assert identities(lacks, WhatIfKind.FUSION) == ["MXNet, 4 threads, as written"]
    assert identities(lacks, WhatIfKind.PRECISION) == []
    # One and two threads serve the parallel what-ifs too.
    assert identities(lacks, WhatIfKind.THREADS) == []
    assert identities(lacks, WhatIfKind.BATCH) == [f"MXNet, 4 threads, batch {size}" for size in (2, 4, 8)]


def test_a_runtime_lacks_only_what_it_can_do() -> None:
    lacks = lacks_of(ONNX, Execution(INSTALLED.with_threads(1), Level.FUSED), (), HOST)
    assert identities(lacks, WhatIfKind.FUSION) == []
    assert identities(lacks, WhatIfKind.PARALLEL) == []
    # This processor has no bf16 arithmetic.
    assert identities(lacks, WhatIfKind.PRECISION) == ["OpenVINO, 1 thread, int8"]
    assert identities(lacks, WhatIfKind.RUNTIME) == ["ONNX Runtime, 1 thread"]
    assert [it.split(", ")[1] for it in identities(lacks, WhatIfKind.THREADS)] == ["2 threads", "4 threads"]
    host = Host(1, (*SETS, InstructionSet.AVX512_CORE_BF16), HOST.runtimes)
    lacks = lacks_of(ONNX, Execution(INSTALLED.with_threads(1), Level.FUSED), (), host)
    assert "OpenVINO, 1 thread, bf16" in identities(lacks, WhatIfKind.PRECISION)


def test_known_executions_and_other_kinds_are_left_out() -> None:
    baseline = Execution(ORT.with_threads(2), Level.FUSED)
    known = (baseline, Execution(ORT.with_threads(1), Level.FUSED), Execution(ORT.with_threads(2), Level.FUSED, 4))
    lacks = lacks_of(ONNX, baseline, known, HOST, (WhatIfKind.THREADS, WhatIfKind.BATCH))
    wanted = ["4 threads", "2 threads, batch 2", "2 threads, batch 8"]
    assert [lack.in_words for lack in lacks] == [f"ONNX Runtime, {it}" for it in wanted]
    # The baseline is what every what-if compares with.
    assert lacks_of(ONNX, baseline, (), HOST, (WhatIfKind.PRECISION,))[0].kind is None


def test_a_run_measures_one_level_and_one_list_of_batch_sizes() -> None:
    lacks = lacks_of(BOTH, Execution(MXNET.with_threads(2), Level.FUSED), (), HOST)
    usual, whole, written, batches = requests_for(BOTH, lacks, MeasureOptions())
    assert [part.runtime.framework for part in usual.parts] == ["mxnet"] * 4 + ["onnxruntime", "openvino", "mxnet"]
    files = {(part.runtime.framework, part.models[0].path.name) for part in usual.parts}
    assert files == {("mxnet", "net-symbol.json"), ("onnxruntime", "net.onnx"), ("openvino", "net.onnx")}
    assert (written.level, len(written.parts)) == (Level.WRITTEN, 1)
    assert (batches.batch_sizes, len(batches.parts)) == ((2, 4, 8), 1)
    assert {part.method for request in (usual, written, batches) for part in request.parts} == {Method.INSIDE}
    assert [request.bricks for request in (usual, whole, written, batches)] == [True, False, True, True]


def test_runs_take_as_long_as_the_settings_say() -> None:
    config = Config()
    config = replace(config, given={**config.given, "run.time_budget": Given(60.0), "run.target_ci": Given(0.05)})
    lacks = lacks_of(BOTH, Execution(MXNET.with_threads(2), Level.FUSED), (), HOST)
    for request in requests_for(BOTH, lacks, measured_by_settings(config)):
        assert isinstance(request.rule, Adaptive)
        assert (request.time_budget_seconds, request.rule.target) == (60.0, 0.05)


def test_the_default_engine_is_timed_by_whole_models_and_only_with_several_threads() -> None:
    def lacks(threads: int, *known: Execution) -> list[Lack]:
        baseline = Execution(MXNET.with_threads(threads), Level.FUSED)
        return [it for it in lacks_of(BOTH, baseline, known, HOST, (WhatIfKind.RUNTIME,)) if not it.bricks]

    (found,) = lacks(2)
    assert found.execution.runtime.settings.environment == (("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"),)
    (request,) = requests_for(BOTH, [found], MeasureOptions())
    assert (request.bricks, request.end_to_end, request.method) == (False, True, Method.INSIDE)
    assert expected_seconds(found, 5.0) < expected_seconds(Lack(found.execution, None), 5.0)
    assert lacks(2, found.execution) == lacks(1) == []
    of_ort = lacks_of(ONNX, Execution(ORT.with_threads(2), Level.FUSED), (), HOST)
    assert all(it.bricks for it in of_ort)


def test_a_slow_model_and_a_large_batch_take_longer() -> None:
    usual = Execution(ORT.with_threads(2), Level.FUSED)
    quick, slow = (expected_seconds(Lack(usual, None), latency_ms) for latency_ms in (5.0, 2000.0))
    assert quick == expected_seconds(Lack(usual, None), 0.0)
    assert slow == pytest.approx(quick + 25.0)
    large = Lack(Execution(usual.runtime, Level.FUSED, 8), WhatIfKind.BATCH)
    assert expected_seconds(large, 500.0) > expected_seconds(Lack(usual, None), 500.0)


def test_the_precision_of_the_baseline_stays_in_other_runtimes() -> None:
    baseline = Execution(ORT.with_threads(2).with_precision(Precision.INT8), Level.FUSED)
    lacks = lacks_of(BOTH, baseline, (), HOST, (WhatIfKind.RUNTIME,))
    # MXNet has no int8.
    assert identities(lacks, WhatIfKind.RUNTIME) == ["OpenVINO, 2 threads, int8"]
