from pathlib import Path

import pytest

from dlbricks_tui.analysis.what_if import Execution, WhatIfKind
from dlbricks_tui.analysis.what_ifs import Host, Lack, expected_seconds, lacks_of, requests_for
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import InstructionSet, Precision

MXNET = Runtime("default", "python", "mxnet", "1.9.1", "3.11")
ORT = Runtime("default-onnx", "python", "onnxruntime", "1.32", "3.11")
OPENVINO = Runtime("default-openvino", "python", "openvino", "2026.4", "3.11")
SETS = (InstructionSet.AVX2, InstructionSet.AVX512_CORE, InstructionSet.AVX512_CORE_VNNI)
HOST = Host(4, SETS, (MXNET, ORT, OPENVINO))
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
    lacks = lacks_of(ONNX, Execution(OPENVINO.with_threads(1), Level.FUSED), (), HOST)
    assert identities(lacks, WhatIfKind.FUSION) == []
    assert identities(lacks, WhatIfKind.PARALLEL) == []
    # This processor has no bf16 arithmetic.
    assert identities(lacks, WhatIfKind.PRECISION) == ["OpenVINO, 1 thread, int8"]
    assert identities(lacks, WhatIfKind.RUNTIME) == ["ONNX Runtime, 1 thread"]
    assert [it.split(", ")[1] for it in identities(lacks, WhatIfKind.THREADS)] == ["2 threads", "4 threads"]
    host = Host(1, (*SETS, InstructionSet.AVX512_CORE_BF16), HOST.runtimes)
    lacks = lacks_of(ONNX, Execution(OPENVINO.with_threads(1), Level.FUSED), (), host)
    assert "OpenVINO, 1 thread, bf16" in identities(lacks, WhatIfKind.PRECISION)


def test_known_executions_and_other_kinds_are_left_out() -> None:
    baseline = Execution(ORT.with_threads(2), Level.FUSED)
    known = (baseline, Execution(ORT.with_threads(1), Level.FUSED), Execution(ORT.with_threads(2), Level.FUSED, 4))
    lacks = lacks_of(ONNX, baseline, known, HOST, (WhatIfKind.THREADS, WhatIfKind.BATCH))
    assert [lack.in_words for lack in lacks] == [
        "ONNX Runtime, 4 threads",
        "ONNX Runtime, 2 threads, batch 2",
        "ONNX Runtime, 2 threads, batch 8",
    ]
    # The baseline is what every what-if compares with.
    assert lacks_of(ONNX, baseline, (), HOST, (WhatIfKind.PRECISION,))[0].kind is None


def test_a_run_measures_one_level_and_one_list_of_batch_sizes() -> None:
    lacks = lacks_of(BOTH, Execution(MXNET.with_threads(2), Level.FUSED), (), HOST)
    usual, whole, written, batches = requests_for(BOTH, lacks)
    assert [part.runtime.framework for part in usual.parts] == ["mxnet"] * 4 + ["onnxruntime", "openvino", "mxnet"]
    assert {(part.runtime.framework, part.models[0].path.name) for part in usual.parts} == {
        ("mxnet", "net-symbol.json"),
        ("onnxruntime", "net.onnx"),
        ("openvino", "net.onnx"),
    }
    assert (written.level, len(written.parts)) == (Level.WRITTEN, 1)
    assert (batches.batch_sizes, len(batches.parts)) == ((2, 4, 8), 1)
    assert {part.method for request in (usual, written, batches) for part in request.parts} == {Method.INSIDE}
    assert [request.bricks for request in (usual, whole, written, batches)] == [True, False, True, True]


def test_the_default_engine_is_timed_by_whole_models_and_only_with_several_threads() -> None:
    def lacks(threads: int, *known: Execution) -> list[Lack]:
        baseline = Execution(MXNET.with_threads(threads), Level.FUSED)
        return [it for it in lacks_of(BOTH, baseline, known, HOST, (WhatIfKind.RUNTIME,)) if not it.bricks]

    (found,) = lacks(2)
    assert found.execution.runtime.settings.environment == (("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"),)
    (request,) = requests_for(BOTH, [found])
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
