"""Opens the terminal UI, adapts it to the connection, and restores the terminal at the end."""

from __future__ import annotations

import gc
import io
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.config.config import Config, Sources
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.printable import printable
from dlbricks_tui.settings.workbench import Switch
from dlbricks_tui.wording.commands import completed

if TYPE_CHECKING:
    from dlbricks_tui.api.demonstration import Demonstration
    from dlbricks_tui.api.run_watch import Replayed
    from dlbricks_tui.models.library import ModelSource

_SIGNS_OF_SSH = ("SSH_TTY", "SSH_CONNECTION")
# The kernel does not always report that the terminal has gone away.
_TERMINAL_LOOKED_AT_SECONDS = 2.0
_LEAVING_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Connection:
    """The output that the connection can carry."""

    mouse: bool = True
    # Only changed cells are written, at the cost of some time per repaint.
    is_slow: bool = False
    repaints_per_second: int = 60
    # The factor by which runs are polled more rarely than usual.
    poll_factor: float = 1.0


def connection(config: Config, environment: Mapping[str, str]) -> Connection:
    """Return the connection that the settings state, or that the environment suggests."""
    automatic = config.remote is Switch.AUTO and any(environment.get(name) for name in _SIGNS_OF_SSH)
    remote = config.remote is Switch.ON or automatic
    mouse = config.mouse is Switch.ON or (config.mouse is Switch.AUTO and not remote)
    return Connection(mouse, True, 15, 4.0) if remote else Connection(mouse)


def has_shell() -> bool:
    """Return whether a shell can resume this process; a session leader was not started by a shell."""
    return os.getsid(0) != os.getpgrp()


def stop_job() -> None:
    """Stop this process and the other processes of its job; return when the shell resumes them.

    The kernel's default actions stop and resume all of them at once. A handler that stops this process would do so
    last, and a shell that resumes the job immediately would miss it. A handler that resumes it could run late, and
    start a second reader of the keyboard.
    """
    handlers = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTSTP, signal.SIGCONT)}
    try:
        os.killpg(0, signal.SIGTSTP)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def is_hung_up(file: int) -> bool:
    """Return whether the terminal has gone away.

    The kernel signals only the session leader. If that is make, it waits for this process and does not pass the signal
    on.
    """
    poll = select.poll()
    poll.register(file, 0)
    return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))


def leave_without_terminal(leave: Callable[[], object]) -> None:
    """Wait until the terminal has gone away, ask to `leave`, and end the process soon after.

    For a thread of its own: the program itself may wait for ever for a thread that writes to that terminal.
    """
    while not is_hung_up(sys.__stdin__.fileno() if sys.__stdin__ else 0):
        time.sleep(_TERMINAL_LOOKED_AT_SECONDS)
    with suppress(RuntimeError):
        # Its event loop may have ended already.
        leave()
    time.sleep(_LEAVING_SECONDS)
    os._exit(128 + signal.SIGHUP)


# The usual thresholds of quick collections, and one for full ones that is never reached: Python starts none by itself.
_QUICK_ONES, _NEVER = (700, 10), 1 << 30
# The number of middle-generation collections after which a full collection is due.
_WORTH_IT = 10
_IDLE_SECONDS = 2.0


class IdleCollections:
    """Runs full garbage collections between key presses, since each blocks the keyboard for a tenth of a second."""

    def __init__(self) -> None:
        self._last_key = 0.0
        gc.set_threshold(*_QUICK_ONES, _NEVER)

    def key_pressed(self) -> None:
        """Put the next collection off."""
        self._last_key = time.monotonic()

    def collect_if_idle(self) -> None:
        """Collect all objects if that is due, and no key was pressed lately."""
        if gc.get_count()[2] >= _WORTH_IT and time.monotonic() - self._last_key >= _IDLE_SECONDS:
            gc.collect()


def redirect_hung_up_streams() -> None:
    """Redirect standard streams whose terminal has gone away.

    The interpreter flushes them at exit and would change the exit status if that fails.
    """
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None and not stream.closed and is_hung_up(stream.fileno()):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def open_demonstration(demonstration: Demonstration, sources: Sources, speed: float) -> int:
    """Run the application on recorded results until the user leaves, and return the exit status."""
    from dlbricks_tui.api.run_watch import Replayed

    replayed = Replayed(demonstration.replayed, speed)
    return open_workbench(demonstration.data, sources, samples=demonstration.samples, replayed=replayed)


def open_workbench(
    data: DataFolder,
    sources: Sources,
    model: ModelSource | Path | None = None,
    *,
    samples: Path = SAMPLE_MODELS,
    replayed: Replayed | None = None,
) -> int:
    """Run the application on the user's data until the user leaves, and return the exit status.

    `model` is a model to open first, the path of one, or of a folder to add; `replayed` is a run to replay.
    """
    behaving = connection(sources.read(), sources.environment)
    # Textual reads this variable when it is imported.
    os.environ.setdefault("TEXTUAL_FPS", f"{behaving.repaints_per_second}")
    # Textual draws there. In other encodings each line and bar would be an escape of six characters.
    if isinstance(sys.__stderr__, io.TextIOWrapper):
        sys.__stderr__.reconfigure(encoding="utf-8")

    from dlbricks_tui.api.session import WorkbenchSession
    from dlbricks_tui.tui.app import DlbricksApp

    session = WorkbenchSession(data, samples)
    app = DlbricksApp(session, sources=sources, connection=behaving, replayed=replayed, model=model)
    app.run(mouse=behaving.mouse)
    redirect_hung_up_streams()
    if app.fault is not None:
        raise app.fault
    if replayed is None:
        from dlbricks_tui.api.jobs import going_on

        with suppress(OSError):
            sys.stderr.writelines(f"{printable(completed(each))}\n" for each in going_on(data))
    return app.return_code or 0
