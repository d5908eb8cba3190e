"""Keep dask's worker quiet while its host measures: it wakes for its heartbeats and for messages only."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dlbricks_tui.fleet.engine.dask_settings import HEARTBEAT_SECONDS

_MILLISECONDS = 1000.0
# The scheduler sets the interval of this one with each answer.
_HEARTBEAT = "heartbeat"
# Once a minute, and the scheduler expects it.
_KEPT = frozenset({"keep-alive"})
_SECONDS_TO_BEGIN = 5.0
# States of a worker that its scheduler knows.
_ALIVE = frozenset({"running", "paused"})


@contextmanager
def quiet(worker: Any) -> Iterator[None]:
    """Stop everything that a worker does by the clock, other than rare heartbeats, until the block ends."""
    rest = _Rest(worker)
    begun = threading.Event()

    def begin() -> None:
        rest.begin()
        begun.set()

    worker.loop.add_callback(begin)
    begun.wait(_SECONDS_TO_BEGIN)
    try:
        yield
    finally:
        worker.loop.add_callback(rest.end)


def rare_heartbeats(worker: Any) -> None:
    """Replace the heartbeats of a worker for its life; call it in the worker's event loop."""
    worker.periodic_callbacks[_HEARTBEAT].stop()
    _heartbeats(worker).start()


def slow_down(server: Any) -> None:
    """Let a process of dask look at itself rarely for its life; call it in its event loop."""
    for name, callback in server.periodic_callbacks.items():
        if name in ("tick", "ticks"):
            # Slower ones would each log that the process is busy.
            callback.stop()
        else:
            callback.callback_time = max(callback.callback_time, HEARTBEAT_SECONDS * _MILLISECONDS)


class _Rest:
    """The callbacks of a worker that are stopped, and the heartbeats in their place."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self._stopped: list[Any] = []
        self._heartbeats: Any = None

    def begin(self) -> None:
        for name, callback in self._worker.periodic_callbacks.items():
            if name in _KEPT or not callback.is_running():
                continue
            callback.stop()
            self._stopped.append(callback)
            if name == _HEARTBEAT:
                self._heartbeats = _heartbeats(self._worker)
                self._heartbeats.start()

    def end(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.stop()
        # A worker that is being closed has stopped its own.
        if self._worker.status.name in _ALIVE:
            for callback in self._stopped:
                callback.start()


def _heartbeats(worker: Any) -> Any:
    from tornado.ioloop import PeriodicCallback

    async def beat() -> None:
        if worker.status.name in _ALIVE:
            await worker.heartbeat()
        else:
            # A worker stops its own callbacks only.
            callback.stop()

    callback = PeriodicCallback(beat, HEARTBEAT_SECONDS * _MILLISECONDS)
    return callback
