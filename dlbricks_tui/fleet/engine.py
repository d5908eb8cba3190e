"""The engine of a fleet: dask.distributed, reduced to calls of hosts by name and events on a queue.

Each host runs one task at a time. A task is never repeated or given to another host: the driver decides what happens
after a loss. Hosts answer with text only. Dask itself still unpickles the messages of its own protocol, so a host that
an attacker controls could attack the driver through dask: machines of others measure a suite instead.
"""

import json
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from dlbricks_tui.fleet.dask_settings import RESOURCE, SETTINGS
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.messages import Parcel

if TYPE_CHECKING:
    from distributed import Client, Future
    from distributed.security import Security

_SECONDS_TO_CONNECT = 30
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_CLOSE = 5
# A task sends a few messages a second. More would fill the memory of the driver.
_MOST_MESSAGES_OF_A_TASK = 200_000
_LONGEST_ANSWER = 1 << 28
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class HostJoined:
    """A host is there; `fault` says why it can get no tasks, if it cannot."""

    host: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class HostLeft:
    """A host went away. Its calls are answered with an error before."""

    host: str


@dataclass(frozen=True, slots=True)
class HostSaid:
    """A message of a host during a call."""

    host: str
    call: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of a call: the answer as JSON, or why there is none."""

    host: str
    call: str
    text: str = field(default="", repr=False)
    error: str = ""
    # True: the host went away during the call.
    lost: bool = False


EngineEvent: TypeAlias = HostJoined | HostLeft | HostSaid | Answered


class Calls(Protocol):
    """The calls that a driver makes; each returns the id under which the answer comes."""

    def report(self, host: str) -> str:
        """Ask for the report of a host."""

    def missing(self, host: str, hashes: list[str]) -> str:
        """Ask which parcels a host lacks."""

    def send(self, host: str, parcel: Parcel) -> str:
        """Send a parcel."""

    def carry_out(self, host: str, task: str) -> str:
        """Give a host a task, as JSON."""

    def control(self, host: str, task: str, what: str) -> None:
        """Pause, resume or cancel a task by its id; a host that is gone ignores it."""


@dataclass(slots=True)
class _Call:
    """A call that has not been answered yet."""

    host: str
    future: "Future"
    topic: str = ""


class Engine:
    """The hosts of one dask scheduler. Events arrive on `events`, in the order in which they happened."""

    def __init__(self, address: str, security: "Security | None") -> None:
        self.events: SimpleQueue[EngineEvent] = SimpleQueue()
        self._address = address
        self._security = security
        self._client: Client | None = None
        # The address of each host's worker.
        self._workers: dict[str, str] = {}
        self._calls: dict[str, _Call] = {}
        self._said: Counter[str] = Counter()
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="fleet hosts", daemon=True)

    def start(self) -> None:
        """Connect to the scheduler, and begin to watch for hosts."""
        import dask.config
        from distributed import Client

        dask.config.set(SETTINGS)
        _silence()
        try:
            self._client = Client(
                self._address, security=self._security, set_as_default=False, timeout=_SECONDS_TO_CONNECT
            )
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise FleetError(f"the scheduler at {self._address} cannot be used: {_reason(error)}") from error
        self._watcher.start()

    def close(self) -> None:
        """Give up all calls, and disconnect."""
        self._closing.set()
        with self._lock:
            for call in self._calls.values():
                with suppress(Exception):
                    call.future.cancel()
            self._calls.clear()
        if self._client is not None:
            with suppress(Exception):
                self._client.close(timeout=_SECONDS_TO_CLOSE)

    def report(self, host: str) -> str:
        from dlbricks_tui.fleet import on_worker

        return self._call(host, on_worker.report)

    def missing(self, host: str, hashes: list[str]) -> str:
        from dlbricks_tui.fleet import on_worker

        return self._call(host, on_worker.missing, hashes)

    def send(self, host: str, parcel: Parcel) -> str:
        from dlbricks_tui.fleet import on_worker

        return self._call(host, on_worker.take, parcel.sha256, parcel.suffix, parcel.content)

    def carry_out(self, host: str, task: str) -> str:
        from dlbricks_tui.fleet import on_worker

        # Only this host learns the topic, so no other one can send messages in its name.
        topic = f"dlbricks-{secrets.token_hex(16)}"
        return self._call(host, on_worker.carry_out, task, topic, topic=topic)

    def control(self, host: str, task: str, what: str) -> None:
        from dlbricks_tui.fleet import on_worker

        with self._lock:
            worker = self._workers.get(host)
        if worker is not None and self._client is not None:
            with suppress(Exception):
                self._client.run(on_worker.control, task, what, workers=[worker], wait=False, on_error="ignore")

    def _call(self, host: str, function: Callable[..., str], *arguments: Any, topic: str = "") -> str:
        call = secrets.token_hex(8)
        with self._lock:
            worker = self._workers.get(host)
            if worker is None or self._client is None:
                self.events.put(Answered(host, call, error="the host is not there", lost=True))
                return call
            if topic:
                self._client.subscribe_topic(topic, partial(self._take, host, call))
            future = self._client.submit(
                function,
                *arguments,
                key=f"{function.__name__}-{call}",
                workers=[worker],
                allow_other_workers=False,
                resources={RESOURCE: 1},
                retries=0,
                pure=False,
            )
            self._calls[call] = _Call(host, future, topic)
        future.add_done_callback(partial(self._finish, call))
        return call

    def _take(self, host: str, call: str, event: tuple[float, Any]) -> None:
        """Pass on a message; runs in dask's thread."""
        _, text = event
        if isinstance(text, str) and self._said[call] <= _MOST_MESSAGES_OF_A_TASK:
            self._said[call] += 1
            self.events.put(HostSaid(host, call, text))

    def _finish(self, call: str, future: "Future") -> None:
        """Pass on the end of a call; runs in a thread of dask."""
        with self._lock:
            found = self._calls.pop(call, None)
            self._said.pop(call, None)
        if found is None:
            return
        if found.topic and self._client is not None:
            with suppress(Exception):
                self._client.unsubscribe_topic(found.topic)
        self.events.put(self._answer(found.host, call, future))

    def _answer(self, host: str, call: str, future: "Future") -> Answered:
        from concurrent.futures import CancelledError

        from distributed.scheduler import KilledWorker

        try:
            text = future.result(timeout=_SECONDS_TO_CONNECT)
        except (KilledWorker, CancelledError):
            return Answered(host, call, error="the host went away", lost=True)
        # Any error that a host raised.
        except Exception as error:  # noqa: BLE001
            return Answered(host, call, error=_reason(error))
        if not isinstance(text, str) or len(text) > _LONGEST_ANSWER:
            return Answered(host, call, error="the host answered with something else than text")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return Answered(host, call, error="the host answered with something else than JSON")
        if not isinstance(found, dict) or len(found) != 1 or not found.keys() <= {"answer", "error"}:
            return Answered(host, call, error="the host answered with something else than an answer")
        if "error" in found:
            return Answered(host, call, error=str(found["error"])[:_LONGEST_REASON])
        return Answered(host, call, text=json.dumps(found["answer"]))

    def _watch(self) -> None:
        """Compare the workers of the scheduler with the known hosts, once a second."""
        while not self._closing.wait(_SECONDS_BETWEEN_LOOKS):
            try:
                found = self._seen()
            # Whatever goes wrong while the scheduler is away: it is asked again.
            except Exception:  # noqa: BLE001
                if self._client is not None and self._client.status in ("closed", "closing"):
                    found = {}
                else:
                    continue
            self._compare(found)

    def _seen(self) -> Mapping[str, tuple[str, str]]:
        """Return the address and the fault of each worker, by name."""
        assert self._client is not None
        identity = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=10)
        found = {}
        for address, worker in identity["workers"].items():
            fault = ""
            if worker.get("nthreads") != 1 or not (worker.get("resources") or {}).get(RESOURCE):
                fault = "its worker would measure several bricks at once: start it with `dlbricks fleet worker`"
            found[str(worker["name"])] = (str(address), fault)
        return found

    def _compare(self, found: Mapping[str, tuple[str, str]]) -> None:
        with self._lock:
            gone = [host for host, address in self._workers.items() if found.get(host, ("", ""))[0] != address]
            for host in gone:
                del self._workers[host]
            lost = [call.future for call in self._calls.values() if call.host in gone]
            new = [host for host in found if host not in self._workers]
            self._workers.update({host: found[host][0] for host in new})
        # Each is answered as lost.
        for future in lost:
            with suppress(Exception):
                future.cancel()
        for host in gone:
            self.events.put(HostLeft(host))
        for host in new:
            self.events.put(HostJoined(host, found[host][1]))


def _silence() -> None:
    """Keep the log of dask, which goes to the standard error, away from the user's terminal."""
    import logging

    for name in ("distributed", "tornado", "asyncio", "bokeh"):
        logger = logging.getLogger(name)
        logger.handlers = [logging.NullHandler()]
        logger.propagate = False


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:_LONGEST_REASON]
