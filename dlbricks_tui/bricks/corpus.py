"""The repetition of layers within and across models (the DLBricks paper, section 2.2)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.models.kinds import Kind, heaviest


@dataclass(frozen=True, slots=True)
class ModelBricks:
    """A model as the brick, the context and the kind of each of its layer sequences, in order."""

    name: str
    bricks: tuple[str, ...]
    contexts: tuple[str, ...]
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """The number of layers of a model and of those that differ; `contexts` counts (brick, context) pairs."""

    name: str
    layers: int
    unique_layers: int
    contexts: int

    @property
    def share(self) -> float:
        """Unique layers over layers, the paper's figure 5; 0 for a model without layers."""
        return self.unique_layers / self.layers if self.layers else 0.0


@dataclass(frozen=True, slots=True)
class RepeatedType:
    """The number of layers of a kind in all models, and of those that occur more than once in their model."""

    kind: Kind
    layers: int
    repeated: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """A comparison of models; the rows and columns of `jaccard` are the models in their order."""

    layers: int
    unique_layers: int
    contexts: int
    models: tuple[Uniqueness, ...]
    repeated_types: tuple[RepeatedType, ...]
    jaccard: tuple[tuple[float, ...], ...]


def model_bricks(decomposition: Decomposition) -> ModelBricks:
    """Return a model as a corpus needs it; a sequence of several layers has the kind of its heaviest one."""
    graph, found = decomposition.graph, decomposition.occurrences
    return ModelBricks(
        graph.name,
        tuple([it.brick.key for it in found]),
        tuple([it.context for it in found]),
        tuple([heaviest(graph.layers[layer].kind for layer in it.sequence.layers) for it in found]),
    )


def compare(models: Sequence[ModelBricks]) -> Corpus:
    """Return the data of the paper's figures 5 (unique layers), 6 (repeated types) and 7 (similarity), and totals."""
    pairs = [frozenset(zip(model.bricks, model.contexts, strict=True)) for model in models]
    sets = [frozenset(model.bricks) for model in models]
    return Corpus(
        layers=sum(len(model.bricks) for model in models),
        unique_layers=len(frozenset().union(*sets)),
        contexts=len(frozenset().union(*pairs)),
        models=tuple(
            Uniqueness(model.name, len(model.bricks), len(bricks), len(contexts))
            for model, bricks, contexts in zip(models, sets, pairs, strict=True)
        ),
        repeated_types=_repeated_types(models),
        # The shared bricks over all bricks; 1 for models without layers.
        jaccard=tuple(
            tuple(len(one & other) / len(one | other) if one | other else 1.0 for other in sets) for one in sets
        ),
    )


def _repeated_types(models: Sequence[ModelBricks]) -> tuple[RepeatedType, ...]:
    """Return all kinds that occur, the most repeated first."""
    layers: Counter[Kind] = Counter()
    repeated: Counter[Kind] = Counter()
    for model in models:
        occurrences = Counter(model.bricks)
        layers.update(model.kinds)
        repeated.update(kind for brick, kind in zip(model.bricks, model.kinds, strict=True) if occurrences[brick] > 1)
    found = [RepeatedType(kind, layers[kind], repeated[kind]) for kind in layers]
    return tuple(sorted(found, key=lambda it: (-it.repeated, -it.layers, it.kind.value)))
