import importlib.util
import sys
from collections.abc import Iterator

import pytest

from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.runtime import Runtime


@pytest.fixture(scope="session")
def our_runtime() -> Runtime:
    """Return the runtime of this interpreter, which has MXNet wherever MXNet can be installed."""
    if importlib.util.find_spec("mxnet") is None:
        pytest.skip("no MXNet for this interpreter")
    return Runtime("ours", sys.executable, "mxnet", "", "")


@pytest.fixture(scope="session")
def mxnet_worker(our_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Start one worker with the real MXNet for all tests, because importing it takes a second."""
    with Worker(our_runtime, tmp_path_factory.mktemp("log") / "worker.log") as worker:
        yield worker
