"""Processes that measure while their progress is shown: they are followed to their ends, or cancelled."""

from __future__ import annotations

from collections.abc import Callable

from dlbricks_tui.answers.language import LanguageOptions, language_process, named_model
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.process import JobProcess
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import LANGUAGE, LanguageFailed, LanguageMeasured
from dlbricks_tui.wording.jobs import language_line


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


class LanguageMeasuring(FollowedProcess):
    """A language model that is measured."""

    def __init__(self, process: JobProcess) -> None:
        super().__init__(process)
        # The last message; None until the process has written one.
        self._last: Event | None = None

    @classmethod
    def new(
        cls, model: NamedModel | str, options: LanguageOptions, data: DataFolder, *, end_to_end: bool
    ) -> LanguageMeasuring:
        """Return a measurement that starts when it is followed; raise a UserError if the model cannot be measured."""
        return cls(language_process([named_model(model)], options, data, end_to_end=end_to_end))

    @classmethod
    def begun(cls, data: DataFolder) -> LanguageMeasuring | None:
        """Return the newest measurement that was begun before, and that nobody has followed to its end."""
        found = LANGUAGE.last_unseen(data)
        return None if found is None else cls(JobProcess.started_before(LANGUAGE, found, data))

    @property
    def progress(self) -> str:
        if self.cancelled:
            return "cancelling"
        return "the measurement starts" if self._last is None else language_line(self._last)

    @property
    def has_result(self) -> bool:
        return isinstance(self._last, LanguageMeasured)

    def take(self, message: Event) -> None:
        if language_line(message):
            self._last = message
        if isinstance(message, LanguageFailed):
            self.failure = message.line
