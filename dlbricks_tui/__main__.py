"""The entry point of `dlbricks` and `python -m dlbricks_tui`: run a command, or open the workbench."""

from __future__ import annotations

import os
import signal
import sys

_INTERRUPTED = 130


def _leave(*_: object) -> None:
    """End the program at once, with a line in place of a traceback; no command has begun, or it has ended."""
    try:  # noqa: SIM105 - contextlib takes time to load
        os.write(2, b"dlbricks: interrupted\n")
    except OSError:
        pass
    os._exit(_INTERRUPTED)


# As early as possible: imports take most of the time of a short command. Tests that import this module keep theirs.
if __name__ == "__main__" or os.path.basename(sys.argv[0]) == "dlbricks":  # noqa: PTH119 - pathlib takes time to load
    signal.signal(signal.SIGINT, _leave)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from dlbricks_tui.api.demonstration import Demonstration
    from dlbricks_tui.config.config import Config, Sources
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.models.library import ModelSource


def main() -> int:
    """Run the command line and return the exit status."""
    from dlbricks_tui.cli.main import interrupts_raise, was_interrupted
    from dlbricks_tui.cli.main import main as command_line

    in_terminal = _in_a_terminal()
    try:
        with interrupts_raise(_leave):
            status = command_line(
                sys.argv[1:],
                without_command=_workbench if in_terminal else None,
                workbench_faults=_workbench_faults,
                demonstrate=_open_demonstration if in_terminal else None,
            )
            if was_interrupted():
                # Python may have noted that an import was interrupted, and would end by SIGINT.
                os._exit(status)
            return status
    except KeyboardInterrupt:
        # It came before the command line, or just behind it.
        _leave()
        return _INTERRUPTED


def _workbench(data: DataFolder, sources: Sources, model: ModelSource | Path | None) -> int:
    from dlbricks_tui.tui.door import open_workbench

    _let_asyncio_take_interrupts()
    return open_workbench(data, sources, model)


def _open_demonstration(demonstration: Demonstration, sources: Sources, speed: float) -> int:
    from dlbricks_tui.tui.door import open_demonstration

    _let_asyncio_take_interrupts()
    return open_demonstration(demonstration, sources, speed)


def _let_asyncio_take_interrupts() -> None:
    # asyncio replaces only Python's own handler. It then cancels its tasks, which restores the terminal.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _workbench_faults(config: Config, data: DataFolder) -> list[str]:
    """Return the errors in the user's themes and in key bindings; the command line knows neither."""
    from dlbricks_tui.tui.preferences import faults

    return faults(config, data.themes)


def _in_a_terminal() -> bool:
    # The workbench reads from standard input and draws on standard error.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams) and os.environ.get("TERM") != "dumb"


if __name__ == "__main__":
    sys.exit(main())
