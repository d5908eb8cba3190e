"""What threads tell the screens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlbricks_tui.estimate.knowledge import Pair
    from dlbricks_tui.models.graph import Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.choices import Available, Choices
    from dlbricks_tui.tui.elsewhere import Elsewhere
    from dlbricks_tui.tui.live.snapshot import RunSnapshot
    from dlbricks_tui.tui.opened import Opened, Wish
    from dlbricks_tui.tui.widgets.details.subject import Measurements
    from dlbricks_tui.tui.widgets.estimate.view import EstimateView
    from dlbricks_tui.tui.widgets.models.entries import Standing
    from dlbricks_tui.tui.widgets.tree.tally import Tallies


class LibraryListed(Message):
    """The models of the library."""

    def __init__(self, sources: tuple[ModelSource, ...]) -> None:
        super().__init__()
        self.sources = sources


class ModelAdded(Message):
    """A file that the user named has joined the library."""

    def __init__(self, source: ModelSource) -> None:
        super().__init__()
        self.source = source


class ModelRemoved(Message):
    """A model has left the library."""

    def __init__(self, source: ModelSource) -> None:
        super().__init__()
        self.source = source


class ModelOpened(Message):
    """A model is read and taken apart."""

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self.opened = opened


class ModelRefused(Message):
    """A model cannot be had as wished; `inputs` are those whose shapes would help, with examples of such.

    `next_step` says what to do, with the names of actions in place of keys.
    """

    def __init__(self, wish: Wish, reason: str, inputs: Mapping[str, Shape] | None = None, next_step: str = "") -> None:
        super().__init__()
        self.wish = wish
        self.reason = reason
        self.inputs = inputs or {}
        self.next_step = next_step


class ModelJudged(Message):
    """What the store knows of the open model."""

    def __init__(self, opened: Opened, choices: Choices, view: EstimateView, tallies: Tallies) -> None:
        super().__init__()
        self.opened = opened
        self.choices = choices
        self.view = view
        self.tallies = tallies


class ModelGlanced(Message):
    """What the store knows of a model of the library, in passing."""

    def __init__(self, source: ModelSource, choices: Choices, standing: Standing) -> None:
        super().__init__()
        self.source = source
        self.choices = choices
        self.standing = standing


class BrickMeasured(Message):
    """What the store holds of a brick in a context."""

    def __init__(self, pair: Pair, measured: Measurements | None) -> None:
        super().__init__()
        self.pair = pair
        self.measured = measured


class BricksIndexed(Message):
    """All models that can be had at once were looked through for their bricks."""

    def __init__(self, elsewhere: Elsewhere) -> None:
        super().__init__()
        self.elsewhere = elsewhere


class ChoicesAvailable(Message):
    """Whose measurements there are to choose from."""

    def __init__(self, available: Available) -> None:
        super().__init__()
        self.available = available


class RunSeen(Message):
    """How the run that is followed stands now."""

    def __init__(self, run: RunSnapshot) -> None:
        super().__init__()
        self.run = run


class RunWanted(Message):
    """A screen has come to the front and wants to know how the run stands."""


class RunBegun(Message):
    """A run is to be followed from now on."""

    def __init__(self, run: str) -> None:
        super().__init__()
        self.run = run


class ResultsStored(Message):
    """The run that is followed has stored results."""


class ResultsGrew(Message):
    """Results were stored since anybody looked."""


class Failed(Message):
    """Something that was asked for ended in an error; one that is no UserError is a fault of ours."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
