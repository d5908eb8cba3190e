"""The base of screens that ask from threads."""

from collections.abc import Callable
from typing import Generic, TypeVar

from textual.screen import Screen
from textual.worker import Worker, WorkerState

from dlbricks_tui.tui.messages import Failed

Result = TypeVar("Result")


class AskingScreen(Screen[Result], Generic[Result], inherit_bindings=False):
    """Runs what takes time in threads; what goes wrong there is told and never lost."""

    def ask(self, work: Callable[[], None], group: str) -> None:
        """Starts the work, in place of older work of its group; it reports by `post_message`."""
        self.run_worker(work, group=group, exclusive=True, thread=True, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            self.post_message(Failed(error))
