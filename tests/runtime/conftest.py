import subprocess
import sys
from collections.abc import Iterator

import pytest

from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.runtime import Runtime, Settings
from tests.models.table_framework import TableFramework

_ASKING = """
from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet
print(load_mxnet().runtime.Features().is_enabled("MKLDNN"))
"""


@pytest.fixture(scope="session")
def our_runtime() -> Runtime:
    """Return MXNet in this interpreter; tests that use it have the marker `mxnet`."""
    return Runtime("ours", sys.executable, "mxnet", "", "")


@pytest.fixture(scope="session")
def with_onednn(our_runtime: Runtime) -> None:
    """Skip tests of what oneDNN does where MXNet was built without it."""
    asked = [our_runtime.python, "-c", _ASKING]
    if subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[-1] != "True":
        pytest.skip("this MXNet was built without oneDNN")


@pytest.fixture(scope="session")
def mxnet_worker(our_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Start one worker with the real MXNet for all tests, because importing it takes a second."""
    with Worker(our_runtime, tmp_path_factory.mktemp("log") / "worker.log") as worker:
        yield worker


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
def openvino_loader(openvino_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loader]:
    """Return a loader that asks the real OpenVINO."""
    folder = tmp_path_factory.mktemp("loading")
    with WorkerFramework(openvino_runtime, folder / "log") as framework:
        yield Loader(folder / "cache", TableFramework(), framework)
