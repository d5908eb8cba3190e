"""The what-ifs of an analysis, and the executions that they lack."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.analysis.bounds import by_layer_name, gain_between
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.what_if import Correction, Doubt, Execution, Gain, WhatIf, WhatIfKind, corrected
from dlbricks_tui.analysis.what_ifs import (
    Host,
    Lack,
    expected_seconds,
    lacks_of,
    what_ifs_of,
)
from dlbricks_tui.api.analysing import requests_for
from dlbricks_tui.api.measuring import MeasureOptions, measured_by_settings
from dlbricks_tui.config.config import Config, Given
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import InstructionSet, Precision
from dlbricks_tui.store.records import Proof
from tests.analysis.executions import RUNTIME, executed, in_file, renamed, with_nodes
from tests.bricks.graphs import DATA, Spec, after, built, chain
from tests.documents.snapshots import check
from tests.store.samples import WHEN, proof

GRAPH = with_nodes(chain("conv", "relu", "pool"))
ONNX_RUNTIME = replace(RUNTIME, framework="onnxruntime", version="1.32.0")
OPENVINO = replace(RUNTIME, framework="openvino", version="2026.4.1")


def execution_words(it: Execution) -> str:
    runtime = it.runtime
    told = [runtime.framework, f"{runtime.settings.threads} threads", runtime.settings.precision.value, it.level.value]
    return ", ".join([*told, *[f"{runtime.at_once} at once"] * (runtime.at_once > 1)])


def told(baseline: MeasuredExecution, *others: MeasuredExecution, **known: Any) -> list[str]:
    """The what-ifs with their gains, their layers, how to get them, and in what executions."""
    return [
        f"{it.id}: {it.estimate_ms:.4g} ms, {it.gain.value:+.1%} ({it.gain.low:+.1%} to {it.gain.high:+.1%}) in "
        f"{', '.join(it.layers)}: {it.how} [{'a bound' if it.change is None else execution_words(it.change)}]"
        for it in what_ifs_of(baseline, others, **known)
    ]


def fork(*ops: str) -> LayerGraph:
    """A layer that two others read, and the sum of these."""
    one, two = ops
    return with_nodes(built([Spec("conv", DATA), Spec(one, after(0)), Spec(two, after(0)), Spec("add", after(1, 2))]))


def lacking_a_layer(one: MeasuredExecution) -> MeasuredExecution:
    part = replace(one.parts[0], standing=Standing.MISSING, measured=None)
    coverage = replace(one.estimate.coverage, measured=2, missing=1)
    estimate = replace(one.estimate, parts=(part, *one.parts[1:]), coverage=coverage)
    return replace(one, found=replace(one.found, estimate=estimate))


QUANTISED = replace(GRAPH.layers[2], kind=Kind.QUANTIZE, name="quantise")
# The same layers in another file, the last of which converts numbers.
COPY = executed(
    replace(GRAPH, layers=(*GRAPH.layers[:2], QUANTISED)).with_key("copy", Path("copy.onnx")),
    {0: 1.0, 1: 1.5, 2: 1.5},
    runtime=ONNX_RUNTIME.with_precision(Precision.INT8),
)


LIMITED = replace(RUNTIME, settings=replace(RUNTIME.settings, environment=(("DNNL_MAX_CPU_ISA", "AVX2"),)))


def test_the_changes_of_one_choice_are_what_ifs_with_the_layers_that_gain_or_lose_most() -> None:
    six, five = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}), {0: 3.0, 1: 1.0, 2: 1.0}
    costly, ort = executed(GRAPH, {0: 3.0, 1: 0.5, 2: 1.5}, threads=2), executed(GRAPH, five, runtime=ONNX_RUNTIME)
    threads = [
        executed(GRAPH, {0: ms, 1: 1.0, 2: 1.0}, threads=number) for number, ms in ((2, 2.0), (4, 1.0), (8, 3.0))
    ]
    kernels = [executed(GRAPH, {0: 2.0}, runtime=replace(LIMITED, python_version=it)) for it in ("3.10.1", "3.11.7")]
    one, two, four = (
        executed(GRAPH, {0: ms}, runtime=OPENVINO, threads=it) for it, ms in ((1, 5.0), (2, 1.0), (4, 3.0))
    )
    here, there = (
        in_file(executed(GRAPH, five), "one.json"),
        executed(GRAPH, {0: 2.0, 1: 1.0, 2: 3.0}, runtime=OPENVINO),
    )
    wide, narrow = (
        executed(fork("relu", "pool"), dict(enumerate(ms)), threads=it)
        for it, ms in ((2, (1.0, 2.0, 2.0, 1.0)), (1, (1.5, 2.5, 2.5, 1.0)))
    )
    written = executed(replace(GRAPH, level=Level.WRITTEN), {0: 2.0, 1: 1.0, 2: 1.0})
    fused = executed(replace(GRAPH, level=Level.FUSED), {0: 2.2, 2: 1.0}, granularity=2)
    ops = [("conv", DATA), ("relu", after(0)), ("conv", after(1)), ("add", after(2, 1)), ("pool", after(3))]
    unfused = built([*(Spec(op, feeds) for op, feeds in ops), Spec("relu", after(4))])
    missed, read_twice = (
        executed(with_nodes(replace(it, level=Level.FUSED)), dict.fromkeys(range(6), 1.0))
        for it in (unfused, fork("relu", "pool"))
    )
    whole = executed(GRAPH, {0: 2.0, 1: 0.5, 2: 0.5}, threads=2, end_to_end=Latency(3.1, 3.0, 3.2))
    engine = whole.execution.runtime.with_default_engine()
    assert engine is not None
    by_default = replace(whole.execution, runtime=engine), Latency(6.2, 6.1, 6.3)
    plain = executed(GRAPH, {0: 1.9, 1: 1.4, 2: 1.0}, runtime=ONNX_RUNTIME)
    unnamed = in_file(replace(COPY, graph=renamed(COPY.graph, range(3))), "copy.onnx")
    check(
        "what-ifs-of",
        {
            "more threads": told(six, executed(GRAPH, {0: 2.0, 1: 0.9, 2: 1.1}, threads=2)),
            "a change that costs time": told(executed(GRAPH, {0: 1.0, 1: 1.0, 2: 1.0}), costly),
            "of several numbers of threads the best": told(six, *threads),
            "independent layers on workers with a share of the threads": told(wide, narrow),
            "parallel layers where the runtime has no setting": told(two, one),
            "parallel layers without free cores": told(executed(GRAPH), executed(GRAPH, threads=2)),
            "other kernels, once for several interpreters": told(executed(GRAPH, {0: 1.0}), *kernels),
            "another runtime of the same file, and the best mix": told(
                ort, executed(GRAPH, {0: 2.0, 1: 1.0, 2: 2.0}, runtime=OPENVINO)
            ),
            "another runtime of another file, layer by layer": told(here, there),
            "another runtime on other threads only": told(ort, four, two),
            # The same number of threads says more, however fast it is.
            "another runtime on the same threads": told(ort, two, one),
            "the default engine": told(whole, by_default=by_default),
            "written layers that are fused": told(written, fused),
            "fused layers as written": told(fused, written),
            "layers that could have been fused": told(missed),
            # A layer whose input others read too is not missed.
            "layers that could not have been fused": told(read_twice),
            "another precision with its conversions": told(plain, COPY),
            "a quantised copy whose nodes have other names": told(plain, unnamed),
            "a precision without instructions": told(plain, COPY, lacking={Precision.INT8: "VNNI"}),
            "a batch, for an item": told(six, executed(replace(GRAPH, batch_size=4), {0: 8.0, 1: 2.0, 2: 2.0})),
            "an execution with missing layers": told(six, lacking_a_layer(executed(GRAPH, {0: 1.0}, threads=2))),
        },
        width=200,
    )


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


def lacking(
    source: ModelSource,
    runtime: Runtime,
    measured: Sequence[Execution] = (),
    host: Host = HOST,
    level: Level = Level.FUSED,
    **kinds: Any,
) -> list[str]:
    """The executions that the what-ifs of a model lack, with their kinds."""
    found = lacks_of(source, Execution(runtime, level), measured, host, **kinds)
    return [f"{'baseline' if it.kind is None else it.kind.value}: {it.in_words}" for it in found]


def test_every_kind_of_what_if_lacks_the_executions_that_it_compares_and_that_are_possible() -> None:
    bf16 = Host(1, (*SETS, InstructionSet.AVX512_CORE_BF16), HOST.runtimes)
    two = ORT.with_threads(2)
    known = (Execution(two, Level.FUSED), Execution(ORT.with_threads(1), Level.FUSED), Execution(two, Level.FUSED, 4))
    some = (WhatIfKind.THREADS, WhatIfKind.BATCH)
    check(
        "lacks",
        {
            # One and two threads serve the parallel what-ifs too.
            "of MXNet on four threads": lacking(BOTH, MXNET.with_threads(4)),
            "of MXNet on one thread": lacking(BOTH, MXNET.with_threads(1)),
            # OpenVINO cannot run layers as written.
            "of written layers": lacking(
                BOTH, ORT.with_threads(1), level=Level.WRITTEN, kinds=(WhatIfKind.RUNTIME, WhatIfKind.FUSION)
            ),
            "of OpenVINO": lacking(ONNX, INSTALLED.with_threads(1)),
            "of OpenVINO on a processor with bf16": lacking(ONNX, INSTALLED.with_threads(1), host=bf16),
            "of ONNX Runtime, some of which is known, of two kinds": lacking(ONNX, two, known, kinds=some),
            # The baseline is what every what-if compares with.
            "of a kind without executions": lacking(ONNX, two, kinds=()),
            # MXNet has no int8.
            "of other runtimes in the precision of the baseline": lacking(
                BOTH, two.with_precision(Precision.INT8), kinds=(WhatIfKind.RUNTIME,)
            ),
        },
    )


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


def test_the_default_engine_is_timed_by_whole_models_only() -> None:
    baseline = Execution(MXNET.with_threads(2), Level.FUSED)
    (found,) = (it for it in lacks_of(BOTH, baseline, (), HOST, (WhatIfKind.RUNTIME,)) if not it.bricks)
    assert found.execution.runtime.settings.environment == (("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"),)
    (request,) = requests_for(BOTH, [found], MeasureOptions())
    assert (request.bricks, request.end_to_end, request.method) == (False, True, Method.INSIDE)
    assert expected_seconds(found, 5.0) < expected_seconds(Lack(found.execution, None), 5.0)


def test_a_slow_model_and_a_large_batch_take_longer() -> None:
    usual = Execution(ORT.with_threads(2), Level.FUSED)
    quick, slow = (expected_seconds(Lack(usual, None), latency_ms) for latency_ms in (5.0, 2000.0))
    assert quick == expected_seconds(Lack(usual, None), 0.0)
    assert slow == pytest.approx(quick + 25.0)
    large = Lack(Execution(usual.runtime, Level.FUSED, 8), WhatIfKind.BATCH)
    assert expected_seconds(large, 500.0) > expected_seconds(Lack(usual, None), 500.0)
