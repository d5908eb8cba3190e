"""Models of several that cannot be loaded: the others are shown without them, and these are named."""

from collections.abc import Callable

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.errors import FrameworkMissingError
from dlbricks_tui.runtime.traits import Format

# What concerns one model, or those of one format.
UNLOADABLE = (ModelError, FrameworkMissingError)
_MOST_NAMED = 5


class LeftOut:
    """Which models cannot be loaded, and why."""

    def __init__(self, worded: Callable[[UserError], str] = str) -> None:
        """`worded` says what is wrong with a model, and what to do, in the words of the door."""
        self._worded = worded
        self._refusals: list[ModelError] = []
        self._missing: dict[Format, tuple[FrameworkMissingError, list[str]]] = {}
        self.first: ModelError | FrameworkMissingError | None = None

    def add(self, source: ModelSource, refusal: ModelError | FrameworkMissingError) -> None:
        """One more."""
        self.first = self.first or refusal
        if isinstance(refusal, ModelError):
            self._refusals.append(refusal)
        else:
            self._missing.setdefault(source.format, (refusal, []))[1].append(source.name)

    @property
    def lines(self) -> list[str]:
        """One for each model, and one for all those that lack the same framework."""
        return [self._worded(refusal) for refusal in self._refusals] + [
            f"{_listed(names)}: {missing}" for missing, names in self._missing.values()
        ]


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} others" if more > 0 else "")
