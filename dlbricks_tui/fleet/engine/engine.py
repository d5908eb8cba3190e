"""The engine of a fleet: dask.distributed, reduced to calls of hosts by name and events on a queue.

Each host runs one call at a time. A task is never repeated or given to another host: the driver decides what happens
after a loss. All methods return at once, and dask runs in a thread, so a host that is slow or gone delays no other one.

Dask's scheduler, clients and workers unpickle what their peers send. docs/how-it-works/fleet.md says what this means
for the trust in hosts.
"""

import asyncio
import os
import secrets
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import Future as ThreadFuture
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.engine.scheduler import SECONDS_TO_CONNECT, connect, reason_of, set_up
from dlbricks_tui.fleet.errors import FleetError, HostError
from dlbricks_tui.fleet.messages import MOST_MESSAGE_BYTES, Parcel, Task, text_of
from dlbricks_tui.fleet.request import HostEntry
from dlbricks_tui.folders import data_folder
from dlbricks_tui.printable import printable

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

    from dlbricks_tui.fleet.engine.cluster import FleetCluster

# Dask tells when hosts come and go. It is asked as well, should that message be lost.
_SECONDS_BETWEEN_LOOKS = 15.0
_SECONDS_BETWEEN_CHECKS = 1.0
# Hosts that join together are looked for together.
_SECONDS_TO_GATHER = 0.1
_SECONDS_TO_CLOSE = 3.0
# For so long a scheduler that is gone is looked for.
_SECONDS_TO_RETURN = 600.0
_LONGEST_NAME = 100
# A task sends a few messages a second. More would fill the memory of the driver.
_MOST_MESSAGES = 200_000
# Letters of the reason in an error of a host.
_LONGEST_REASON = 500
# Between two heartbeats of a worker; dask's own answer would be half a second.
HEARTBEAT_SECONDS = 10.0
# More than these wait until the driver has looked after everything else.
_MOST_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class HostJoined:
    """A host is there; `fault` says why it can get no tasks, if it cannot."""

    host: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class HostLeft:
    """A host went away, and its calls get no answer."""

    host: str


@dataclass(frozen=True, slots=True)
class HostUnreachable:
    """A host cannot be reached, for this reason. It is tried again later, unless that is final."""

    host: str
    reason: str
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class HostSaid:
    """A message of a host during a task."""

    host: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reported:
    """The report of a host as JSON, or the reason why it has none."""

    host: str
    text: str = field(repr=False)
    error: str = ""


@dataclass(frozen=True, slots=True)
class TaskOver:
    """The end of a task of a host as JSON, or the reason why there is none."""

    host: str
    task: str
    text: str = field(repr=False)
    error: str = ""


@dataclass(frozen=True, slots=True)
class CallLost:
    """A host could not be called, or dask gave up the call."""

    host: str


News: TypeAlias = HostJoined | HostLeft | HostUnreachable | HostSaid | Reported | TaskOver | CallLost


