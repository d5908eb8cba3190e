"""The command line of this checkout."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def command(data: Path, *words: str) -> list[str]:
    """The command that a person types."""
    return [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(data), *words]


def dlbricks(data: Path, *words: str, settings: Mapping[str, str] | None = None) -> int:
    """Run a command, whose output is shown; return its exit status."""
    environment = {**os.environ, **(settings or {})}
    return subprocess.run(command(data, *words), cwd=ROOT, check=False, env=environment).returncode


def told(data: Path, *words: str, settings: Mapping[str, str] | None = None) -> Any:
    """Return what a command says in JSON; where it says nothing, show the reason and return None."""
    environment = {**os.environ, **(settings or {})}
    asked = command(data, *words, "--json")
    done = subprocess.run(asked, cwd=ROOT, text=True, capture_output=True, check=False, env=environment)
    if done.stdout:
        return json.loads(done.stdout)
    sys.stderr.write(done.stderr)
    return None
