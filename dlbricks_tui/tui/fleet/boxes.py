"""The boxes of the fleet screen: a hosts file, the settings of a new fleet run, all fleet runs, and a confirmation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import BLANK, Line, line
from dlbricks_tui.settings.fleets import PROBE, QUESTION, Question
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.dialogs.dialog import Box, ConfirmingScreen, SearchedDialog
from dlbricks_tui.tui.dialogs.paths import PathScreen
from dlbricks_tui.tui.fleet import actions
from dlbricks_tui.tui.run.all_runs import RunRows, unreadable_in_words
from dlbricks_tui.tui.widgets.form import FormDialog, FormRow
from dlbricks_tui.wording.numbers import names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from textual.app import ComposeResult

    from dlbricks_tui.jobs.folder import StoredJobs


class HostsFileScreen(PathScreen):
    """Returns the path of a hosts file."""

    HINT = "~/hosts.toml"
    ENDINGS = (".toml",)
    ABOUT = (
        "The path of a hosts file, which names the hosts that are reached over SSH. "
        "docs/guides/many-hosts.md describes it. {path.next} selects one of the names below."
    )

    @property
    def prompt(self) -> str:
        return "Hosts file"


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """The settings of a new fleet run; None is the usual value."""

    question: Question = Question.WHICH_HOST
    probe_seconds: float = 20.0
    runtime: str | None = None
    threads: int | None = None


class StartFleetScreen(FormDialog[FleetSettings]):
    """Returns the settings to start the fleet run with."""

    scope = actions.START
    CSS_PATH = "fleet.tcss"
    ABOUT = (
        "`which-host` measures until the order of the hosts is certain; `everything` measures all bricks on all hosts. "
        "The probe measures the bricks that tell most, before any other. The fleet run is a separate process that "
        "continues if you quit."
    )

    def __init__(self, models: tuple[str, ...], runtimes: tuple[str, ...]) -> None:
        rows = (
            FormRow(setting=QUESTION),
            FormRow(setting=PROBE, label="probe", words=lambda it: f"{it.probe_seconds:g} s"),
            FormRow(setting=RUNTIME, usual="usual", meaning="that measures on all hosts", offered=lambda _: runtimes),
            FormRow(setting=THREADS, usual="usual", meaning="on all hosts", offered=lambda _: (1, 2, 4, 8, 16)),
        )
        super().__init__(rows, FleetSettings())
        self._models = models

    def compose(self) -> ComposeResult:
        with Box(f"Measure {names_of(self._models)} on a fleet", actions.START):
            yield self._rows


class AllFleetsScreen(SearchedDialog[str]):
    """Returns the id of the fleet run to watch."""

    scope = actions.FLEETS
    SEARCH_HINT = "model, state, date or id"
    ABOUT = "All fleet runs, the newest first, including those that were started in other terminals."

    def __init__(self, stored: Callable[[], StoredJobs], resume: Callable[[str], None]) -> None:
        self._list = RunRows("fleet run", "{fleet.start}")
        super().__init__(self._list)
        self._stored = stored
        self._resume = resume

    def compose(self) -> ComposeResult:
        with Box("Fleet runs", actions.FLEETS, classes="-tall"):
            yield self._list
            yield self.search_line

    def on_mount(self) -> None:
        self.run_in_thread(self._stored, "fleets", self._show_fleets)

    def _show_fleets(self, found: StoredJobs) -> None:
        self._list.show(found.states[::-1])
        if found.unreadable:
            self.notify(unreadable_in_words(found), severity="warning", markup=False)

    def show_found(self, words: Sequence[str]) -> None:
        self._list.seek(words)

    def action_show(self) -> None:
        if self._list.selected is not None:
            self.dismiss(self._list.selected.run)

    def action_resume(self) -> None:
        if self._list.selected is not None:
            run = self._list.selected.run
            self.run_in_thread(partial(self._resume, run), "resume", lambda _: self._resumed(run))

    def _resumed(self, run: str) -> None:
        # Without its result: a screen cannot await its own end.
        self.dismiss(run)


class CancelFleetScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    HEADING = "Cancel the fleet run?"
    scope = actions.CANCEL
    ABOUT = "The store keeps all results. You can resume the fleet run later."

    def __init__(self, run: str, models: tuple[str, ...]) -> None:
        super().__init__()
        self._run_id = run
        self._models = models

    def paragraphs(self) -> Iterable[Line]:
        yield line(f"Fleet run {self._run_id} of {names_of(self._models)}.")
        yield BLANK
        yield line("Its hosts end what they measure. Its results are kept, and it can be resumed later.")
