"""An evaluation with every key of the format, as text and as dataclasses, and recorded results."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.evaluations.baseline import Baseline, baseline_of_one_process
from dlbricks_tui.evaluations.evaluation import (
    EvaluatedModel,
    EvaluatedRuntime,
    EvaluatedScenario,
    Evaluation,
    Measuring,
    RecordedResult,
    Requirements,
)
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision
from dlbricks_tui.scenarios.scenario import ScenarioKind
from dlbricks_tui.store.statistics import summarise

MINIMAL = """\
format = 1
name = "smallest"

[[model]]
name = "squeezenet1.1"

[[runtime]]
framework = "onnxruntime"
"""

SHA256 = "0123456789abcdef" * 4
# Tests count the lines of this text: line 1 is the format.
FULL = (Path(__file__).parent / "full.toml").read_text(encoding="utf-8")
TUNED = {"ORT_INTER_OP_THREADS": "2"}

EVALUATION = Evaluation(
    name="nightly",
    about="Two detectors on the hosts of the shop",
    models=(
        EvaluatedModel(
            name="silero_vad",
            sha256=SHA256,
            path="models/silero_vad.onnx",
            inputs={"x": (1, 512), "state in": (2, 1, 128)},
            values={"sr": (16000,)},
        ),
        EvaluatedModel(name="yolov8n"),
    ),
    runtimes=(
        EvaluatedRuntime(
            framework="onnxruntime",
            version=">=1.20,<2",
            threads=(1, 2),
            batch=(1, 8),
            precision=(Precision.F32, Precision.INT8),
            optimisation=(Optimisation.EXTENDED,),
            variables=TUNED,
        ),
        EvaluatedRuntime(framework="openvino", instructions=(InstructionSet.AVX2, InstructionSet.ALL), threads=(2,)),
    ),
    measuring=Measuring(
        level=Level.WRITTEN,
        granularity=2,
        cut=Cut.OVERLAP,
        order=LayerOrder.PAPER,
        method=Method.ALONE,
        end_to_end=False,
        target_interval=0.02,
    ),
    scenarios=(
        EvaluatedScenario(kind=ScenarioKind.SERVER, percentile=99.9, bound_ms=50, batch=(4,), instances=2, full=True),
        EvaluatedScenario(kind=ScenarioKind.SINGLE),
    ),
    system=Requirements(
        cores=">=4",
        memory_gib="16",
        cpu="EPYC",
        instance_type="c6a.large",
        instructions=(InstructionSet.AVX2, InstructionSet.AVX512_CORE),
        governor="performance",
        turbo=False,
        hyper_threading=True,
        quiet=True,
    ),
    results=(
        RecordedResult(
            model="silero_vad",
            framework="onnxruntime",
            version="1.22.0",
            threads=2,
            batch=8,
            precision=Precision.INT8,
            optimisation=Optimisation.EXTENDED,
            variables=TUNED,
            when="2026-11-26T08:30:00.123456+00:00",
            measured_ms=1.25,
            low_ms=1.2,
            high_ms=1.3,
            samples_ms=(1.2, 1.25, 1.3),
            estimate_ms=1.27,
            estimate_low_ms=1.2,
            estimate_high_ms=1.34,
            packages=(("dlbricks", "0.3.0"), ("onednn", "3.4")),
            host=(("kernel", "6.1.0"), ("cores", 4), ("turbo", False), ("memory_gib", 15.5)),
            sha256=SHA256,
        ),
    ),
)


def baseline(base_ms: float = 30.0, processes: int = 3, **fields: Any) -> Baseline:
    """Return a result around a latency over so many processes."""
    found = baseline_of_one_process(recorded(base_ms, **fields), Level.FUSED)
    return replace(found, timing=found.timing and replace(found.timing, processes=processes))


def recorded(base_ms: float = 30.0, **fields: Any) -> RecordedResult:
    """Return a result around a latency."""
    samples = tuple(base_ms * (1 + number % 5 / 1000) for number in range(20))
    found = summarise(samples)
    usual: dict[str, Any] = {
        "model": "resnet50_v1",
        "framework": "onnxruntime",
        "version": "1.23.2",
        "threads": 2,
        "batch": 1,
        "when": "2026-11-21T08:00:00.000000+00:00",
        "measured_ms": found.trimmed_mean_ms,
        "low_ms": found.low_ms,
        "high_ms": found.high_ms,
        "samples_ms": samples,
        "estimate_ms": base_ms * 1.01,
        "estimate_low_ms": base_ms,
        "estimate_high_ms": base_ms * 1.02,
        "packages": (("dlbricks", "0.2.0"), ("onnxruntime", "1.23.2"), ("method", "inside-1")),
        "host": (("cpu", "Xeon 8124M"), ("cores", 4), ("kernel", "6.1.0"), ("governor", "performance")),
        "sha256": "ab" * 32,
    }
    return RecordedResult(**{**usual, **fields})
