"""The process that measures a scenario, with the real ONNX Runtime and the real LoadGen."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from onnx import ModelProto
from onnx.helper import make_node

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event, JobEnded, follow
from dlbricks_tui.jobs.process import command_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.scenarios.messages import LOAD_TEST, LoadDone, LoadTestStarted, ScenarioOrder
from dlbricks_tui.scenarios.scenario import Scenario, ScenarioKind, measured_load
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.verification import verify
from tests.models.onnx_models import floats, model, saved
from tests.runs.killing import all_are_gone, eventually, workers_of
from tests.runs.runs import ROOT
from tests.scenarios.load import PERCENTILE, scenario

pytest.importorskip("mlperf_loadgen")


def open_batch() -> ModelProto:
    """Return two matrix products, for any number of rows."""
    nodes = [make_node("MatMul", ["x", "u"], ["up"]), make_node("MatMul", ["up", "d"], ["y"])]
    return model(nodes, {"x": ("batch", 16)}, ["y"], [floats("u", (16, 64)), floats("d", (64, 16))])


# The process that measures a scenario, with fewer single requests before its tests.
QUICK = """
import sys
from dataclasses import replace
from dlbricks_tui.scenarios import measuring, process
usual = measuring.LoadRule.of
measuring.LoadRule.of = lambda scenario: replace(usual(scenario), warm_seconds=0.05)
process.main(*sys.argv[1:])
"""


class Process:
    """The process, with its data folder."""

    def __init__(self, folder: Path, asked: Scenario, *, quick: bool = False) -> None:
        self.data = DataFolder(folder / "data")
        runtime = Registry(self.data.path).find("onnxruntime").with_threads(1)
        source = source_of(saved(folder, open_batch()))
        order = ScenarioOrder(source=source, execution=Execution(runtime, Level.FUSED), scenario=asked)
        self.job = LOAD_TEST.create(self.data, (source.name,), order)
        folders = (str(self.job.path), str(self.data.path))
        self.process = subprocess.Popen(
            [sys.executable, "-c", QUICK, *folders] if quick else command_of(LOAD_TEST.function, *folders),
            cwd=ROOT,
            env={**os.environ, "DLBRICKS_HOST_LOCK": str(folder / "host.lock")},
        )

    def events(self) -> Iterator[Event]:
        return follow(LOAD_TEST.reader(self.job), lambda: self.process.poll() is None, lambda: time.sleep(0.05))


def test_a_real_model_is_measured_in_batches_on_two_instances(tmp_path: Path) -> None:
    asked = scenario(ScenarioKind.SERVER, rate=500.0, bound_ms=500.0, batch_sizes=(1, 2), instances=2)
    process = Process(tmp_path, asked, quick=True)
    *_, done, _ = process.events()
    assert process.process.wait() == 0
    assert isinstance(done, LoadDone)
    with ResultsDatabase(process.data.store) as store:
        (record,) = store.records(LoadTest)
    assert record.uuid == done.uuid
    assert (record.percentile, record.batch_size, record.instances, record.level) == (PERCENTILE, 2, 2, Level.FUSED)
    assert record.valid
    assert 0 < measured_load(record).p50_ms < 500
    assert verify(process.data.store).implausible == ()


# In this process, `test_measuring.py` cancels scenarios of the fake worker at every moment.
@pytest.mark.soak
def test_a_cancelled_process_ends_at_once_with_its_workers_and_says_so(tmp_path: Path) -> None:
    # Its queries take hours.
    process = Process(tmp_path, scenario(ScenarioKind.SERVER, rate=0.001))
    told = process.events()
    next(it for it in told if isinstance(it, LoadTestStarted))
    workers = workers_of(process.process.pid)
    assert workers
    process.process.send_signal(signal.SIGTERM)
    ended = list(told)[-1]
    assert isinstance(ended, JobEnded) and (ended.state, ended.message) == ("cancelled", "it was cancelled")
    assert process.process.wait() == 1
    assert all_are_gone(workers)


def test_a_killed_process_takes_its_workers_with_it(tmp_path: Path) -> None:
    process = Process(tmp_path, scenario(ScenarioKind.SERVER, rate=0.001))
    eventually(lambda: workers_of(process.process.pid))
    workers = workers_of(process.process.pid)
    process.process.kill()
    process.process.wait()
    eventually(lambda: all_are_gone(workers))
