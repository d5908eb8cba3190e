"""Written operators that were one fused layer become one again, by what the runtime at hand makes of them."""

from dataclasses import replace

from dlbricks_tui.bricks.excerpts import Excerpt
from dlbricks_tui.models.graph import Feed, GraphInput, Layer, LayerGraph, Level, type_of
from dlbricks_tui.models.mxnet.layer_graph import FusedFrom, InferredFile, build_graph
from dlbricks_tui.models.mxnet.loading import Framework
from dlbricks_tui.models.mxnet.symbol_file import parse_symbol, unique_name
from dlbricks_tui.models.mxnet.variables import Role
from dlbricks_tui.share.errors import CannotTravelError
from dlbricks_tui.share.packing import DATA, packed


class Fuser:
    """Fuses layers one by one, equal ones once: side by side they would fuse with each other."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._known: dict[bytes, LayerGraph] = {}

    def fused(self, graph: LayerGraph) -> LayerGraph:
        """The graph with a fused layer in the place of each written one."""
        layers: list[Layer] = []
        # What others read of a layer may have another number once it is fused.
        moved = {Feed(None, number): Feed(None, number) for number in range(len(graph.inputs))}
        for layer in graph.layers:
            if not layer.operators:
                found, results = layer, list(range(len(layer.results)))
            else:
                alone = self._alone(graph, layer)
                (found,) = alone.layers
                # An input of the layer by itself is called after its number among those of the layer.
                numbers = [int(each.name.removeprefix(DATA)) for each in alone.inputs]
                sources = [layer.feeds[numbers[feed.output]] for feed in found.feeds]
                feeds = tuple([moved[it] for it in sources])
                # Each layer is fused by itself: which arrays it shares with others is not known any more.
                found = replace(found, index=layer.index, name=layer.name, feeds=feeds, arrays=())
                results = [head.output for head in alone.heads]
            layers.append(found)
            moved |= {Feed(layer.index, number): Feed(layer.index, result) for number, result in enumerate(results)}
        heads = tuple([moved[head] for head in graph.heads])
        return LayerGraph(graph.name, Level.FUSED, tuple(layers), graph.inputs, heads)

    def _alone(self, graph: LayerGraph, layer: Layer) -> LayerGraph:
        if layer.times > 1:
            raise CannotTravelError("repeats a fused layer")
        content = packed(Excerpt(_only(graph, layer), 1))
        if content not in self._known:
            self._known[content] = self._fused_alone(content)
        return self._known[content]

    def _fused_alone(self, content: bytes) -> LayerGraph:
        file = parse_symbol(content, "a layer")
        types = self._framework.infer(file.render(), {}).types
        variables = [number for number, node in enumerate(file.nodes) if node.is_variable]
        shapes = {unique_name(number): types[number][0].shape or () for number in variables}
        answer = self._framework.fuse(file.render(), shapes)
        fused = parse_symbol(answer.symbol or "", "a fused layer")
        if not len(fused.nodes) == len(answer.types) == len(answer.parts):
            raise CannotTravelError("was answered for another graph when it was to be fused")
        operators = [node.op for node in fused.nodes if not node.is_variable]
        if len(operators) != 1:
            raise CannotTravelError(f"is {len(operators)} layers here ({', '.join(operators[:4])}), and must be one")
        roles = {}
        for number, node in enumerate(fused.nodes):
            if node.is_variable:
                names = [file.nodes[part].name for part in answer.parts[number]]
                roles[number] = Role.INPUT if any(name.startswith(DATA) for name in names) else Role.WEIGHT
        return build_graph(
            InferredFile(fused, roles, answer.types, answer.unknown, FusedFrom(file, answer.parts)), "a fused layer"
        )


def _only(graph: LayerGraph, layer: Layer) -> LayerGraph:
    """A layer as a graph of its own that puts out all its results."""
    feeds = tuple([Feed(None, number) for number in range(len(layer.feeds))])
    inputs = [GraphInput(f"{DATA}{number}", type_of(graph, feed)) for number, feed in enumerate(layer.feeds)]
    heads = [Feed(0, number) for number in range(len(layer.results))]
    alone = replace(layer, index=0, name="0", feeds=feeds)
    return LayerGraph("", graph.level, (alone,), tuple(inputs), tuple(heads))
