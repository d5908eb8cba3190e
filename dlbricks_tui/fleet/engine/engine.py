"""The engine of a fleet: dask.distributed, reduced to calls of hosts by name and events on a queue.

Each host runs one call at a time. A task is never repeated or given to another host: the driver decides what happens
after a loss. All methods return at once, and dask runs in a thread, so a host that is slow or gone delays no other one.

Hosts answer with text only. Dask's own protocol is another matter: its scheduler, clients and workers unpickle what
their peers send. docs/how-it-works/fleet.md says what this means for the trust in hosts.
"""

import asyncio
import secrets
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future as ThreadFuture
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from dlbricks_tui.fleet.engine import dask_settings
from dlbricks_tui.fleet.engine.events import Answered, Calls, EngineEvent, HostJoined, HostLeft, HostSaid
from dlbricks_tui.fleet.engine.open_calls import OpenCall, OpenCalls, lost
from dlbricks_tui.fleet.engine.scheduler_address import SECONDS_TO_CONNECT, connect
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.messages import Parcel
from dlbricks_tui.printable import printable

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

__all__ = ["Answered", "Calls", "Engine", "EngineEvent", "HostJoined", "HostLeft", "HostSaid"]

# Dask tells when hosts come and go. It is asked as well, should that message be lost.
_SECONDS_BETWEEN_LOOKS = 15.0
_SECONDS_BETWEEN_CHECKS = 1.0
# Hosts that join together are looked for together.
_SECONDS_TO_GATHER = 0.1
_SECONDS_TO_CLOSE = 3.0
# For so long a scheduler that is gone is looked for.
_SECONDS_TO_RETURN = 600.0
_LONGEST_NAME = 100


