"""The entry point of `dlbricks` and `python -m dlbricks_tui`: run a command, or open the workbench."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from dlbricks_tui.answers.demonstration import Demonstration
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.config.reading import Sources
    from dlbricks_tui.folders import DataFolder


def main() -> int:
    """Run the command line and return the exit status."""
    from dlbricks_tui.cli.main import main as command_line

    if not _in_a_terminal():
        return command_line(sys.argv[1:], wrong_keys=_wrong_keys)
    return command_line(
        sys.argv[1:], without_command=_workbench, wrong_keys=_wrong_keys, demonstrate=_open_demonstration
    )


def _workbench(data: DataFolder, sources: Sources, model: Path | None) -> int:
    from dlbricks_tui.tui.door import open_workbench

    return open_workbench(data, sources, model)


def _open_demonstration(demonstration: Demonstration, sources: Sources, speed: float) -> int:
    from dlbricks_tui.tui.door import open_demonstration

    return open_demonstration(demonstration, sources, speed)


def _wrong_keys(config: Config) -> str:
    """Return the error in the key bindings; the command line does not know the workbench's actions."""
    from dlbricks_tui.tui.keys.keymap import wrong_keys

    return wrong_keys(config.keys)


def _in_a_terminal() -> bool:
    # The workbench reads from standard input and draws on standard error.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams) and os.environ.get("TERM") != "dumb"


if __name__ == "__main__":
    sys.exit(main())
