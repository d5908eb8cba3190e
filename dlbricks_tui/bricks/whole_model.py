"""A whole model as one brick: by its key, end-to-end measurements are known whatever the model is called."""

from dlbricks_tui.bricks.identity import Brick, brick_of
from dlbricks_tui.models.graph import LayerGraph


def whole_model(graph: LayerGraph) -> Brick:
    """All layers of a model as one brick; of equal models the same."""
    return brick_of(graph, range(len(graph.layers)))
