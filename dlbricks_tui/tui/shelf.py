"""The models at hand, and the shapes that the person has given for some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.opened import Wish, id_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlbricks_tui.models.graph import Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.opened import ModelId


class Shelf:
    """The models of the library."""

    def __init__(self) -> None:
        self._library: tuple[ModelSource, ...] = ()
        self._shapes: dict[ModelId, Mapping[str, Shape]] = {}

    @property
    def sources(self) -> tuple[ModelSource, ...]:
        """All models."""
        return self._library

    @property
    def shapes(self) -> Mapping[ModelId, Mapping[str, Shape]]:
        """The shapes that were given."""
        return self._shapes

    def fill(self, library: tuple[ModelSource, ...]) -> None:
        """Takes the library as it is now."""
        self._library = library

    def give_shapes(self, source: ModelSource, shapes: Mapping[str, Shape]) -> None:
        """Remembers the shapes of a model's inputs."""
        self._shapes[id_of(source)] = shapes

    def shapes_of(self, source: ModelSource) -> Mapping[str, Shape]:
        """The shapes of a model's inputs, as far as anybody has said them."""
        return {**source.inputs, **self._shapes.get(id_of(source), {})}

    def called(self, name: str) -> ModelSource | None:
        """The model of that name."""
        return next((source for source in self.sources if source.name == name), None)

    def wish(self, source: ModelSource, choices: Choices) -> Wish:
        """The wish for a model, by the settings in view."""
        return Wish(source, choices.level, choices.cutting, self._shapes.get(id_of(source), {}))

    def wishes(self, choices: Choices) -> list[Wish]:
        """The wish for each of them."""
        return [self.wish(source, choices) for source in self.sources]
