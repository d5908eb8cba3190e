"""The settings in view: how models are cut and composed, and which measurements count."""

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
    """The settings of all panels; `system` and `runtime` None mean this host and its best-covered runtime."""

    granularity: int = 1
    level: Level = Level.FUSED
    cut: Cut = Cut.CHAIN
    order: Order = Order.BRANCH
    system: str | None = None
    runtime: str | None = None
    workers: int = 2

    @property
    def cutting(self) -> Cutting:
        return Cutting(self.granularity, self.cut, self.order)

    @property
    def cut_at(self) -> tuple[Level, Cutting]:
        """The choices on which the bricks of a model depend."""
        return self.level, self.cutting

    def with_granularity(self, granularity: int) -> Choices:
        """Return the choices with another granularity, limited to the valid range."""
        return replace(self, granularity=min(max(granularity, 1), MOST_LAYERS))

    def with_workers(self, workers: int) -> Choices:
        """Return the choices with another number of workers, limited to the valid range."""
        return replace(self, workers=min(max(workers, 1), MOST_WORKERS))

    def with_next_level(self) -> Choices:
        """Return the choices with the other level."""
        return replace(self, level=next_of(tuple(Level), self.level, 1))

    def with_next_cut(self) -> Choices:
        """Return the choices with the next cut."""
        return replace(self, cut=next_of(tuple(Cut), self.cut, 1))


def choices_from(config: Config) -> Choices:
    """Return the choices that the config file sets."""
    by_default = Choices()
    return Choices(
        granularity=config.granularity,
        cut=Cut(config.cut),
        order=Order(config.order),
        workers=by_default.workers if config.workers is None else config.workers,
    )


@dataclass(frozen=True, slots=True)
class Available:
    """The systems and runtimes that have measurements."""

    host: str
    systems: tuple[System, ...]
    runtimes: tuple[Runtime, ...]
    results: int


def with_own(numbers: Iterable[Number], own: Number | None) -> tuple[Number, ...]:
    """Return the sorted numbers with the user's own among them."""
    return tuple(sorted({*numbers, *(() if own is None else (own,))}))


def next_of(values: tuple[Value, ...], value: Value, step: int) -> Value:
    """Return the value `step` places after this one, cyclically; the first value if this one is not among them."""
    return values[(values.index(value) + step) % len(values)] if value in values else values[0]
