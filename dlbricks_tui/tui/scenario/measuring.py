"""The process that measures a scenario, as the screen follows it: it can be paused, resumed and cancelled."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from dlbricks_tui.answers.child_process import ChildError, ChildProcess, JobFolder
from dlbricks_tui.answers.scenarios.load_process import load_process
from dlbricks_tui.host.queue import Kind
from dlbricks_tui.scenarios.messages import decode
from dlbricks_tui.tui.scenario.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.scenarios.messages import LoadMessage, ScenarioOrder
    from dlbricks_tui.scenarios.scenario import Scenario


class Measuring:
    """A scenario that is measured. A pause ends its process; the next one repeats the test in progress."""

    def __init__(self, order: ScenarioOrder, data: DataFolder, begun: ChildProcess[LoadMessage] | None = None) -> None:
        """`begun` is the process of a measurement that was begun before."""
        self._order = order
        self._data = data
        self._process = begun
        self.was_begun_before = begun is not None
        self._resumed = asyncio.Event()
        self.progress = Progress()
        self.paused = self.cancelled = False

    @classmethod
    def begun(cls, model: str, data: DataFolder) -> Measuring | None:
        """Return the measurement of a model that was begun before, and that nobody has followed to its end."""
        found = JobFolder.last_of(data, Kind.LOAD_TEST, model)
        return None if found is None else cls(found[1], data, ChildProcess.started_before(found[0], decode))

    @property
    def scenario(self) -> Scenario:
        return self._order.scenario

    async def follow(self, changed: Callable[[], None]) -> None:
        """Measure to the end, and report each change; a failure is kept in the progress."""

        def take(message: LoadMessage) -> None:
            self.progress.take(message)
            changed()

        while not self.cancelled and self.progress.done is None and not self.progress.failure:
            if self.paused:
                self._resumed.clear()
                changed()
                await self._resumed.wait()
                continue
            process = self._process = self._process or self._new_process()
            try:
                await process.follow(take)
            except ChildError as error:
                self.progress.failure = self.progress.failure or str(error)
            self._process = None
            if process.stopped:
                self.progress.failure = ""
            elif self.progress.done is None and not self.progress.failure:
                self.progress.failure = "the process ended without a result"
            if self.progress.done is None:
                self.progress.process_ended()

    def pause(self) -> None:
        """End the process, so that others can measure."""
        self.paused = True
        if self._process is not None:
            self._process.stop()

    def resume(self) -> None:
        self.paused = False
        self._resumed.set()

    def cancel(self) -> None:
        self.cancelled = True
        self._resumed.set()
        if self._process is not None:
            self._process.stop()

    def _new_process(self) -> ChildProcess[LoadMessage]:
        passed = self.progress.highest_passed
        order = self._order if passed is None else replace(self._order, first_rate=passed)
        return load_process(order, self._data)