class Engine:
    """The hosts of one dask scheduler. Events arrive on `events`, in the order in which they happened."""

    def __init__(self, address: str, security: "Security | None", log: Path | None = None) -> None:
        self.events: SimpleQueue[EngineEvent] = SimpleQueue()
        self._address = address
        self._security = security
        self._log = log
        self._topic = f"dlbricks-{secrets.token_hex(16)}"
        self._thread: threading.Thread | None = None
        # Everything below belongs to the event loop's thread.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        # The address of each host's worker.
        self._workers: dict[str, str] = {}
        # The addresses of workers that were removed during a look, which may still show them.
        self._removed: set[str] = set()
        self._calls = OpenCalls(self._topic, self.events.put)
        self._background: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        self._changed = asyncio.Event()

    def start(self) -> None:
        """Connect to the scheduler, and begin to watch for hosts; raise FleetError if it cannot be used."""
        dask_settings.set_up(self._log)
        started: ThreadFuture[None] = ThreadFuture()
        self._thread = threading.Thread(target=self._run, args=(started,), name="fleet engine", daemon=True)
        self._thread.start()
        started.result()

    def close(self) -> None:
        """Give up all calls, and disconnect; this takes a few seconds at most."""
        if self._thread is not None:
            self._in_loop(self._closing.set)
            self._thread.join(_SECONDS_TO_CLOSE)

    def report(self, host: str) -> str:
        return self._call(host, "report")

    def missing(self, host: str, hashes: list[str]) -> str:
        return self._call(host, "missing", hashes)

    def send(self, host: str, parcel: Parcel) -> str:
        return self._call(host, "take", parcel.sha256, parcel.suffix, parcel.content)

    def carry_out(self, host: str, task: str) -> str:
        return self._call(host, "carry_out", task, sends=True)

    def control(self, host: str, task: str, what: str) -> None:
        self._in_loop(lambda: self._begin_control(host, task, what))

    def _call(self, host: str, function: str, *arguments: Any, sends: bool = False) -> str:
        name = secrets.token_hex(8)
        if not self._in_loop(lambda: self._begin(name, host, function, arguments, sends)):
            self.events.put(lost(host, name))
        return name

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
        client.subscribe_topic(self._topic, self._calls.hear)
        client.subscribe_topic("all", self._note_change)
        # These would print what hosts send, and load pickled warnings.
        for topic in ("print", "warn"):
            client.subscribe_topic(topic, _ignore)
        loop = asyncio.get_running_loop()
        look = loop.time()
        while not self._closing.is_set() and client.status == "running" and client.scheduler_comm is connection:
            if self._changed.is_set() or loop.time() >= look:
                self._changed.clear()
                await asyncio.sleep(_SECONDS_TO_GATHER)
                self._removed.clear()
                # The connection may be lost meanwhile, which is found above.
                with suppress(OSError, asyncio.TimeoutError):
                    identity = await asyncio.wait_for(client.scheduler.identity(), SECONDS_TO_CONNECT)
                    self._compare(_seen(identity), identity)
                look = loop.time() + _SECONDS_BETWEEN_LOOKS
            await self._next_event()

    async def _next_event(self) -> None:
        """Wait until hosts have changed or the engine is closed, at most until the connection has to be checked."""
        waiting = [asyncio.ensure_future(it.wait()) for it in (self._closing, self._changed)]
        await asyncio.wait(waiting, timeout=_SECONDS_BETWEEN_CHECKS, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()

    def _note_change(self, event: Any) -> None:
        """Note that the scheduler's workers have changed; those that are gone leave at once."""
        message = event[1] if isinstance(event, tuple | list) and len(event) == 2 else None
        if not isinstance(message, dict):
            return
        worker = str(message.get("worker"))
        if message.get("action") == "add-worker":
            self._removed.discard(worker)
            self._changed.set()
        elif message.get("action") == "remove-worker":
            self._removed.add(worker)
            for host in [host for host, address in self._workers.items() if address == worker]:
                self._leave(host)

    def _compare(self, found: Mapping[str, tuple[str, str]], identity: Mapping[str, Any] | None = None) -> None:
        for host in [host for host, address in self._workers.items() if found.get(host, ("", ""))[0] != address]:
            self._leave(host)
        for host, (address, fault) in found.items():
            if host not in self._workers and address not in self._removed:
                self._workers[host] = address
                self.events.put(HostJoined(host, fault))
                if identity and (identity["workers"][address]).get("nanny"):
                    self._in_background(self._calm(address))

    def _leave(self, host: str) -> None:
        del self._workers[host]
        self._calls.lose(host)
        self.events.put(HostLeft(host))

    def _begin(self, name: str, host: str, function: str, arguments: tuple[Any, ...], sends: bool) -> None:
        worker = self._workers.get(host)
        if worker is None or self._client is None:
            self.events.put(lost(host, name))
        else:
            self._calls.begin(OpenCall(name, host), self._client, worker, function, arguments, sends=sends)

    def _begin_control(self, host: str, task: str, what: str) -> None:
        worker = self._workers.get(host)
        if worker is not None:
            self._in_background(self._control(worker, task, what))

    async def _control(self, worker: str, task: str, what: str) -> None:
        from dlbricks_tui.fleet.engine import on_worker

        await self._run_there(on_worker.control, task, what, workers=[worker])

    async def _calm(self, worker: str) -> None:
        from dlbricks_tui.fleet.engine import on_worker

        await self._run_there(on_worker.calm, workers=[worker], nanny=True)

    async def _run_there(self, function: Callable[..., object], *arguments: str, **where: Any) -> None:
        """Call a function in the event loop of a worker, beside its task; a host that is gone ignores it."""
        if self._client is not None:
            with suppress(Exception):
                running = self._client.run(function, *arguments, on_error="ignore", **where)
                await asyncio.wait_for(running, SECONDS_TO_CONNECT)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        # Kept until it ends: the loop itself has weak references only.
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _ignore(_: object) -> None:
    """Take an event without using it."""


def _seen(identity: Mapping[str, Any]) -> Mapping[str, tuple[str, str]]:
    """Return the address and the fault of each worker, by name."""
    found = {}
    for address, worker in identity["workers"].items():
        fault = ""
        # One thread runs one task at a time.
        if (threads := worker.get("nthreads")) != 1:
            fault = (
                f"its dask worker runs up to {printable(str(threads))[:_LONGEST_NAME]} tasks at once: "
                "start it by `dlbricks fleet worker`, or by `dask worker --nthreads 1`"
            )
        found[printable(str(worker.get("name")))[:_LONGEST_NAME]] = (str(address), fault)
    return found
