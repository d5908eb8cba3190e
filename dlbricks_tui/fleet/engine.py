"""The engine of a fleet: dask.distributed, reduced to calls of hosts by name and events on a queue.

Each host runs one call at a time. A task is never repeated or given to another host: the driver decides what happens
after a loss. Calls return at once, so a host that is slow or gone delays no other one. Hosts answer by events of dask.

Dask's scheduler, clients and workers unpickle what their peers send. docs/how-it-works/fleet.md says what this means
for the trust in hosts.
"""

import asyncio
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.messages import MOST_MESSAGE_BYTES, Parcel, Task, text_of
from dlbricks_tui.fleet.request import FleetError, HostEntry, HostError
from dlbricks_tui.fleet.scheduler import SECONDS_TO_CONNECT, check_scheduler, reason_of
from dlbricks_tui.folders import data_folder
from dlbricks_tui.printable import printable

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

    from dlbricks_tui.fleet.cluster import FleetCluster

# Dask tells when hosts come and go. It is asked as well, should that message be lost.
_SECONDS_BETWEEN_LOOKS = 15.0
_SECONDS_TO_CLOSE = 3.0
# For so long a scheduler that is gone is looked for, ever more rarely.
_SECONDS_TO_RETURN, _FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 600.0, 1.0, 30.0
_LONGEST_NAME = 100
# More than these wait until the driver has looked after everything else.
_MOST_AT_ONCE = 5_000
# Letters of the reason in an error of a host.
_LONGEST_REASON = 500
# Between two heartbeats of a worker; dask's own answer would be half a second.
HEARTBEAT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class HostJoined:
    """A host is there."""

    host: str


@dataclass(frozen=True, slots=True)
class HostLeft:
    """A host went away, and its calls get no answer; one that is not gone has lost a call."""

    host: str
    is_gone: bool = True


@dataclass(frozen=True, slots=True)
class HostUnreachable:
    """A host cannot be reached or used, for this reason. It is tried again later, unless that is final."""

    host: str
    reason: str
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class HostSaid:
    """A message of a host during a task."""

    host: str
    task: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class HostAnswered:
    """The end of a task of a host as JSON, or without a task its report, or the reason why there is none."""

    host: str
    task: str
    text: str = field(repr=False)
    error: str = ""


News: TypeAlias = HostJoined | HostLeft | HostUnreachable | HostSaid | HostAnswered


@dataclass(slots=True, eq=False)
class _Call:
    """A call to a host that has not ended yet."""

    host: str
    task: str
    future: Any = None
    is_answered: bool = False


