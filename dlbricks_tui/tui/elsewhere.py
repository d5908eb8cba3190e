"""Which models of the library have a brick, as far as they can be had without the framework."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from dlbricks_tui.bricks.decomposition import Decomposition


class Elsewhere:
    """Filled model by model, and asked by brick."""

    def __init__(self) -> None:
        self._models: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def add(self, decomposition: Decomposition) -> None:
        """Takes note of a model's bricks."""
        for brick in decomposition.bricks:
            self._models[brick][decomposition.graph.name] = None

    def models_with(self, brick: str, but: Iterable[str] = ()) -> Sequence[str]:
        """The names of the other models that have it."""
        left_out = set(but)
        return [name for name in self._models.get(brick, ()) if name not in left_out]
