"""Fixtures for tests of commands."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE
from dlbricks_tui.store.records import Record
from tests.cli.people import Command, hurry
from tests.estimate.stored import store_of


@pytest.fixture(autouse=True)
def _in_a_hurry(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    # Those that take their time measure as users do.
    if request.node.get_closest_marker("soak") is None:
        hurry(monkeypatch)


@pytest.fixture
def dlbricks(data_folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `dlbricks ...` in the data folder, or another one; return its status, standard output and standard error."""
    # Commands in the output repeat an option.

    def run(*arguments: object, folder: str | Path = data_folder) -> tuple[int, str, str]:
        capsys.readouterr()
        monkeypatch.setenv(DATA_FOLDER_VARIABLE, str(folder))
        status = main([*map(str, arguments)])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def data_folder(tmp_path: Path) -> str:
    return f"{tmp_path}/data"


@pytest.fixture
def with_records(dlbricks: Command, data_folder: str) -> Command:
    """Store these records, and run `dlbricks ...`."""

    def run(records: Sequence[Record], *arguments: object) -> tuple[int, str, str]:
        store_of(Path(data_folder) / "store", *records).close()
        return dlbricks(*arguments)

    return run
