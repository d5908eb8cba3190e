"""Keep the traceback of a bug in dlbricks for a bug report."""

import os
import platform
import tempfile
import traceback
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from dlbricks_tui import __version__
from dlbricks_tui.regular_files import open_log

LOG_FILE = "errors.log"


def keep_traceback(error: BaseException, log: Path) -> Path | None:
    """Append a traceback to the log and return the file, None if no file can be written."""
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    head = f"{when} dlbricks {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    report = (head + "".join(traceback.format_exception(error)) + "\n").encode("utf-8", "backslashreplace")
    with suppress(OSError):
        log.mkdir(parents=True, exist_ok=True)
        with open_log(log / LOG_FILE) as file:
            file.write(report)
        return log / LOG_FILE
    # The data folder itself may be broken.
    with suppress(OSError):
        handle, name = tempfile.mkstemp(prefix="dlbricks-", suffix=".log")
        with os.fdopen(handle, "wb") as file:
            file.write(report)
        return Path(name)
    return None
