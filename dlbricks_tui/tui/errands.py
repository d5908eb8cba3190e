"""What threads do for the workbench: each errand asks the session and posts what it has found."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.errors import FusionRefusedError, MissingShapeError
from dlbricks_tui.tui.elsewhere import Elsewhere
from dlbricks_tui.tui.messages import (
    BrickMeasured,
    BricksIndexed,
    ChoicesAvailable,
    LibraryListed,
    ModelAdded,
    ModelGlanced,
    ModelJudged,
    ModelOpened,
    ModelRefused,
    ModelRemoved,
)
from dlbricks_tui.tui.widgets.models.entries import standing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from textual.message import Message

    from dlbricks_tui.estimate.knowledge import Pair
    from dlbricks_tui.estimate.system_estimate import Way
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.elsewhere import HowCut
    from dlbricks_tui.tui.opened import AskedShape, Opened, Wish
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.widgets.models.entries import Standing

# Who walks through the settings with a held key does not have all models looked through for each of them.
SETTLED_SECONDS = 0.15
# Leaves the interpreter to whoever presses a key while all models are looked through.
BREATH_SECONDS = 0.02
_SHOW_AS_WRITTEN = "Press {workbench.other_level} for layers as written."


class Errands:
    """For one screen, which hears of everything by messages."""

    def __init__(self, session: Session, post: Callable[[Message], object]) -> None:
        self._session = session
        self._post = post

    def list_models(self) -> None:
        """Finds all models of the library."""
        self._post(LibraryListed(self._session.opener.library.sources()))

    def add_folder(self, folder: Path) -> None:
        """Adds a folder to the library."""
        self._session.opener.library.add_folder(folder)
        self.list_models()

    def add_model(self, path: Path) -> None:
        """Adds a file to the library."""
        source = self._session.opener.add_model(path)
        self.list_models()
        self._post(ModelAdded(source))

    def remove_model(self, source: ModelSource) -> None:
        """Takes a model out of the library; its file stays."""
        self._session.opener.library.remove(source.path)
        self.list_models()
        self._post(ModelRemoved(source))

    def list_choices(self) -> None:
        """Finds whose measurements there are by now."""
        self._session.judge.refresh()
        self._post(ChoicesAvailable(self._session.judge.available()))

    def open(self, wish: Wish) -> None:
        """Reads a model and takes it apart."""
        try:
            self._post(ModelOpened(self._session.opener.open(wish)))
        except MissingShapeError as error:
            self._post(ModelRefused(wish, str(error), error.examples))
        except FusionRefusedError as error:
            self._post(ModelRefused(wish, str(error), next_step=_SHOW_AS_WRITTEN))
        except UserError as error:
            self._post(ModelRefused(wish, str(error)))

    def read_inputs(self, wish: Wish) -> Mapping[str, AskedShape]:
        """Return the inputs of a model with what is known of their shapes."""
        return self._session.opener.inputs(wish)

    def judge(self, opened: Opened, choices: Choices) -> None:
        """Estimates the model that is open."""
        from dlbricks_tui.tui.widgets.tree.tally import Tallies

        view = self._session.judge.view(opened.decomposition, choices)
        self._post(ModelJudged(opened, choices, view, Tallies(opened, view.judged.estimate)))

    def read_measurements(self, pair: Pair, way: Way) -> None:
        """Reads the samples of a brick."""
        self._post(BrickMeasured(pair, self._session.judge.measurements(pair, way)))

    def index_bricks(self, wishes: Iterable[Wish], how: HowCut) -> None:
        """Looks through the library for which bricks stand where."""
        worker = get_current_worker()
        time.sleep(SETTLED_SECONDS)
        elsewhere = Elsewhere(how)
        for wish in wishes:
            if worker.is_cancelled:
                return
            decomposition = self._session.opener.glance(wish)
            if decomposition is not None:
                elsewhere.add(decomposition)
            time.sleep(BREATH_SECONDS)
        self._post(BricksIndexed(elsewhere))

    def judge_anew(self, opened: Opened, choices: Choices) -> None:
        """Estimates the model that is open with what was stored since."""
        self._session.judge.refresh()
        self.judge(opened, choices)

    def glance_at(self, wishes: Iterable[Wish], choices: Choices) -> None:
        """Estimates many models as far as that goes without the framework; those kept from before come first."""
        worker, kept = get_current_worker(), self._session.standings
        time.sleep(SETTLED_SECONDS)
        kept.begin(self._session.judge.state(), *self._session.opener.frameworks)
        unknown: list[Wish] = []
        for wish in wishes:
            standing = kept.of(wish, choices)
            if standing is None:
                unknown.append(wish)
            else:
                self._tell_standing(wish, choices, standing)
        for wish in unknown:
            if worker.is_cancelled:
                return
            decomposition = self._session.opener.glance(wish)
            if decomposition is not None:
                standing = standing_of(self._session.judge.judge(decomposition, choices))
                kept.keep(wish, choices, standing)
                self._tell_standing(wish, choices, standing)
            time.sleep(BREATH_SECONDS)
        if unknown:
            kept.save()

    def _tell_standing(self, wish: Wish, choices: Choices, standing: Standing) -> None:
        if standing.sequential_ms is not None:
            self._post(ModelGlanced(wish.source, choices, standing))
