"""How long tensors are needed: MXNet lets an operator write over what nobody reads any more."""

from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Origin, Wire

# What these put out is the very tensor that they read.
_SAME_TENSOR = frozenset({"identity", "mxnet.BlockGrad"})


def is_needed_after(graph: LayerGraph, feed: Feed, reader: int) -> bool:
    """Whether a tensor must outlive that layer; inputs of the model always must."""
    while feed.layer is not None and _puts_out_what_it_reads(graph.layers[feed.layer]):
        feed = graph.layers[feed.layer].feeds[0]
    # All that the same tensor is known as.
    names = [feed]
    for name in names:
        if name.layer is None or name in graph.heads:
            return True
        for index in graph.successors[name.layer]:
            if name not in graph.layers[index].feeds:
                continue
            if index > reader:
                return True
            if _puts_out_what_it_reads(graph.layers[index]):
                names.append(Feed(index, 0))
    return False


def may_be_overwritten(graph: LayerGraph, layer: Layer, number: int, wire: Wire) -> bool:
    """Whether the operator of that number in a layer is the last to need what it reads."""
    if wire.origin is Origin.WEIGHT or wire in layer.results:
        return False
    if any(wire in operator.inputs for operator in layer.operators[number + 1 :]):
        return False
    return wire.origin is Origin.OPERATOR or not is_needed_after(graph, layer.feeds[wire.number], layer.index)


def _puts_out_what_it_reads(layer: Layer) -> bool:
    return len(layer.operators) == 1 and layer.operators[0].op in _SAME_TENSOR and bool(layer.feeds)
