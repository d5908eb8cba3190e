"""An evaluation with every key of the format, as text and as dataclasses."""

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
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
FULL = f"""\
format = 1
name = "nightly"
about = "Two detectors on the hosts of the shop"

# The line of a comment counts, too.
[[model]]
name = "silero_vad"
sha256 = "{SHA256}"
path = "models/silero_vad.onnx"
inputs = {{ x = [1, 512], "state in" = [2, 1, 128] }}
values = {{ sr = 16000 }}

[[model]]
name = "yolov8n"

[[runtime]]
framework = "onnxruntime"
version = ">=1.20,<2"
threads = [1, 2]
batch = [1, 8]
precision = ["f32", "int8"]
optimisation = "extended"
variables = {{ ORT_INTER_OP_THREADS = "2" }}

[[runtime]]
framework = "openvino"
instructions = ["avx2", "all"]
threads = 2

[measure]
level = "written"
granularity = 2
cut = "overlap"
order = "paper"
method = "alone"
bricks = true
end_to_end = false
target_interval = 0.02

[[scenario]]
kind = "server"
percentile = 99.9
bound_ms = 50
batch = 4
instances = 2
full = true

[[scenario]]
kind = "single"

[system]
cores = ">=4"
memory_gib = 16
cpu = "EPYC"
instance_type = "c6a.large"
instructions = ["avx2", "avx512_core"]
governor = "performance"
turbo = false
hyper_threading = true
quiet = true

[[result]]
model = "silero_vad"
framework = "onnxruntime"
version = "1.22.0"
threads = 2
batch = 8
precision = "int8"
instructions = "all"
optimisation = "extended"
variables = {{ ORT_INTER_OP_THREADS = "2" }}
when = "2026-11-26T08:30:00.123456+00:00"
measured_ms = 1.25
low_ms = 1.2
high_ms = 1.3
samples_ms = [
    1.2, 1.25,
    1.3,
]
estimate_ms = 1.27
estimate_low_ms = 1.2
estimate_high_ms = 1.34
sha256 = "{SHA256}"

[result.packages]
dlbricks = "0.3.0"
onednn = "3.4"

[result.host]
kernel = "6.1.0"
cores = 4
turbo = false
memory_gib = 15.5
"""

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
            variables={"ORT_INTER_OP_THREADS": "2"},
        ),
        EvaluatedRuntime(framework="openvino", instructions=(InstructionSet.AVX2, InstructionSet.ALL), threads=(2,)),
    ),
    measuring=Measuring(
        level=Level.WRITTEN,
        granularity=2,
        cut=Cut.OVERLAP,
        order=LayerOrder.PAPER,
        method=Method.ALONE,
        bricks=True,
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
            instructions=InstructionSet.ALL,
            optimisation=Optimisation.EXTENDED,
            variables={"ORT_INTER_OP_THREADS": "2"},
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
