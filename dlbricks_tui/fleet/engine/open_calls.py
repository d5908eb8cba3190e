"""The calls of hosts that have not been answered yet: each is a task of dask for one worker, and ends exactly once."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dlbricks_tui.fleet.engine.events import Answered, HostSaid
from dlbricks_tui.fleet.engine.scheduler_address import reason_of

if TYPE_CHECKING:
    from distributed import Client

# A task sends a few messages a second. More would fill the memory of the driver.
_MOST_MESSAGES = 200_000
_LONGEST_MESSAGE = 1 << 24
_LONGEST_ANSWER = 1 << 28


@dataclass(slots=True)
class OpenCall:
    """A call that has not been answered yet."""

    name: str
    host: str
    # Known to this host alone, so no other one can send messages in its name.
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    messages: int = 0
    waiting: "asyncio.Task[None] | None" = None


class OpenCalls:
    """All calls of an engine; everything happens in the thread of its event loop."""

    def __init__(self, topic: str, tell: Callable[[Answered | HostSaid], None]) -> None:
        self._topic = topic
        self._tell = tell
        self._by_name: dict[str, OpenCall] = {}
        self._by_token: dict[str, OpenCall] = {}

    def begin(
        self, call: OpenCall, client: "Client", worker: str, function: str, arguments: tuple[Any, ...], *, sends: bool
    ) -> None:
        """Let a worker call a function; one that sends messages is told where to."""
        given = (*arguments, self._topic, call.token) if sends else arguments
        self._by_name[call.name] = self._by_token[call.token] = call
        call.waiting = asyncio.ensure_future(self._wait_for(call, client, worker, function, given))

    def lose(self, host: str) -> None:
        """Answer all calls of a host that went away."""
        for call in [call for call in self._by_name.values() if call.host == host]:
            self._end(call, lost(host, call.name))

    def hear(self, event: Any) -> None:
        """Pass on a message of a host."""
        try:
            _, (token, text) = event
            call = self._by_token[token]
        # Of a call that is over, or not of our hosts.
        except (ValueError, TypeError, KeyError):
            return
        call.messages += 1
        if isinstance(text, str) and len(text) <= _LONGEST_MESSAGE and call.messages <= _MOST_MESSAGES:
            self._tell(HostSaid(call.host, call.name, text))

    async def _wait_for(
        self, call: OpenCall, client: "Client", worker: str, function: str, arguments: tuple[Any, ...]
    ) -> None:
        """Let a host call a function, and end the call with the answer or the error."""
        from dlbricks_tui.fleet.engine import on_worker

        future = None
        try:
            future = client.submit(
                getattr(on_worker, function),
                *arguments,
                key=f"{function}-{call.name}",
                workers=[worker],
                allow_other_workers=False,
                retries=0,
                pure=False,
            )
            text, error = on_worker.parted(await future, _LONGEST_ANSWER)
            self._end(call, Answered(call.host, call.name, text=text, error=error))
        except asyncio.CancelledError:
            # The host has left, or the engine is being closed.
            self._end(call, lost(call.host, call.name))
            raise
        # Anything that dask raises, or that the host has raised before it came to our function.
        except Exception as error:  # noqa: BLE001
            is_loss = _is_loss(error)
            failed = Answered(call.host, call.name, error=reason_of(error))
            self._end(call, lost(call.host, call.name) if is_loss else failed)
        finally:
            # The scheduler forgets it, and does not try it again.
            if future is not None:
                future.release()

    def _end(self, call: OpenCall, answer: Answered) -> None:
        """Tell the answer of a call, unless it has one."""
        if self._by_name.pop(call.name, None) is None:
            return
        del self._by_token[call.token]
        if call.waiting is not None and call.waiting is not asyncio.current_task():
            call.waiting.cancel()
        self._tell(answer)


def lost(host: str, call: str) -> Answered:
    """Return the answer of a call whose host is not there."""
    return Answered(host, call, error="the host went away", lost=True)


def _is_loss(error: Exception) -> bool:
    from concurrent.futures import CancelledError

    from distributed.scheduler import KilledWorker

    return isinstance(error, KilledWorker | CancelledError)
