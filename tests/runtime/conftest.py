import subprocess
import sys
from collections.abc import Iterator

import pytest

from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.runtime import Runtime

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
