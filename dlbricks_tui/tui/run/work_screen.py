"""The base of all screens of long work: runs, fleet runs, load tests, traces and proofs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.widgets.screens import AnswerScreen, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dlbricks_tui.api.followed_jobs import FollowedJob
    from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen

Job = TypeVar("Job", bound="FollowedJob[Any]")


class WorkScreen(AnswerScreen[Result], Generic[Result, Job]):
    """A screen of work in a process of its own, which goes on when the user leaves and is shown again later."""

    # The word for the work.
    WORK: ClassVar[str] = "The measurement"
    # What is said: that there is such work already, and that it is cancelled.
    UNDER_WAY: ClassVar[str] = ""
    CANCELLED: ClassVar[str] = ""
    # The box that asks before work is cancelled.
    ASKS_TO_CANCEL: ClassVar[type[ConfirmingScreen] | None] = None
    # The work in progress, and why the last one failed.
    job: Job | None = None
    failure = ""

    def controls(self) -> Mapping[str, bool]:
        """Return which of the actions that control the work apply now."""
        return {"cancel": self.job is not None}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.controls().get(action, super().check_action(action, parameters))

    def find_job(self, begun: Callable[[], Job | None]) -> None:
        """Follow the job that was begun before, if there is one."""
        self.run_in_thread(begun, "begun", self.follow)

    def follow(self, job: Job | None) -> None:
        """Follow a job to its end, unless there is one already."""
        if job is not None and self.job is None:
            self.job, self.failure = job, ""
            self.job_changed()
            self.run_worker(self._follow(job), group="job", exit_on_error=False)

    async def _follow(self, job: Job) -> None:
        try:
            await job.follow(self.job_changed)
        finally:
            self.job, self.failure = None, job.failure
            if job.cancelled:
                self.notify(self.CANCELLED.format(job=job))
            self.job_ended(job)

    def job_changed(self) -> None:
        """Show how far the work is."""
        self.head_changed()

    def job_ended(self, job: Job) -> None:
        """Show what the work has found."""

    def says_under_way(self) -> bool:
        """Say it if there is such work already."""
        if self.job is not None:
            cancel = key(f"{self.scope.name}.cancel") if self.scope else ""
            self.notify(f"{self.UNDER_WAY.format(job=self.job)}: {cancel} cancels it.")
        return self.job is not None

    def action_cancel(self) -> None:
        def cancel(_: bool) -> None:
            if self.job is not None:
                self.job.cancel()

        if self.ASKS_TO_CANCEL is None:
            cancel(True)
        else:
            self.ask(self.ASKS_TO_CANCEL(), cancel)

    def action_leave(self) -> None:
        self.leave_with(None)

    @property
    def goes_on(self) -> str:
        """The sentence that is shown when the user leaves the work."""
        return f"{self.WORK} goes on in the background; this screen shows it again."

    def leave_with(self, result: Result | None) -> None:
        if self.job is not None:
            show_message(self.app, self.goes_on)
        self.dismiss(result)
