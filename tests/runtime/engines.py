"""One worker for each real framework, which all tests of a process share: fixtures of `tests/conftest.py`."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.contexts import TELLING
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import ONNX_RUNTIME
from tests.models.table_framework import TableFramework

ROOT = Path(__file__).parents[2]
# Importing MXNet takes seconds, so one process answers for several tests.
_ASKING = """
import tests.runtime.test_mxnet_measuring as asking
from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet
print(load_mxnet().runtime.Features().is_enabled("MKLDNN"))
print(asking.runs_again(load_mxnet()))
"""


class Telling(NamedTuple):
    """A worker with MXNet whose oneDNN tells in a log what it executes."""

    worker: Worker
    log: Path


def framework_of(runtime: Runtime, worker: Worker) -> WorkerFramework:
    """Return a framework that asks a worker that runs already."""
    framework = WorkerFramework(runtime, Path("/nowhere"))
    framework._worker = worker
    return framework


@pytest.fixture(scope="session")
def our_runtime() -> Runtime:
    """Return MXNet in this interpreter, on one thread; tests that use it have the marker `mxnet`."""
    return Runtime("ours", sys.executable, "mxnet", "", "", Settings(1))


@pytest.fixture(scope="session")
def said_of_mxnet(our_runtime: Runtime) -> list[str]:
    """Return whether it has oneDNN, and whether runs leave the inputs as they are."""
    asked = [our_runtime.python, "-c", _ASKING]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()[-2:]


@pytest.fixture(scope="session")
def with_onednn(said_of_mxnet: list[str]) -> None:
    """Skip tests of what oneDNN does where MXNet was built without it."""
    if said_of_mxnet[0] != "True":
        pytest.skip("this MXNet was built without oneDNN")


@pytest.fixture(scope="session")
def _telling(our_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Telling]:
    # Processors with larger instruction sets have other kernels. All processors that suit MXNet have these.
    settings = Settings(1, (*TELLING.environment, ("DNNL_MAX_CPU_ISA", "AVX2")))
    log = tmp_path_factory.mktemp("log") / "worker.log"
    with Worker(replace(our_runtime, settings=settings), log) as worker:
        yield Telling(worker, log)


@pytest.fixture(scope="session")
def mxnet_worker(_telling: Telling) -> Worker:
    """Start one worker with the real MXNet for all tests, because importing it takes a second."""
    return _telling.worker


@pytest.fixture(scope="session")
def telling(_telling: Telling, with_onednn: None) -> Telling:
    """Return it with the log in which its oneDNN tells what it executes."""
    return _telling


@pytest.fixture(scope="session")
def mxnet_worker_of_settings(our_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Start a worker that fuses nothing, runs two operators at once, and has a limit of memory."""
    settings = Settings(1, (("MXNET_SUBGRAPH_BACKEND", "NONE"),), memory_limit_bytes=2 << 30)
    runtime = replace(our_runtime, settings=settings).side_by_side(2)
    with Worker(runtime, tmp_path_factory.mktemp("log") / "worker.log") as worker:
        yield worker


@pytest.fixture(scope="session")
def ort_runtime() -> Runtime:
    """Return ONNX Runtime in this interpreter, on one thread."""
    return Runtime("ort", sys.executable, ONNX_RUNTIME.framework, "", "", Settings(1))


@pytest.fixture(scope="session")
def ort_worker(ort_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Start one worker with the real ONNX Runtime for all tests."""
    with Worker(ort_runtime, tmp_path_factory.mktemp("log") / "worker.log") as worker:
        yield worker


@pytest.fixture(scope="session")
def ort_loader(ort_runtime: Runtime, ort_worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Loader:
    """Return a loader that asks the real ONNX Runtime."""
    return Loader(tmp_path_factory.mktemp("cache"), TableFramework(), framework_of(ort_runtime, ort_worker))


@pytest.fixture(scope="session")
def openvino_runtime() -> Runtime:
    """Return OpenVINO in this interpreter, on one thread; tests that use it have the marker `openvino`."""
    return Runtime("openvino", sys.executable, "openvino", "", "", Settings(1))


@pytest.fixture(scope="session")
def openvino_worker(openvino_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Start one worker with the real OpenVINO for all tests."""
    with Worker(openvino_runtime, tmp_path_factory.mktemp("log") / "worker.log") as worker:
        yield worker


@pytest.fixture(scope="session")
def openvino_loader(
    openvino_runtime: Runtime, openvino_worker: Worker, tmp_path_factory: pytest.TempPathFactory
) -> Loader:
    """Return a loader that asks the real OpenVINO."""
    return Loader(tmp_path_factory.mktemp("cache"), TableFramework(), framework_of(openvino_runtime, openvino_worker))
