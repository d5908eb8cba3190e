"""The settings in view: how models are cut and composed, and by whose measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.bricks.ordering import Order
from dlbricks_tui.models.graph import Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.store.records import Runtime, System

MOST_LAYERS = 999
MOST_WORKERS = 64

Value = TypeVar("Value")
Number = TypeVar("Number", bound=float)


@dataclass(frozen=True, slots=True)
class Choices:
    """What all panels go by; a system or runtime that is None is this host's own."""

    granularity: int = 1
    level: Level = Level.FUSED
    cut: Cut = Cut.CHAIN
    order: Order = Order.BRANCH
    system: str | None = None
    runtime: str | None = None
    workers: int = 2

    @property
    def cutting(self) -> Cutting:
        """How a model is cut."""
        return Cutting(self.granularity, self.cut, self.order)

    def with_granularity(self, granularity: int) -> Choices:
        """The same at another granularity, as far as there is such a one."""
        return replace(self, granularity=min(max(granularity, 1), MOST_LAYERS))

    def with_workers(self, workers: int) -> Choices:
        """The same for another number of workers, as far as there can be so many."""
        return replace(self, workers=min(max(workers, 1), MOST_WORKERS))

    def with_next_level(self) -> Choices:
        """The same at the other level."""
        return replace(self, level=next_of(tuple(Level), self.level, 1))

    def with_next_cut(self) -> Choices:
        """The same with the next of the cuts."""
        return replace(self, cut=next_of(tuple(Cut), self.cut, 1))


def chosen_by(config: Config) -> Choices:
    """What the settings have a person begin with."""
    by_default = Choices()
    return Choices(
        granularity=config.granularity,
        cut=Cut(config.cut),
        order=Order(config.order),
        workers=by_default.workers if config.workers is None else config.workers,
    )


@dataclass(frozen=True, slots=True)
class Available:
    """Whose measurements there are to choose from."""

    host: str
    systems: tuple[System, ...]
    runtimes: tuple[Runtime, ...]
    results: int


def among(numbers: Iterable[Number], own: Number | None) -> tuple[Number, ...]:
    """The numbers to choose from in their order, one of the person's own in its place between them."""
    return tuple(sorted({*numbers, *(() if own is None else (own,))}))


def next_of(values: tuple[Value, ...], value: Value, step: int) -> Value:
    """The value that stands so many places further, around the corner; the first one for a value that is none."""
    return values[(values.index(value) + step) % len(values)] if value in values else values[0]
