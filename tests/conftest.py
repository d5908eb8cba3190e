"""Settings and fixtures of all tests."""

import shlex
import signal
import sys
import sysconfig
import venv
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE
from dlbricks_tui.measure import supervised_worker
from dlbricks_tui.runtime.registry import Registry
from tests.soak import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]
pytest_plugins = ["tests.runtime.engines"]

# A test proves what is true, not how quick: on a busy machine a slow example is still right.
# The examples are the same in each run: a test that failed by chance would say nothing about a change.
settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=25, derandomize=True
)
# `make soak` tries many more examples of each property, other ones each time, and the larger models.
settings.register_profile("thorough", settings.get_profile("untimed"), max_examples=1000, derandomize=False)
settings.load_profile("untimed")
# Background jobs ignore ctrl+c, and jobs of `nohup` the end of the terminal. Tests send both to their processes.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that run a framework where it is not installed, as MXNet on Python 3.13."""
    titles = {"mxnet": "MXNet", "openvino": "OpenVINO", "onnxruntime_genai": "onnxruntime-genai"}
    for package, title in titles.items():
        if item.get_closest_marker(package) is not None and find_spec(package) is None:
            pytest.skip(f"{title} is not installed here")


@pytest.fixture(scope="session")
def ort() -> Any:
    """Return ONNX Runtime in this process, whose thread pool can be set only once."""
    from dlbricks_tui.runtime.inside.ort_session import load_onnxruntime

    return load_onnxruntime()


@pytest.fixture(autouse=True, scope="session")
def _mxnet_is_listed() -> Iterator[None]:
    """List MXNet 1.9.1 as installed on every Python, and read the versions of packages once.

    Tests of stored results, and those with a fake worker, need its name and version only.
    """
    installed = cache(metadata.version)
    is_missing = find_spec("mxnet") is None
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(
            metadata, "version", lambda name: "1.9.1" if is_missing and name == "mxnet" else installed(name)
        )
        yield


@pytest.fixture(autouse=True)
def _no_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no run notice other programs: the load of this machine decides no test."""
    monkeypatch.setattr(supervised_worker, "contention", lambda _: None)


@pytest.fixture
def without_mxnet(_mxnet_is_listed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """List MXNet as not installed, as on Python 3.13."""
    version = metadata.version

    def version_of(name: str) -> str:
        if name.startswith("mxnet"):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", version_of)


@pytest.fixture(scope="session")
def python_without_mxnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with all packages of this one except MXNet, as on Python 3.13."""
    folder = tmp_path_factory.mktemp("without-mxnet")
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith("mxnet"):
            (packages / package.name).symlink_to(package)
    command, python = folder / "bin" / "dlbricks", folder / "bin" / "python"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(str(python))} -m dlbricks_tui "$@"\n')
    command.chmod(0o755)
    return python


@pytest.fixture(scope="session")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def shared_cache(tmp_path: Path, _cache: Path) -> None:
    """Give the folder `data` of a test the models that others have read and cut; tests of caches have their own."""
    folder = tmp_path / "data"
    folder.mkdir(exist_ok=True)
    (folder / "cache").symlink_to(_cache)


@pytest.fixture(scope="session")
def fake_interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that always starts the fake worker."""
    interpreter = tmp_path_factory.mktemp("fake") / "python"
    worker = Path(__file__).parent / "runs" / "fake_worker.py"
    interpreter.write_text(f'#!/bin/sh\nshift\nexec {shlex.quote(sys.executable)} {shlex.quote(str(worker))} "$@"\n')
    interpreter.chmod(0o755)
    return interpreter


@pytest.fixture(scope="session")
def registered_fake(fake_interpreter: Path) -> bytes:
    """A file `runtimes.json` with a runtime called `fake`, by that interpreter."""
    folder = fake_interpreter.parent
    Registry(folder).add(str(fake_interpreter), "fake")
    return (folder / "runtimes.json").read_bytes()


@pytest.fixture
def data_with_fake(tmp_path: Path, registered_fake: bytes) -> Path:
    """A data folder with that runtime: no worker is started to describe itself for each test."""
    folder = tmp_path / "data"
    folder.mkdir(exist_ok=True)
    (folder / "runtimes.json").write_bytes(registered_fake)
    return folder


@pytest.fixture
def rough_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate fewer tests of a scenario: those of `tests/scenarios` simulate all, and say what is predicted."""
    monkeypatch.setattr("dlbricks_tui.scenarios.predicting._TESTS", 40)
    monkeypatch.setattr("dlbricks_tui.scenarios.predicting._TESTS_IN_BATCHES", 20)


@pytest.fixture(autouse=True)
def _data_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No test reads or writes what the person who runs the tests has measured.
    monkeypatch.setenv("DLBRICKS_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture(autouse=True)
def _host_lock_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No test waits for a measurement on this host, or keeps one waiting.
    monkeypatch.setenv(HOST_LOCK_VARIABLE, str(tmp_path / "host.lock"))


@pytest.fixture(autouse=True)
def _as_wide_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    # Tables fit the terminal of whoever runs the tests, if that one has told its width.
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def _on_a_quiet_host(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first guess of how long a run takes follows the load of the host.
    monkeypatch.setattr("dlbricks_tui.runs.run.competing_threads", lambda: 0.0)
    # Rounds are not disturbed by other programs on the machine that runs the tests.
    monkeypatch.setattr("dlbricks_tui.measure.supervised_worker.SupervisedWorker.contention", lambda _: None)
    monkeypatch.setattr("dlbricks_tui.api.new_runs.competing_threads", lambda: 0.0)
