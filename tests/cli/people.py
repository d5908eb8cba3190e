"""People who exchange files: each has a data folder, and says commands."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main


@dataclass(frozen=True)
class People:
    """Several people and what they have in common."""

    path: Path
    capsys: pytest.CaptureFixture[str]

    def say(self, who: str, *arguments: str) -> tuple[int, str, str]:
        """Run a command and return its status, standard output and standard error."""
        status = main(["--data-dir", str(self.path / who), *arguments])
        out, told = self.capsys.readouterr()
        return status, out, told
