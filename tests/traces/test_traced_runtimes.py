"""Traces by the real runtimes, in this process and in one of their own: their layers are those of the graph."""

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from onnx.helper import make_node

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.events import JobEnded, follow
from dlbricks_tui.jobs.process import command_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.runtime.process import INSIDE
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.traces.file import read_trace
from dlbricks_tui.traces.formats import chrome_json, perfetto_bytes
from dlbricks_tui.traces.trace import TRACE, LevelDone, LevelTrace, Trace, TraceDone, TraceLevel, TraceOrder, TrackKind
from tests.models.onnx_models import floats, model, saved
from tests.runs.runs import Site
from tests.traces.perfetto_files import Read, values
from tests.traces.tracing import TraceBench, assert_exactly_the_layers, level_of, track_of

_RUNTIMES = [
    # Its start takes most of the time.
    pytest.param("mxnet", marks=[pytest.mark.mxnet, pytest.mark.soak]),
    "onnxruntime",
    pytest.param("openvino", marks=pytest.mark.openvino),
]
_WITH_ONEDNN = ("mxnet", "openvino")


def traced(folder: Path, framework: str, model: str, inferences: int, levels: Sequence[TraceLevel]) -> Trace:
    bench = TraceBench(Site(folder / "data", INSIDE))
    bench.site.path.mkdir()
    runtime = Registry(bench.site.path).find(framework).with_threads(1)
    form = runtime.traits.format
    (source,) = Library(SAMPLE_MODELS, bench.site.path, form).find(model)
    execution = Execution(runtime, Level.FUSED)
    return bench.trace(execution, source.in_format(form), levels=tuple(levels), inferences=inferences)


def shown(level: LevelTrace) -> int:
    """Return the number of inferences that a level shows."""
    return len(track_of(level, TrackKind.INFERENCES).spans)


def check_layers(trace: Trace) -> None:
    """Check the layer level."""
    level = level_of(trace, TraceLevel.LAYER)
    assert trace.graph_level is Level.FUSED
    assert_exactly_the_layers(trace, level)
    convolutions = {it.index for it in trace.layers if it.kind == "convolution"}
    assert convolutions
    assert all(it.duration_ns > 0 for it in track_of(level, TrackKind.LAYERS).spans if it.layer in convolutions)


def check_primitives(trace: Trace, framework: str) -> None:
    """Check that each convolution has a primitive in each inference, where the runtime computes with oneDNN."""
    if framework not in _WITH_ONEDNN:
        assert [it.level for it in trace.missing] == [TraceLevel.PRIMITIVE]
        assert "not with oneDNN" in trace.missing[0].reason
        return
    assert trace.missing == ()
    level = level_of(trace, TraceLevel.PRIMITIVE)
    assert_exactly_the_layers(trace, level)
    convolutions = {it.index for it in trace.layers if it.kind == "convolution"}
    found = track_of(level, TrackKind.PRIMITIVES).spans
    for number in range(shown(level)):
        ran = {it.layer for it in found if it.inference == number and it.name.startswith("convolution ")}
        assert ran == convolutions


def check_files(trace: Trace) -> None:
    """Check that both formats for other programs have each layer once in each inference, with its brick."""
    number = 1 + [it.level for it in trace.levels].index(TraceLevel.LAYER)
    expected = Counter(
        (inference, layer.index, layer.brick)
        for inference in range(shown(trace.levels[number - 1]))
        for layer in trace.layers
    )
    read = Read(perfetto_bytes(trace))
    slices = read.slices[read.of_level(f"{number} layer level")["layers"]]
    told = [values(event.debug_annotations) for *_, event in slices]
    assert Counter((it["inference"], it["layer"], it["brick"]) for it in told) == expected
    events = json.loads(chrome_json(trace))["traceEvents"]
    of_level = [it["args"] for it in events if it["pid"] == number and it.get("cat", "").startswith("layers,")]
    assert Counter((it["inference"], it["layer"], it["brick"]) for it in of_level) == expected


@pytest.mark.parametrize("framework", _RUNTIMES)
def test_the_layer_level_has_exactly_the_layers_of_the_fused_graph(framework: str, tmp_path: Path) -> None:
    trace = traced(tmp_path, framework, "mobilenet0.25", 2, (TraceLevel.LAYER, TraceLevel.PRIMITIVE))
    check_layers(trace)
    check_primitives(trace, framework)
    check_files(trace)


def test_the_trace_is_in_its_file_when_the_process_ends(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    execution = Execution(Registry(data.path).find("onnxruntime").with_threads(1), Level.FUSED)
    levels = (TraceLevel.MODEL, TraceLevel.LAYER)
    product = model([make_node("MatMul", ["x", "u"], ["y"])], {"x": (16, 16)}, ["y"], [floats("u", (16, 16))])
    order = TraceOrder(source=source_of(saved(tmp_path, product)), execution=execution, levels=levels, inferences=3)
    job = TRACE.create(data, (order.source.name,), order)
    environment = {**os.environ, "DLBRICKS_HOST_LOCK": str(tmp_path / "host.lock")}
    process = subprocess.Popen(command_of(TRACE.function, str(job.path), str(data.path)), env=environment)
    *told, done, ended = follow(TRACE.reader(job), lambda: process.poll() is None, lambda: time.sleep(0.05))
    assert process.wait() == 0
    assert isinstance(done, TraceDone) and isinstance(ended, JobEnded) and ended.state == "finished"
    assert tuple(it.level for it in told if isinstance(it, LevelDone)) == levels
    trace = read_trace(data.traces / f"{done.id}.json.gz")
    assert tuple(it.level for it in trace.levels) == levels
