"""Traces by the real runtimes: their layers are exactly those of the fused graph, once for each inference."""

from pathlib import Path

import pytest

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.runtime.process import INSIDE
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.traces.trace import Trace, TraceLevel, TrackKind
from tests.runs.runs import Site
from tests.traces.tracing import Bench, assert_exactly_the_layers, level_of, track_of

_LOWER = (TraceLevel.MODEL, TraceLevel.LAYER, TraceLevel.PRIMITIVE)
_RUNTIMES = [
    pytest.param("mxnet", marks=pytest.mark.mxnet),
    "onnxruntime",
    pytest.param("openvino", marks=pytest.mark.openvino),
]
# With oneDNN, and the share of convolutions that it computes.
_WITH_ONEDNN = ("mxnet", "openvino")


def traced(folder: Path, framework: str, model: str, inferences: int) -> Trace:
    bench = Bench(Site(folder / "data", INSIDE))
    bench.site.path.mkdir()
    runtime = Registry(bench.site.path).find(framework).with_threads(1)
    (source,) = Library(SAMPLE_MODELS, bench.site.path, runtime.traits.format).find(model)
    return bench.trace(
        Execution(runtime, Level.FUSED), source.in_format(runtime.traits.format), levels=_LOWER, inferences=inferences
    )


def check(trace: Trace, framework: str) -> None:
    assert trace.graph_level is Level.FUSED
    assert_exactly_the_layers(trace, level_of(trace, TraceLevel.LAYER))
    layers = track_of(level_of(trace, TraceLevel.LAYER), TrackKind.LAYERS).spans
    convolutions = {it.index for it in trace.layers if it.kind == "convolution"}
    assert convolutions
    assert all(it.duration_ns > 0 for it in layers if it.layer in convolutions)
    if framework not in _WITH_ONEDNN:
        assert [it.level for it in trace.missing] == [TraceLevel.PRIMITIVE]
        assert "not with oneDNN" in trace.missing[0].reason
        return
    assert trace.missing == ()
    primitives = track_of(level_of(trace, TraceLevel.PRIMITIVE), TrackKind.PRIMITIVES).spans
    for number in range(len(level_of(trace, TraceLevel.PRIMITIVE).inference_ms)):
        ran = {it.layer for it in primitives if it.inference == number and it.name.startswith("convolution ")}
        assert ran == convolutions


@pytest.mark.parametrize("framework", _RUNTIMES)
def test_the_layer_level_has_exactly_the_layers_of_the_fused_graph(framework: str, tmp_path: Path) -> None:
    check(traced(tmp_path, framework, "mobilenet0.25", 2), framework)


@pytest.mark.soak
@pytest.mark.parametrize("framework", _RUNTIMES)
def test_resnet50_is_traced_by_each_runtime(framework: str, tmp_path: Path) -> None:
    check(traced(tmp_path, framework, "resnet50_v1", 5), framework)
