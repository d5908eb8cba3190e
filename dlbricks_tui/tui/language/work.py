"""Work of the screen of language models that takes time, and the process that measures them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dlbricks_tui.answers.language import asking
from dlbricks_tui.errors import UserError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.process import JobProcess
from dlbricks_tui.language import opening
from dlbricks_tui.language.orders import LANGUAGE, LanguageFailed, LanguageMeasured
from dlbricks_tui.tui.followed import FollowedProcess
from dlbricks_tui.wording.jobs import language_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.answers.language.results import LanguageAnswer
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.language.opening import NamedModel
    from dlbricks_tui.tui.language.panels import LanguageSettings

    Answers = tuple[LanguageAnswer, ...]


def list_models(opened: Sequence[NamedModel], settings: LanguageSettings, data: DataFolder) -> Answers | str:
    """Return the answers of the models that the user has opened, and of the library; or why there are none."""
    try:
        library = asking.library_answers(settings, data)
        return (*asking.stored_answers(opened, settings, data), *library) if opened else library
    except UserError as error:
        return str(error)


def read_details(model: NamedModel | str, settings: LanguageSettings, data: DataFolder) -> Iterator[Answers]:
    """Yield the answer of a model with its curves, then the same before those of other executions."""
    # The list of the models tells the same errors.
    with suppress(UserError):
        named = named_model(model)
        (answer,) = asking.stored_answers([named], settings, data)
        yield (answer,)
        yield (answer, *asking.stored_answers([named], settings.alternatives, data))


def runtimes_here(data: DataFolder) -> tuple[str, ...]:
    with suppress(UserError):
        return asking.runtimes_here(data)
    return ()


def named_model(model: NamedModel | str) -> NamedModel:
    """Return a model, or that of a path or a name; raise a UserError where there is none."""
    return opening.open_language_model(model) if isinstance(model, str) else model


class LanguageMeasuring(FollowedProcess):
    """A language model that is measured."""

    def __init__(self, process: JobProcess) -> None:
        super().__init__(process)
        # The last message; None until the process has written one.
        self._last: Event | None = None

    @classmethod
    def new(cls, model: NamedModel | str, settings: LanguageSettings, data: DataFolder) -> LanguageMeasuring | str:
        """Return a measurement that starts when it is followed; or why the model cannot be measured."""
        try:
            return cls(asking.language_process([named_model(model)], settings, data, end_to_end=settings.end_to_end))
        except UserError as error:
            return str(error)

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
