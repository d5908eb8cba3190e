"""Functions that dask calls on a host: each returns text, so that no object of ours is pickled on the way home.

The text is `answer` or `error`, a space, and the answer as JSON or the reason in one line.
"""

import os
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.errors import HostError
from dlbricks_tui.folders import data_folder

# Letters of a reason.
_LONGEST_REASON = 500
_ANSWER, _ERROR = "answer", "error"
# Between two heartbeats of a worker; dask's own answer would be half a second.
HEARTBEAT_SECONDS = 10.0
_MILLISECONDS = 1000.0


def call(function: str, *arguments: Any) -> str:
    """Call a function of this host: `report`, `missing`, `take`, or `control` beside the thread of a task."""
    return _answer(lambda: getattr(_at_host(), function)(_data(), *arguments))


def carry_out(task: str, topic: str, token: str) -> str:
    """Carry out a task, and log what is measured under a topic, with the token that only this task knows."""
    from distributed import get_worker

    worker = get_worker()
    return _answer(lambda: _at_host().carry_out(_data(), task, lambda text: worker.log_event(topic, [token, text])))


def calm(dask_worker: Any) -> None:
    """Let a worker, or the process that watches it, wake rarely for its life; dask calls this in its event loop.

    Nearly everything that it does by the clock would disturb what its host measures.
    """
    for name, callback in dask_worker.periodic_callbacks.items():
        if name in ("tick", "ticks"):
            # Slower ones would each log that the process is busy.
            callback.stop()
        elif name != "heartbeat":
            callback.callback_time = max(callback.callback_time, HEARTBEAT_SECONDS * _MILLISECONDS)
        elif callback.is_running():
            # The scheduler sets the interval of this one with each answer.
            callback.stop()
            _heartbeats(dask_worker).start()


def _heartbeats(worker: Any) -> Any:
    from tornado.ioloop import PeriodicCallback

    async def beat() -> None:
        if worker.status.name in ("running", "paused"):
            await worker.heartbeat()
        else:
            # A worker stops its own callbacks only.
            callback.stop()

    callback = PeriodicCallback(beat, HEARTBEAT_SECONDS * _MILLISECONDS)
    return callback


def answer_in(text: object, longest: int) -> str:
    """Return the answer in a text of this module; raise HostError with the reason if there is none."""
    if not isinstance(text, str) or len(text) > longest:
        raise HostError("the host answered with something else than text")
    kind, _, rest = text.partition(" ")
    if kind == _ERROR:
        raise HostError(rest[:_LONGEST_REASON] or "no reason given")
    if kind != _ANSWER:
        raise HostError("the host answered with something else than an answer")
    return rest


def _at_host() -> ModuleType:
    """Load the host's side, which driver and scheduler do without: they load this module to name its functions."""
    return import_module("dlbricks_tui.fleet.at_host")


def _data() -> str:
    return str(data_folder().path)


def _answer(question: Callable[[], str]) -> str:
    _drop_presets()
    try:
        return f"{_ANSWER} {question()}"
    except UserError as error:
        reason = str(error)
    # A fault must not travel as an object.
    except Exception as error:  # noqa: BLE001
        reason = f"{type(error).__name__}: {error}"
    return f"{_ERROR} {' '.join(reason.split())[:_LONGEST_REASON]}"


def _drop_presets() -> None:
    """Remove the variables that dask sets for its workers, such as OMP_NUM_THREADS=1: a run here inherits them."""
    import dask.config

    for key in ("pre-spawn-environ", "environ"):
        for name, value in (dask.config.get(f"distributed.nanny.{key}", None) or {}).items():
            if os.environ.get(name) == str(value):
                del os.environ[name]