class Engine:
    """The hosts of one dask scheduler. A `cluster` reaches them, and puts what goes wrong on `events`.

    News of the hosts come in the order in which they happened.
    """

    def __init__(
        self,
        address: str,
        security: "Security | None",
        log: Path | None = None,
        cluster: "FleetCluster | None" = None,
        events: "SimpleQueue[News] | None" = None,
    ) -> None:
        self.events: SimpleQueue[News] = events or SimpleQueue()
        self._address = address
        self._security = security
        self._log = log
        self._cluster = cluster
        self._topic = f"dlbricks-{secrets.token_hex(16)}"
        self._thread: threading.Thread | None = None
        # Everything below belongs to the event loop's thread.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        # The address of each host's worker.
        self._workers: dict[str, str] = {}
        # The parcels that each host has, as far as this driver knows.
        self._held: dict[str, set[str]] = {}
        # By a token that is known to one host alone, so no other one can send messages in its name.
        self._listening: dict[str, str] = {}
        # The messages of each such task so far.
        self._heard = Counter[str]()
        # The work that is open, and its host. Kept until it ends: the loop itself has weak references only.
        self._open: dict[asyncio.Task[None], str] = {}
        self._closing = asyncio.Event()
        self._changed = asyncio.Event()

    def start(self) -> None:
        """Connect to the scheduler, and begin to watch for hosts; raise FleetError if it cannot be used."""
        set_up(self._log)
        started: ThreadFuture[None] = ThreadFuture()
        self._thread = threading.Thread(target=self._run, args=(started,), name="fleet engine", daemon=True)
        self._thread.start()
        started.result()

    def close(self) -> None:
        """Give up all calls, and disconnect; this takes a few seconds at most."""
        try:
            if self._thread is not None:
                self._in_loop(self._closing.set)
                self._thread.join(_SECONDS_TO_CLOSE)
        finally:
            if self._cluster is not None:
                self._cluster.close()

    def add(self, entry: HostEntry) -> None:
        """Reach one more host; raise FleetError if that is not possible."""
        if self._cluster is None:
            raise FleetError(
                f"hosts of this fleet run join by themselves: start a worker named {entry.name} for its scheduler"
            )
        self._cluster.add_hosts([entry])

    def report(self, host: str) -> None:
        """Ask a host for its report: `Reported`, unless the host goes away."""
        self._call(host, lambda: self._told(host, call, "report"), partial(Reported, host))

    def carry_out(self, host: str, task: Task, parcels: Sequence[Parcel]) -> None:
        """Send a host the parcels that it lacks, and then a task: `TaskOver`, unless the host goes away."""
        self._call(host, lambda: self._carried_out(host, task, parcels), partial(TaskOver, host, task.id))

    def control(self, host: str, task: str, what: str) -> None:
        """Pause, resume or cancel a task by its id; a host that is gone ignores it."""

        def begin() -> None:
            if worker := self._workers.get(host):
                self._begin(host, self._run_there(call, "control", task, what, workers=[worker]))

        self._in_loop(begin)

    def wait(self, seconds: float) -> Sequence[News]:
        """Return what has happened, after a while if nothing has."""
        found: list[News] = []
        with suppress(Empty):
            found.append(self.events.get(timeout=seconds))
            while len(found) < _MOST_AT_ONCE:
                found.append(self.events.get_nowait())
        return found

    def _call(self, host: str, work: Callable[[], Awaitable[str]], news: Callable[[str, str], News]) -> None:
        async def answered() -> None:
            """Tell the answer of a host, or why there is none."""
            try:
                found = news(await work(), "")
            except HostError as error:
                found = news("", printable(str(error))[:_LONGEST_REASON])
            except CancelledError:
                found = CallLost(host)
            self.events.put(found)

        if not self._in_loop(lambda: self._begin(host, answered())):
            self.events.put(CallLost(host))

    def _begin(self, host: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._open[task] = host
        task.add_done_callback(lambda it: self._open.pop(it, None))

    async def _carried_out(self, host: str, task: Task, parcels: Sequence[Parcel]) -> str:
        held = self._held.setdefault(host, set())
        if unsure := {it.sha256: it for it in parcels if it.sha256 not in held}:
            lacking = await self._asked(host, call, "missing", list(unsure))
            for sha256, parcel in unsure.items():
                if isinstance(lacking, list) and sha256 in lacking:
                    await self._asked(host, call, "take", sha256, parcel.suffix, parcel.content)
            held.update(unsure)
        token = secrets.token_hex(16)
        self._listening[token] = host
        try:
            return await self._told(host, carry_out, text_of(task), self._topic, token)
        finally:
            del self._listening[token], self._heard[token]

    async def _told(self, host: str, function: Callable[..., Any], *arguments: Any) -> str:
        found = await self._asked(host, function, *arguments)
        if not isinstance(found, str) or len(found) > MOST_MESSAGE_BYTES:
            raise HostError("the host answered with something else than text")
        return found

    async def _asked(self, host: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Let a host call a function, and return its answer.

        Raise HostError with the reason if there is none, or CancelledError if the host is not there.
        """
        from distributed.scheduler import KilledWorker

        worker = self._workers.get(host)
        if worker is None or self._client is None:
            raise CancelledError
        future = None
        try:
            future = self._client.submit(
                function,
                *arguments,
                key=f"{function.__name__}-{secrets.token_hex(8)}",
                workers=[worker],
                allow_other_workers=False,
                retries=0,
                pure=False,
            )
            return await future
        except KilledWorker:
            raise CancelledError from None
        except (HostError, CancelledError):
            raise
        # Anything that dask raises, or that the host has raised before it came to our function.
        except Exception as error:
            raise HostError(reason_of(error)) from error
        finally:
            # The scheduler forgets it, and does not try it again.
            if future is not None:
                future.release()

    def _hear(self, event: Any) -> None:
        """Pass on a message of a host."""
        try:
            _, (token, text) = event
            host = self._listening[token]
        # Of a task that is over, or not of our hosts.
        except (ValueError, TypeError, KeyError):
            return
        self._heard[token] += 1
        if isinstance(text, str) and len(text) <= MOST_MESSAGE_BYTES and self._heard[token] <= _MOST_MESSAGES:
            self.events.put(HostSaid(host, text))

    def _in_loop(self, function: Callable[[], object]) -> bool:
        """Run a function in the loop's thread soon; return False if the loop has ended."""
        # Raised by a loop that is closed.
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function)
                return True
        return False

    def _run(self, started: "ThreadFuture[None]") -> None:
        try:
            asyncio.run(self._live(started))
        # For the thread that waits for the start.
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    async def _live(self, started: "ThreadFuture[None]") -> None:
        """Serve one connection after another, until the engine is closed or the scheduler is gone for good."""
        self._client = await connect(self._address, self._security)
        self._loop = asyncio.get_running_loop()
        started.set_result(None)
        while self._client is not None:
            client = self._client
            await self._serve(client)
            self._compare({})
            self._client = None
            with suppress(Exception):
                await asyncio.wait_for(client.close(), _SECONDS_TO_CLOSE - 1)
            if not self._closing.is_set():
                self._client = await self._connected_again()

    async def _connected_again(self) -> "Client | None":
        """Return a new connection once the scheduler is there again, or None."""
        loop = asyncio.get_running_loop()
        give_up, wait = loop.time() + _SECONDS_TO_RETURN, 1.0
        while loop.time() < give_up:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._closing.wait(), wait)
                return None
            with suppress(FleetError):
                return await connect(self._address, self._security)
            wait = min(2 * wait, 30.0)
        return None

    async def _serve(self, client: "Client") -> None:
        """Watch for hosts until the connection is lost or the engine is closed."""
        connection = client.scheduler_comm
        client.subscribe_topic(self._topic, self._hear)
        client.subscribe_topic("all", lambda _: self._changed.set())
        # These would print what hosts send, and load pickled warnings.
        for topic in ("print", "warn"):
            client.subscribe_topic(topic, lambda _: None)
        loop = asyncio.get_running_loop()
        look = loop.time()
        while not self._closing.is_set() and client.status == "running" and client.scheduler_comm is connection:
            if self._changed.is_set() or loop.time() >= look:
                self._changed.clear()
                await asyncio.sleep(_SECONDS_TO_GATHER)
                # The connection may be lost meanwhile, which is found above.
                with suppress(OSError, asyncio.TimeoutError):
                    identity = await asyncio.wait_for(client.scheduler.identity(), SECONDS_TO_CONNECT)
                    self._compare(identity["workers"])
                look = loop.time() + _SECONDS_BETWEEN_LOOKS
            # Until hosts have changed or the engine is closed, at most until the connection has to be checked.
            waiting = [asyncio.ensure_future(it.wait()) for it in (self._closing, self._changed)]
            await asyncio.wait(waiting, timeout=_SECONDS_BETWEEN_CHECKS, return_when=asyncio.FIRST_COMPLETED)
            for each in waiting:
                each.cancel()

    def _compare(self, workers: Mapping[str, Mapping[str, Any]]) -> None:
        """Note which hosts have joined and left; `workers` are those of the scheduler, by address."""
        found = {name_of(worker): (str(address), worker) for address, worker in workers.items()}
        for host in [host for host, address in self._workers.items() if found.get(host, ("",))[0] != address]:
            self._leave(host)
        for host, (address, worker) in found.items():
            if host not in self._workers:
                self._workers[host] = address
                self.events.put(HostJoined(host, fault_of(worker)))
                for nanny in (False, True) if worker.get("nanny") else (False,):
                    self._begin(host, self._run_there(calm, workers=[address], nanny=nanny))

    def _leave(self, host: str) -> None:
        del self._workers[host]
        # Its folder may be another one when it returns.
        self._held.pop(host, None)
        for work in [work for work, of in self._open.items() if of == host]:
            work.cancel()
        self.events.put(HostLeft(host))

    async def _run_there(self, function: Callable[..., object], *arguments: str, **where: Any) -> None:
        """Call a function in the event loop of a worker, beside its task; a host that is gone ignores it."""
        if self._client is not None:
            with suppress(Exception):
                running = self._client.run(function, *arguments, on_error="ignore", **where)
                await asyncio.wait_for(running, SECONDS_TO_CONNECT)


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


