"""Errors that the user can correct, and the log of those that are faults of dlbricks."""

from pathlib import Path


class UserError(Exception):
    """An error that the user can correct; the message says what is wrong, where, and what to do."""

    @property
    def in_command(self) -> str:
        """The message with what to do about it on the command line."""
        return str(self)


def exit_in_words(status: int) -> str:
    """Return how a process ended: `ended with status 3`, `was killed by SIGTERM`."""
    if status >= 0:
        return f"ended with status {status}"
    # Loaded here: most processes end well.
    import signal
    from contextlib import suppress

    killer = f"signal {-status}"
    with suppress(ValueError):
        killer = signal.Signals(-status).name
    return f"was killed by {killer}" + ", often for lack of memory" * (status == -signal.SIGKILL)


def keep_traceback(error: BaseException, log: Path) -> Path | None:
    """Append a traceback to the log for a bug report, and return the file; None if no file can be written."""
    # Loaded here: faults are rare.
    import os
    import platform
    import tempfile
    import traceback
    from contextlib import suppress
    from datetime import datetime

    from dlbricks_tui import __version__
    from dlbricks_tui.files import open_log

    when = datetime.now().astimezone().isoformat(timespec="seconds")
    head = f"{when} dlbricks {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    report = (head + "".join(traceback.format_exception(error)) + "\n").encode("utf-8", "backslashreplace")
    with suppress(OSError):
        log.mkdir(parents=True, exist_ok=True)
        file = log / "errors.log"
        with open_log(file) as end:
            end.write(report)
        return file
    # The data folder itself may be broken.
    with suppress(OSError):
        handle, name = tempfile.mkstemp(prefix="dlbricks-", suffix=".log")
        with os.fdopen(handle, "wb") as end:
            end.write(report)
        return Path(name)
    return None
