"""What threads do for the screen of the corpus: each errand asks the session and posts what it has found."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.message import Message
from textual.worker import get_current_worker

from dlbricks_tui.bricks.corpus import compare, model_bricks
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.estimate.accuracy import accuracy, by_group
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.store.conditions import where
from dlbricks_tui.store.queries import combinations, runs, select
from dlbricks_tui.tui import errands
from dlbricks_tui.tui.screens.corpus.surveyed import Judged, Surveyed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dlbricks_tui.bricks.corpus import ModelBricks
    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.tui.opened import Wish
    from dlbricks_tui.tui.screens.corpus.surveyed import HowSurveyed
    from dlbricks_tui.tui.session import Session

# Often enough to see that it goes on, seldom enough that comparing and drawing take little of the time.
SECONDS_BETWEEN_TELLING = 0.3
# Lets in whoever presses a key meanwhile.
_BREATH_SECONDS = 0.002


class Reading(Message):
    """So many of the models are read, and compared so far."""

    def __init__(self, how: HowSurveyed, done: int, total: int, surveyed: Surveyed) -> None:
        super().__init__()
        self.how = how
        self.done = done
        self.total = total
        self.surveyed = surveyed


class Compared(Message):
    """The models are read and compared."""

    def __init__(self, how: HowSurveyed, surveyed: Surveyed) -> None:
        super().__init__()
        self.how = how
        self.surveyed = surveyed


class GranularitiesJudged(Message):
    """How well models were estimated, by granularity."""

    def __init__(self, judged: tuple[Judged, ...]) -> None:
        super().__init__()
        self.judged = judged


class CorpusErrands:
    """For one screen, which hears of everything by messages."""

    def __init__(self, session: Session, post: Callable[[Message], object]) -> None:
        self._session = session
        self._post = post

    def survey(self, wishes: Sequence[Wish], how: HowSurveyed) -> None:
        """Reads models and compares them; those never read before only if that is wanted."""
        worker = get_current_worker()
        found: list[ModelBricks] = []
        refused: list[str] = []
        told = time.monotonic()
        for done, wish in enumerate(wishes, 1):
            if worker.is_cancelled:
                return
            try:
                decomposition = self._decomposed(wish, read=how.read_all)
            except UNLOADABLE as error:
                refused.append(f"{wish.source.name}: {error}")
                continue
            if decomposition is not None:
                found.append(replace(model_bricks(decomposition), name=wish.source.name))
            if time.monotonic() - told > SECONDS_BETWEEN_TELLING:
                self._post(Reading(how, done, len(wishes), _surveyed(found, refused, done)))
                # Comparing takes longer the more models there are: that must not delay the reading.
                told = time.monotonic()
            time.sleep(_BREATH_SECONDS)
        self._post(Compared(how, _surveyed(found, refused, len(wishes))))

    def judge_granularities(self, wishes: Sequence[Wish]) -> None:
        """Judges the estimates of models that were measured end to end, at each granularity that was run."""
        worker = get_current_worker()
        with self._session.store.held() as store:
            whole = set(select(store.generation, where(of="model")).values("name"))
            ways = {(run.granularity, run.level) for run in runs(store.generation).values()}
            # What was imported was never run here; it is of single layers.
            ways |= {(1, it.level) for it in combinations(store.generation) if it.pairs}
        known = [wish for wish in wishes if wish.source.name in whole]
        estimates: list[SystemEstimate] = []
        for granularity, level in sorted(ways):
            for wish in known:
                if worker.is_cancelled:
                    return
                estimates += self._estimates(wish, granularity, level)
                time.sleep(errands.BREATH_SECONDS)
        groups = by_group(estimates)
        judged = [Judged(group, found) for group, each in groups.items() if (found := accuracy(each)) is not None]
        judged.sort(key=lambda it: (it.group.way, it.group.granularity, it.group.cut.value))
        self._post(GranularitiesJudged(tuple(judged)))

    def _estimates(self, wish: Wish, granularity: int, level: Level) -> Iterator[SystemEstimate]:
        cutting = Cutting(granularity, wish.cutting.cut, wish.cutting.order)
        decomposition = self._session.opener.glance(replace(wish, level=level, cutting=cutting))
        if decomposition is not None:
            named = replace(decomposition, graph=replace(decomposition.graph, name=wish.source.name))
            with self._session.store.held() as store:
                yield from Inquiry(store.generation, named).everywhere()

    def _decomposed(self, wish: Wish, *, read: bool) -> Decomposition | None:
        return self._session.opener.decomposed(wish) if read else self._session.opener.glance(wish)


def _surveyed(found: Sequence[ModelBricks], refused: Sequence[str], looked_at: int) -> Surveyed:
    return Surveyed(compare(found), looked_at - len(found) - len(refused), tuple(refused))
