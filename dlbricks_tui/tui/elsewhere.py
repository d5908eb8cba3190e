"""Which models of the library have a brick, as far as they can be had without the framework."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dlbricks_tui.bricks.decomposition import Cutting, Decomposition
    from dlbricks_tui.models.graph import Level


class HowCut(NamedTuple):
    """Only of one level and cutting are the bricks of two models the same."""

    level: Level
    cutting: Cutting


class Elsewhere:
    """Filled model by model, and asked by brick."""

    def __init__(self, how: HowCut) -> None:
        self.how = how
        self._models: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def add(self, decomposition: Decomposition) -> None:
        """Takes note of a model's bricks."""
        for brick in decomposition.bricks:
            self._models[brick][decomposition.graph.name] = None

    def models_with(self, brick: str, but: Iterable[str] = ()) -> Sequence[str]:
        """The names of the other models that have it."""
        left_out = set(but)
        return [name for name in self._models.get(brick, ()) if name not in left_out]