def call(function: str, *arguments: Any) -> Any:
    """Call a function of this host, which dask does there: `report`, `missing`, `take`, or `control` beside a task."""
    return _answer(lambda at_host, data: getattr(at_host, function)(data, *arguments))


def carry_out(task: str, topic: str, token: str) -> str:
    """Carry out a task on this host, and log what it finds under a topic, with the token that only this task knows."""
    from distributed import get_worker

    worker = get_worker()

    def send(text: str) -> None:
        worker.log_event(topic, [token, text])

    return str(_answer(lambda at_host, data: at_host.carry_out(data, task, send)))


def _answer(question: Callable[[Any, str], Any]) -> Any:
    """Ask the host's side, which driver and scheduler never load; of an error only a reason in one line travels."""
    # Variables that dask sets for its workers, such as OMP_NUM_THREADS=1: a run here inherits them.
    import dask.config

    for key in ("pre-spawn-environ", "environ"):
        for name, value in (dask.config.get(f"distributed.nanny.{key}", None) or {}).items():
            if os.environ.get(name) == str(value):
                del os.environ[name]
    try:
        return question(import_module("dlbricks_tui.fleet.at_host"), str(data_folder().path))
    except UserError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001
        reason = f"{type(error).__name__}: {error}"
    raise HostError(" ".join(reason.split())[:_LONGEST_REASON])


def calm(dask_worker: Any) -> None:
    """Let a worker, or the process that watches it, wake rarely for its life; dask calls this in its event loop.

    Nearly everything that it does by the clock would disturb what its host measures.
    """
    for name, callback in dask_worker.periodic_callbacks.items():
        if name in ("tick", "ticks"):
            # Slower ones would each log that the process is busy.
            callback.stop()
        elif name != "heartbeat":
            callback.callback_time = max(callback.callback_time, 1000 * HEARTBEAT_SECONDS)
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

    callback = PeriodicCallback(beat, 1000 * HEARTBEAT_SECONDS)
    return callback
