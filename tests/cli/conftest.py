"""What tests of commands have in common."""

from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from tests.cli.people import Command, hurry


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def dlbricks(data_folder: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `dlbricks ...` in the data folder; return its exit status, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["--data-dir", data_folder, *map(str, arguments)])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def data_folder(tmp_path: Path) -> str:
    return f"{tmp_path}/data"
