"""Layer graphs in which some layers are operators of another kind."""

import json
from dataclasses import replace

from dlbricks_tui.models.graph import Layer, LayerGraph, Origin, Params, Shape, TensorType, Wire


def with_layer(graph: LayerGraph, layer: Layer) -> LayerGraph:
    """The graph with this layer in its place."""
    return replace(graph, layers=(*graph.layers[: layer.index], layer, *graph.layers[layer.index + 1 :]))


def named(graph: LayerGraph, *ops: str) -> LayerGraph:
    """The graph with other operators in its layers."""
    for layer, op in zip(graph.layers, ops, strict=True):
        graph = with_layer(
            graph, replace(layer, operators=tuple(replace(it, op=op, parts=()) for it in layer.operators))
        )
    return graph


def convolving(
    graph: LayerGraph,
    index: int,
    data: Shape,
    weight: Shape,
    result: Shape,
    op: str = "conv",
    parts: str = "",
    params: Params = (),
) -> LayerGraph:
    """The graph with a convolution of these shapes in the place of a layer; with parts it is a fused one."""
    layer = graph.layers[index]
    more = range(1, len(layer.feeds))
    reads = (Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0), *(Wire(Origin.DATA, number) for number in more))
    found = replace(
        layer.operators[0],
        op="mxnet._sg_mkldnn_conv" if parts else op,
        params=() if parts else params,
        inputs=reads,
        outputs=(TensorType(result),),
        inner=(json.dumps(["data", *([part, params, [], []] for part in parts.split()), [[1, 0]]]),) if parts else (),
        parts=tuple(parts.split()),
    )
    types = (TensorType(data), *(TensorType(result) for _ in more))
    return with_layer(graph, replace(layer, operators=(found,), data=types, weights=(TensorType(weight),)))
