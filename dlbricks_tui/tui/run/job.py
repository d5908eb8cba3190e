"""The box of a job that has no screen of its own."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from dlbricks_tui.answers.jobs import shown_kind
from dlbricks_tui.documents.lines import BLANK, Line, Span, line
from dlbricks_tui.tui.dialogs.dialog import TextDialog
from dlbricks_tui.tui.run import actions
from dlbricks_tui.tui.run.words import STATE_STYLES
from dlbricks_tui.tui.widgets.text import TextView
from dlbricks_tui.wording.jobs import unreadable_in_words
from dlbricks_tui.wording.numbers import ago, capitalised, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.jobs.folder import JobFolder

_MOST_LINES = 8
_SECONDS_BETWEEN_LOOKS = 0.5


class JobScreen(TextDialog[None]):
    """Shows how far a job is, and ends it; the job goes on when the box is closed."""

    scope = actions.JOB
    ABOUT = "The job goes on when you close the box, and when you quit. `dlbricks jobs` lists it, too."

    def __init__(self, job: JobFolder) -> None:
        super().__init__()
        self._job = job
        self._state = job.state()
        shown = shown_kind(self._state.kind)
        self._reader, self._line_of = shown.kind.reader(job), shown.words_for(job)
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)

    @property
    def heading(self) -> str:
        models = f" of {names_of(self._state.models)}" if self._state.models else ""
        return capitalised(f"{self._state.kind.value}{models}")

    def on_mount(self) -> None:
        self.set_interval(_SECONDS_BETWEEN_LOOKS, self._look)
        self._look()

    def _look(self) -> None:
        # Before reading the events, so that the last ones are read.
        state = self._job.state()
        new = self._reader.new()
        self._lines.extend(it for it in map(self._line_of, new) if it)
        if new or state != self._state:
            self._state = state
            view = self.query_one(TextView)
            view.remake()
            view.refresh(layout=True)
            self.refresh_bindings()

    def paragraphs(self) -> Iterable[Line]:
        state = self._state
        words = f": {state.message}" if state.message else ""
        yield line(
            Span(state.state.value, STATE_STYLES.get(state.state, "text")),
            words,
            Span(f", started {ago(state.started)}", "muted"),
        )
        yield BLANK
        for each in self._lines or ("It has told nothing yet.",):
            yield line(each)
        if unread := unreadable_in_words(self._reader.unreadable):
            yield line(Span(unread, "warn"))

    def action_cancel(self) -> None:
        self.run_in_thread(
            self._job.cancel, "cancel", lambda _: self.notify("The job ends; what it has stored is kept.")
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._state.active if action == "cancel" else super().check_action(action, parameters)
