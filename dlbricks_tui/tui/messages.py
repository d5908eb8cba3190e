"""Messages of the application and of runs to the screens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.api.followed_runs import ReplayChange
    from dlbricks_tui.api.open_models import ComparableRow


@dataclass
class RunEndSeen(Message):
    """The user has seen the end of this run."""

    run: str


class RunStateNeeded(Message):
    """A screen has come to the front and needs the state of the run."""


@dataclass
class RunBegun(Message):
    """Follow this run from now on."""

    run: str


@dataclass
class JobWanted(Message):
    """Show a run or a fleet run on its screen, or replay a run there from its beginning."""

    run: str
    kind: str
    replayed: bool = False


@dataclass
class ReplayChanged(Message):
    """The user changes the pace of the replay, or stops it."""

    change: ReplayChange


class ResultsStored(Message):
    """The followed run has stored results."""


class NewResults(Message):
    """New results, or new settings, that a screen has to show."""


@dataclass
class Failed(Message):
    """Work in a thread has failed; an error that is no UserError is a defect of the program."""

    error: BaseException


@dataclass
class ComparisonWanted(Message):
    """The user wants to see how two rows differ."""

    rows: Sequence[ComparableRow]
