"""The process that traces a model, with the real ONNX Runtime."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from onnx import ModelProto
from onnx.helper import make_node

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.traces.file import read_trace
from dlbricks_tui.traces.messages import (
    LevelDone,
    LevelStarted,
    RoundStarted,
    TraceDone,
    TraceFailed,
    TraceMessage,
    TraceOrder,
    TraceWaits,
    decode,
    encode,
)
from dlbricks_tui.traces.process import main, trace_command
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
        self.process = subprocess.Popen(
            trace_command(self.data),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "DLBRICKS_HOST_LOCK": str(folder / "host.lock")},
        )
        assert self.process.stdin is not None
        self.process.stdin.write(order.encoded())
        self.process.stdin.close()

    def messages(self) -> Iterator[TraceMessage]:
        assert self.process.stdout is not None
        return map(decode, self.process.stdout)


def test_a_message_arrives_as_it_was_written() -> None:
    for message in (
        TraceWaits(holder="a run"),
        LevelStarted(level=TraceLevel.LAYER),
        RoundStarted(number=2, rounds=3),
        LevelDone(level=TraceLevel.THREAD, inference_ms=1.5, overhead_ms=-0.1),
        LevelDone(level=TraceLevel.PRIMITIVE, inference_ms=None, overhead_ms=None, missing="no oneDNN"),
        TraceDone(id="ab"),
        TraceFailed(reason="the worker was lost"),
    ):
        line = encode(message)
        assert line.endswith(b"\n") and line.count(b"\n") == 1
        assert decode(line) == message


@pytest.mark.parametrize(("succeeds", "status"), [(True, 0), (False, 1)])
def test_the_exit_status_says_whether_there_is_a_trace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, succeeds: bool, status: int
) -> None:
    lines: list[bytes] = []

    def executed(order: object, place: Workplace, write: Callable[[object], None], *_: object) -> bool:
        assert (order, place.data.path) == ("an order", tmp_path)
        write(TraceFailed(reason="it was cancelled"))
        return succeeds

    monkeypatch.setattr("dlbricks_tui.traces.process.take_order", lambda: ("an order", lines.append))
    monkeypatch.setattr("dlbricks_tui.traces.process.execute", executed)
    with pytest.raises(SystemExit) as ended:
        main(str(tmp_path))
    assert ended.value.code == status
    assert [decode(it) for it in lines] == [TraceFailed(reason="it was cancelled")]


def test_the_trace_is_in_its_file_when_the_process_ends(tmp_path: Path) -> None:
    process = Process(tmp_path, products(), 3)
    *told, done = process.messages()
    assert process.process.wait() == 0
    assert isinstance(done, TraceDone)
    assert [it.level for it in told if isinstance(it, LevelDone)] == [TraceLevel.MODEL, TraceLevel.LAYER]
    trace = read_trace(process.data.traces / f"{done.id}.json.gz")
    assert [it.level for it in trace.levels] == [TraceLevel.MODEL, TraceLevel.LAYER]


# In this process, `test_measuring.py` cancels a trace by the fake worker.
@pytest.mark.soak
def test_a_cancelled_process_ends_at_once_with_its_worker_and_says_so(tmp_path: Path) -> None:
    # Its inferences take hours.
    process = Process(tmp_path, products(), 1_000_000_000)
    told = process.messages()
    assert next(told) == LevelStarted(level=TraceLevel.MODEL)
    eventually(lambda: workers_of(process.process.pid))
    workers = workers_of(process.process.pid)
    process.process.send_signal(signal.SIGTERM)
    assert list(told)[-1] == TraceFailed(reason="it was cancelled")
    assert process.process.wait() == 1
    assert all_are_gone(workers)
