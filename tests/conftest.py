"""What holds for every test."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A test proves what is true, not how quick: on a busy machine a slow example is still right.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that run MXNet where it is not installed, as on Python 3.13."""
    if item.get_closest_marker("mxnet") is not None and find_spec("mxnet") is None:
        pytest.skip("MXNet is not installed here")


@pytest.fixture(autouse=True)
def _data_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No test reads or writes what the person who runs the tests has measured.
    monkeypatch.setenv("DLBRICKS_DATA_DIR", str(tmp_path / "data"))


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
    monkeypatch.setattr("dlbricks_tui.tui.run.runs.competing_threads", lambda: 0.0)
