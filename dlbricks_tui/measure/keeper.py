"""What a method needs from the run that it measures for: a place for results, and a word when to stop."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from dlbricks_tui.measure.jobs import Entry, Target
from dlbricks_tui.measure.results import Occurrence
from dlbricks_tui.measure.stopping import Series
from dlbricks_tui.store.records import Facts, Statistics


class Checkpoints(Protocol):
    """Where measuring may be stopped or paused."""

    @property
    def seconds_left(self) -> float | None:
        """Seconds left of the time budget; None without one."""

    def checkpoint(self) -> None:
        """Raise `Stopped` if measuring is to end here; return later if it is paused."""


class Keeper(Protocol):
    """Takes what a method finds out."""

    def loaded(self, entry: Entry, first_run_seconds: float, earlier_ms: Sequence[float]) -> None:
        """A program runs; samples that were taken of it earlier count."""

    def keep(self, finished: Sequence[tuple[Entry, Series]], noise: Facts) -> None:
        """Programs were timed often enough."""

    def keep_unfinished(self, stopped: Sequence[tuple[Entry, Series]], noise: Facts) -> None:
        """The run stops before programs were timed often enough."""

    def take_back(self, entries: Sequence[Entry]) -> None:
        """Programs that were kept are timed once more."""

    def fail(self, entry: Entry, reason: str, message: str) -> None:
        """A program cannot be measured."""

    def tell_estimates(self, provisional: Callable[[], Mapping[Target, Statistics]]) -> None:
        """Tell how estimates stand, with provisional statistics of unfinished bricks."""

    def save_counts(self) -> None:
        """Note in the run's state how many programs are done."""


class PlaceKeeper(Keeper, Protocol):
    """Takes results of bricks that were timed in several places."""

    def keep(self, finished: Sequence[tuple[Entry, Series]], noise: Facts, *, again: bool = False) -> None:
        """Programs were timed often enough; `again` where they were kept before and have more samples now."""

    def keep_occurrences(
        self, found: Mapping[Entry, Sequence[Occurrence]], wide: Collection[Entry], noise: Facts, *, finished: bool
    ) -> None:
        """Bricks were timed in all of their places, often enough unless the run stops before.

        The latencies of `wide` ones are not well known, although they had as many samples as they get.
        """
