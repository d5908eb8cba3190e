"""A data folder without results, and runs that are carried out once for all tests that look at them."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.measure import inside
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runtime.traits import Format
from tests.runs.forking import fake_workers_are_forks
from tests.runs.runs import Measured, Site

__all__ = ["fake_workers_are_forks"]

Make = Callable[..., Measured]


_read = Library.samples


@cache
def _samples(folder: Path, preferred: Format) -> tuple[ModelSource, ...]:
    return _read(Library(folder, folder, preferred))


@pytest.fixture(autouse=True)
def _samples_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Library, "samples", lambda library: _samples(library._samples, library._preferred))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "data")


@pytest.fixture
def quick_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the method `inside` time models and carriers for moments only, and wait for no quiet host."""
    for name in ("PLAIN", "BEFORE_ROUNDS"):
        monkeypatch.setattr(inside, name, getattr(inside, name)._replace(seconds=0.05))
    monkeypatch.setattr(inside, "most_seconds_per_carrier", lambda _: 0.5)
    monkeypatch.setattr(inside, "PATIENCE_SECONDS", 0.0)


@pytest.fixture
def without_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no further worker that tells the version of its oneDNN: `test_provenance.py` is about that."""
    monkeypatch.setattr("dlbricks_tui.runs.run._find_versions", lambda *_: None)


@pytest.fixture(scope="session")
def _runs() -> dict[str, Measured]:
    return {}


@pytest.fixture
def _carried_out(_runs: dict[str, Measured], tmp_path_factory: pytest.TempPathFactory) -> Make:
    def carried_out(name: str, *models: str, **changes: Any) -> Measured:
        if name not in _runs:
            site = Site(tmp_path_factory.mktemp(name) / "data")
            request = site.request(*models, end_to_end=True, **changes)
            folder = create_run(request, site.data)
            outcome = execute(folder, request, site.place, site.queue)
            _runs[name] = Measured(site, outcome, site.events(folder))
        return _runs[name]

    return carried_out


@pytest.fixture
def measured(_carried_out: Make) -> Measured:
    """A finished run of the usual model and its bricks, each timed alone. Tests copy its site before they change it."""
    return _carried_out("alone")


@pytest.fixture
def measured_inside(_carried_out: Make) -> Measured:
    """A finished run of the usual model and its bricks, timed inside of it."""
    return _carried_out("inside", method=Method.INSIDE, evaluation="nightly", unmet=("turbo is on",))


@pytest.fixture
def measured_repeats(_carried_out: Make) -> Measured:
    """A finished run of a model with repeated modules, so long that its carrier is not the whole model."""
    return _carried_out("repeats", "resnet18_v1", method=Method.INSIDE)


@pytest.fixture
def known(measured: Measured, tmp_path: Path) -> Site:
    """A copy of the site with the results of the run by method `alone`."""
    return measured.copied(tmp_path / "data")
