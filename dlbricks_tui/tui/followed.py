"""A process that measures for a screen: it is followed to its end, or cancelled."""

from collections.abc import Callable

from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.process import JobProcess


class FollowedProcess:
    """Keeps the failure of a process; subclasses take its messages, and tell whether it has a result."""

    # What a process without result and reason has ended without.
    RESULT = "a result"

    def __init__(self, process: JobProcess) -> None:
        self._process = process
        self.failure = ""

    @property
    def cancelled(self) -> bool:
        return self._process.stopped

    @property
    def has_result(self) -> bool:
        raise NotImplementedError

    def take(self, message: Event) -> None:
        """Take a message of the process."""
        raise NotImplementedError

    async def follow(self, changed: Callable[[], None]) -> None:
        """Follow the process to its end, and report each change; a failure is kept."""

        def take(message: Event) -> None:
            self.take(message)
            changed()

        try:
            await self._process.follow(take)
        except JobError as error:
            self.failure = self.failure or str(error)
        if self.cancelled:
            self.failure = ""
        elif not self.has_result and not self.failure:
            self.failure = f"the process ended without {self.RESULT}"

    def cancel(self) -> None:
        self._process.stop()
