"""A whole model as one brick: by its key, end-to-end measurements are known whatever the model is called."""

from collections.abc import Mapping
from dataclasses import replace

from dlbricks_tui.bricks.identity import Brick, brick_of
from dlbricks_tui.models.graph import LayerGraph, Level


def whole_model(graph: LayerGraph) -> Brick:
    """All layers of a model as one brick; of equal models the same."""
    return brick_of(graph, range(len(graph.layers)))


def as_optimised(graph: LayerGraph) -> LayerGraph:
    """A model of whose fused layers nothing is known, as it is timed end to end when the runtime optimises its file.

    Its layers stay as written; only its level, and so its key, tells it from the model run as written.
    """
    return replace(graph, level=Level.FUSED)


def end_to_end_keys(graph: LayerGraph) -> Mapping[Level, str]:
    """The keys under which a model may have been timed end to end, by the level at which it was timed.

    A model estimated from its written layers is also known by how long the runtime takes that optimises its file.
    """
    keys = {graph.level: whole_model(graph).key}
    if graph.level is Level.WRITTEN:
        keys[Level.FUSED] = whole_model(as_optimised(graph)).key
    return keys