class Engine:
    """The hosts of one dask scheduler, once dask is set up. A `cluster` reaches them, and tells faults on `events`.

    News of a host come in the order in which they happened.
    """

    def __init__(
        self,
        address: str,
        security: "Security | None",
        cluster: "FleetCluster | None" = None,
        events: "SimpleQueue[News] | None" = None,
    ) -> None:
        self.events: SimpleQueue[News] = events or SimpleQueue()
        self._address = address
        self._security = security
        self._cluster = cluster
        self._topic = f"dlbricks-{secrets.token_hex(16)}"
        self._client: Client | None = None
        # The connection of the client: dask makes another one, which has no subscriptions.
        self._connection: Any = None
        # The address of each host's worker.
        self._workers: dict[str, str] = {}
        # By a token that is known to one host alone, so no other one can send messages in its name.
        self._calls: dict[str, _Call] = {}
        # Set by threads of dask when hosts may have come or gone.
        self._changed = threading.Event()
        self._next_look = self._give_up = 0.0
        self._wait_seconds = _FIRST_WAIT_SECONDS

    def start(self) -> None:
        """Connect to the scheduler, and begin to watch for hosts; raise FleetError if it cannot be used."""
        from distributed import Client

        # In a thread: the caller may have an event loop, as in a notebook.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, check_scheduler(self._address, self._security)).result()
        hear: dict[str, Callable[[Any], object]] = {self._topic: self._hear, "all": lambda _: self._changed.set()}
        # These would print what hosts send, and load pickled warnings.
        hear |= {"print": lambda _: None, "warn": lambda _: None}
        try:
            client = Client(self._address, security=self._security, set_as_default=False, timeout=SECONDS_TO_CONNECT)
            for topic, handler in hear.items():
                client.subscribe_topic(topic, handler)
        # Of many kinds: no scheduler, one of another version of dask, one that closes the connection.
        except Exception as error:
            raise FleetError(f"no dask scheduler can be used at {self._address}: {reason_of(error)}") from error
        self._client, self._connection = client, client.scheduler_comm
        self._wait_seconds = _FIRST_WAIT_SECONDS
        self._changed.set()

    def close(self) -> None:
        """Give up all calls, and disconnect; this takes a few seconds at most."""
        try:
            self._disconnect()
        finally:
            if self._cluster is not None:
                self._cluster.close()

    def add(self, entry: HostEntry) -> None:
        """Reach one more host over SSH."""
        if self._cluster is not None:
            self._cluster.add_hosts([entry])

    def report(self, host: str, task: str = "") -> None:
        """Ask a host for its report, and what has become of an earlier task."""
        self._call(host, "", "report", task)

    def carry_out(self, host: str, task: Task, parcels: Sequence[Parcel]) -> None:
        """Send a host a task with its parcels."""
        sent = [(it.sha256, it.suffix, it.content) for it in parcels]
        self._call(host, task.id, "carry_out", text_of(task), sent)

    def control(self, host: str, task: str, what: str) -> None:
        """Pause, resume or cancel a task by its id; a host that is gone ignores it."""
        if worker := self._workers.get(host):
            self._run_there(here, "control", task, what, workers=[worker])

    def wait(self, seconds: float) -> Sequence[News]:
        """Return what has happened, after a while if nothing has."""
        self._look()
        found: list[News] = []
        with suppress(Empty):
            found.append(self.events.get(timeout=seconds))
            while len(found) < _MOST_AT_ONCE:
                found.append(self.events.get_nowait())
        return found

    def _call(self, host: str, task: str, function: str, *arguments: Any) -> None:
        """Call a function of a host: `HostAnswered`, unless the host goes away."""
        client, worker, token = self._client, self._workers.get(host), secrets.token_hex(16)
        if client is None or worker is None:
            self.events.put(HostLeft(host, is_gone=False))
            return
        self._calls[token] = called = _Call(host, task)
        where: Any = {"workers": [worker], "allow_other_workers": False, "retries": 0, "pure": False}
        asked = (self._topic, token, function, *arguments)
        try:
            called.future = client.submit(ask, *asked, key=f"{function}-{token[:16]}", **where)
            called.future.add_done_callback(partial(self._ended, token))
        # A connection that was lost, which is found at the next look.
        except Exception:  # noqa: BLE001
            self._calls.pop(token, None)
            self.events.put(HostLeft(host, is_gone=False))

    def _hear(self, event: Any) -> None:
        """Pass on a message or the answer of a host; a thread of dask calls this."""
        try:
            _, (token, is_answer, text) = event
            called = self._calls[token]
        # Of a call that is over, or not of our hosts.
        except (ValueError, TypeError, KeyError):
            return
        if called.is_answered or not isinstance(text, str) or len(text) > MOST_MESSAGE_BYTES:
            return
        called.is_answered |= bool(is_answer)
        self.events.put((HostAnswered if is_answer else HostSaid)(called.host, called.task, text))

    def _ended(self, token: str, future: Any) -> None:
        """Tell the end of a call without an answer; a thread of dask calls this."""
        from distributed.scheduler import KilledWorker

        called = self._calls.pop(token, None)
        # Its host has left, or it was answered.
        if called is None or called.is_answered:
            return
        error = future.exception(timeout=SECONDS_TO_CONNECT) if future.status == "error" else None
        if future.status != "finished" and (error is None or isinstance(error, KilledWorker)):
            self.events.put(HostLeft(called.host, is_gone=False))
            return
        reason = "the host answered with something else than text"
        if error is not None:
            reason = str(error) if isinstance(error, HostError) else reason_of(error)
        self.events.put(HostAnswered(called.host, called.task, "", printable(reason)[:_LONGEST_REASON]))

    def _disconnect(self) -> None:
        self._compare({})
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close(timeout=_SECONDS_TO_CLOSE - 1)

    def _look(self) -> None:
        """Look for hosts that have come or gone, or for the scheduler if that has gone."""
        now, client = time.monotonic(), self._client
        if client is None:
            if self._next_look <= now < self._give_up:
                try:
                    self.start()
                except FleetError:
                    self._next_look = now + self._wait_seconds
                    self._wait_seconds = min(2 * self._wait_seconds, _LONGEST_WAIT_SECONDS)
        elif client.status != "running" or client.scheduler_comm is not self._connection:
            self._disconnect()
            self._next_look, self._give_up = now + self._wait_seconds, now + _SECONDS_TO_RETURN
        elif self._changed.is_set() or now >= self._next_look:
            self._changed.clear()
            # The connection may be lost meanwhile, which is found next time.
            with suppress(OSError, asyncio.TimeoutError):
                identity = client.sync(client.scheduler.identity, callback_timeout=SECONDS_TO_CONNECT)
                self._compare(identity["workers"])
            self._next_look = now + _SECONDS_BETWEEN_LOOKS

    def _compare(self, workers: Mapping[str, Mapping[str, Any]]) -> None:
        """Note which hosts have joined and left; `workers` are those of the scheduler, by address."""
        found = {name_of(worker): (str(address), worker) for address, worker in workers.items()}
        for host in [host for host, address in self._workers.items() if found.get(host, ("",))[0] != address]:
            del self._workers[host]
            for token in [token for token, called in tuple(self._calls.items()) if called.host == host]:
                # The scheduler forgets it, and does not try it again.
                if (called := self._calls.pop(token, None)) is not None:
                    called.future.release()
            self.events.put(HostLeft(host))
        new = {host: found[host] for host in found if host not in self._workers}
        for host, (address, worker) in new.items():
            self._workers[host] = address
            fault = fault_of(worker)
            self.events.put(HostUnreachable(host, fault, is_final=True) if fault else HostJoined(host))
        for nanny in (False, True):
            if calm_there := [address for address, worker in new.values() if worker.get("nanny") or not nanny]:
                self._run_there(calm, workers=calm_there, nanny=nanny)

    def _run_there(self, function: Callable[..., object], *arguments: str, **where: Any) -> None:
        """Call a function in the event loop of workers, beside their tasks; a host that is gone ignores it."""
        client = self._client

        def run() -> None:
            with suppress(Exception):
                client.run(function, *arguments, on_error="ignore", **where)  # type: ignore[union-attr]

        # It waits for the hosts.
        threading.Thread(target=run, daemon=True).start()


