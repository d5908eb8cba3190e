"""The process that traces a model, with the real ONNX Runtime."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from onnx import ModelProto
from onnx.helper import make_node

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event, JobEnded, JobStarted, follow
from dlbricks_tui.jobs.process import command_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.traces.file import read_trace
from dlbricks_tui.traces.messages import TRACE, LevelDone, LevelStarted, TraceDone, TraceOrder
from dlbricks_tui.traces.trace import TraceLevel
from tests.models.onnx_models import floats, model, saved
from tests.runs.killing import all_are_gone, eventually, workers_of


def products(rows: int = 16, repeats: int = 1) -> ModelProto:
    """Return matrix products in a row."""
    nodes = [make_node("MatMul", [f"x{number or ''}", "u"], [f"x{number + 1}"]) for number in range(repeats)]
    return model(nodes, {"x": (rows, 16)}, [f"x{repeats}"], [floats("u", (16, 16))])


class Process:
    """The process, with its data folder."""

    def __init__(self, folder: Path, made: ModelProto, inferences: int) -> None:
        self.data = DataFolder(folder / "data")
        runtime = Registry(self.data.path).find("onnxruntime").with_threads(1)
        order = TraceOrder(
            source=source_of(saved(folder, made)),
            execution=Execution(runtime, Level.FUSED),
            levels=(TraceLevel.MODEL, TraceLevel.LAYER),
            inferences=inferences,
        )
        self.job = TRACE.create(self.data, (order.source.name,), order)
        self.process = subprocess.Popen(
            command_of(TRACE.function, str(self.job.path), str(self.data.path)),
            env={**os.environ, "DLBRICKS_HOST_LOCK": str(folder / "host.lock")},
        )

    def events(self) -> Iterator[Event]:
        return follow(TRACE.reader(self.job), lambda: self.process.poll() is None, lambda: time.sleep(0.05))


def test_the_trace_is_in_its_file_when_the_process_ends(tmp_path: Path) -> None:
    process = Process(tmp_path, products(), 3)
    *told, done, ended = process.events()
    assert process.process.wait() == 0
    assert isinstance(done, TraceDone) and isinstance(ended, JobEnded) and ended.state == "finished"
    assert [it.level for it in told if isinstance(it, LevelDone)] == [TraceLevel.MODEL, TraceLevel.LAYER]
    trace = read_trace(process.data.traces / f"{done.id}.json.gz")
    assert [it.level for it in trace.levels] == [TraceLevel.MODEL, TraceLevel.LAYER]


# In this process, `test_measuring.py` cancels a trace by the fake worker.
@pytest.mark.soak
def test_a_cancelled_process_ends_at_once_with_its_worker_and_says_so(tmp_path: Path) -> None:
    # Its inferences take hours.
    process = Process(tmp_path, products(), 1_000_000_000)
    told = process.events()
    assert isinstance(next(told), JobStarted)
    assert next(told) == LevelStarted(level=TraceLevel.MODEL)
    eventually(lambda: workers_of(process.process.pid))
    workers = workers_of(process.process.pid)
    process.process.send_signal(signal.SIGTERM)
    ended = list(told)[-1]
    assert isinstance(ended, JobEnded) and (ended.state, ended.message) == ("cancelled", "it was cancelled")
    assert process.process.wait() == 1
    assert all_are_gone(workers)
