"""The base of screens that ask from threads."""

from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from textual.binding import BindingsMap
from textual.dom import DOMNode
from textual.keys import key_to_character
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from dlbricks_tui.tui.messages import Failed

Result = TypeVar("Result")


class AskingScreen(Screen[Result], Generic[Result], inherit_bindings=False):
    """Runs what takes time in threads; what goes wrong there is told and never lost."""

    # Whether it wants to know, by `ResultsGrew`, that there are new results.
    HEARS_OF_RESULTS: ClassVar[bool] = False

    @property
    def _binding_chain(self) -> list[tuple[DOMNode, BindingsMap]]:
        """As Textual has it, but a field has its letters even where one of them is a key by the person's keymap.

        Textual takes from the outer places what a field wants for itself, and only then puts the keymap over them.
        """
        chain = super()._binding_chain
        for place, (_, found) in enumerate(chain):
            for key in list(found.key_to_bindings):
                if any(inner.check_consume_key(key, key_to_character(key)) for inner, _ in chain[:place]):
                    del found.key_to_bindings[key]
        return chain

    def ask(self, work: Callable[[], None], group: str) -> None:
        """Starts the work, in place of older work of its group; it reports by `post_message`."""
        self.run_worker(work, group=group, exclusive=True, thread=True, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            self.post_message(Failed(error))