def name_of(worker: Mapping[str, Any]) -> str:
    """Return the name of a host, as its dask worker tells it."""
    return printable(str(worker.get("name")))[:_LONGEST_NAME]


def fault_of(worker: Mapping[str, Any]) -> str:
    """Return why a dask worker can get no tasks; empty if it can."""
    # One thread runs one task at a time.
    if (threads := worker.get("nthreads")) == 1:
        return ""
    return (
        f"its dask worker runs up to {printable(str(threads))[:_LONGEST_NAME]} tasks at once: "
        "start it by `dlbricks fleet worker`, or by `dask worker --nthreads 1`"
    )


def ask(topic: str, token: str, function: str, *arguments: Any) -> None:
    """Call a function of this host, and log what it tells and answers under a topic, with the token of this call."""
    from distributed import get_worker

    worker = get_worker()

    def log(is_answer: bool, text: str) -> None:
        worker.log_event(topic, [token, is_answer, text])

    log(True, here(function, *arguments, *([partial(log, False)] if function == "carry_out" else ())))


def here(function: str, *arguments: Any) -> Any:
    """Call a function of the host's side, which driver and scheduler never load.

    Raise HostError with a reason in one line: nothing else travels of an error.
    """
    # Variables that dask sets for its workers, such as OMP_NUM_THREADS=1: a run here inherits them.
    import dask.config

    for key in ("pre-spawn-environ", "environ"):
        for name, value in (dask.config.get(f"distributed.nanny.{key}", None) or {}).items():
            if os.environ.get(name) == str(value):
                del os.environ[name]
    try:
        at_host = import_module("dlbricks_tui.fleet.at_host")
        return getattr(at_host, function)(str(data_folder().path), *arguments)
    except UserError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001
        reason = f"{type(error).__name__}: {error}"
    raise HostError(" ".join(reason.split())[:_LONGEST_REASON])


def calm(dask_worker: Any) -> None:
    """Let a worker, or the process that watches it, wake rarely for its life; dask calls this in its event loop.

    Nearly everything that it does by the clock would disturb what its host measures.
    """
    from tornado.ioloop import PeriodicCallback

    callbacks, rarely_ms = dask_worker.periodic_callbacks, 1000 * HEARTBEAT_SECONDS
    for name, callback in tuple(callbacks.items()):
        if name in ("tick", "ticks"):
            # Slower ones would each log that the process is busy.
            callback.stop()
        elif name != "heartbeat":
            callback.callback_time = max(callback.callback_time, rarely_ms)
        elif callback.is_running():
            # The scheduler resets the interval of this callback with each answer, so another one replaces it. A worker
            # stops all of its callbacks when it ends.
            callback.stop()
            callbacks["rare heartbeat"] = PeriodicCallback(dask_worker.heartbeat, rarely_ms)
            callbacks["rare heartbeat"].start()
