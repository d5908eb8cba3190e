"""Messages of the application and of runs to the screens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from dlbricks_tui.tui.run.snapshot import RunSnapshot


class RunSeen(Message):
    """The state of the followed run."""

    def __init__(self, run: RunSnapshot) -> None:
        super().__init__()
        self.run = run


class RunStateNeeded(Message):
    """A screen has come to the front and needs the state of the run."""


class RunBegun(Message):
    """Follow this run from now on."""

    def __init__(self, run: str) -> None:
        super().__init__()
        self.run = run


class ResultsStored(Message):
    """The followed run has stored results."""


class NewResults(Message):
    """There are new results in the store."""


class Failed(Message):
    """Work in a thread has failed; an error that is no UserError is a defect of the program."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
