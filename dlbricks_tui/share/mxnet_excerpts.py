"""Excerpts of MXNet models: a layer and those around it, as a symbol file without names and weights.

Every node of an untrusted file is checked before anything is computed with it. Layers are fused again one by one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cache
from math import prod

from dlbricks_tui.bricks.contexts import feeding_layers
from dlbricks_tui.bricks.identity import outer_feeds
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.composites import LAYER_ATTRIBUTE
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Feed, GraphInput, Layer, LayerGraph, Level, TensorType, type_of
from dlbricks_tui.models.mxnet_file import (
    Framework,
    SymbolFile,
    SymbolNode,
    parse_symbol,
    unique_name,
)
from dlbricks_tui.models.mxnet_layers import SHAPE_ATTRIBUTE, Role, build_graph
from dlbricks_tui.models.neutral import LiteralError, parse_tuple
from dlbricks_tui.runtime.errors import WorkerLostError, WorkerRefusedError
from dlbricks_tui.share.errors import BrokenBrickError, UnsuitableLayersError, refuse_too_large
from dlbricks_tui.share.mxnet_network import (
    CONSTANT,
    DATA,
    DTYPE_ATTRIBUTE,
    DTYPES,
    USUAL_DTYPE,
    WEIGHT,
    known_operator,
    packed,
    spelled,
)


class MXNetExcerpts:
    """Cuts excerpts out of a model, given by its layers as they are measured."""

    def __init__(self, graph: LayerGraph) -> None:
        self._graph = graph
        self._layouts = output_layouts(graph)

    def around(self, layer: int) -> Iterator[bytes]:
        """Yield excerpts with this layer: beside its neighbours, and if one of them cannot travel without them.

        In front are also the layers that set the memory layouts of inputs.
        """
        for near in ({layer, *self._graph.predecessors[layer], *self._graph.successors[layer]}, {layer}):
            chosen = sorted(near.union(feeding_layers(self._graph, sorted(near), self._layouts)))
            with suppress(UnsuitableLayersError) if len(near) > 1 else nullcontext():
                yield packed(_part(self._graph, chosen))


def _part(graph: LayerGraph, chosen: Sequence[int]) -> LayerGraph:
    """Return these layers as a graph. Results that no layer reads become outputs: MXNet computes nothing else."""
    layers = [graph.layers[index] for index in chosen]
    place: dict[int | None, int] = {index: number for number, index in enumerate(chosen)}
    entering = outer_feeds(layers)
    moved = {feed: Feed(None, number) for number, feed in enumerate(entering)}
    made = [Feed(index, number) for index in chosen for number in range(len(graph.layers[index].results))]
    moved |= {feed: Feed(place[feed.layer], feed.output) for feed in made}
    read = {feed for layer in layers for feed in layer.feeds}
    elsewhere = {feed for layer in graph.layers if layer.index not in place for feed in layer.feeds}.union(graph.heads)
    return replace(
        graph,
        name="",
        layers=tuple(
            [
                replace(it, index=number, name=str(number), feeds=tuple([moved[feed] for feed in it.feeds]), times=1)
                for number, it in enumerate(layers)
            ]
        ),
        inputs=tuple([GraphInput(f"{DATA}{number}", type_of(graph, feed)) for number, feed in enumerate(entering)]),
        heads=tuple([moved[feed] for feed in made if feed not in read or feed in elsewhere]),
    )


_ROLES = {DATA: Role.INPUT, WEIGHT: Role.WEIGHT, CONSTANT: Role.CONSTANT}
_VARIABLE = re.compile(rf"({DATA}|{WEIGHT}|{CONSTANT})[0-9]{{1,6}}", re.ASCII)
_OPERATOR = re.compile(r"op[0-9]{1,6}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,5}", re.ASCII)
_MOST_DIMENSIONS = 32
_ITEM_BYTES = {"float16": 2, "bfloat16": 2, "uint8": 1, "int8": 1, "bool": 1, "float32": 4, "int32": 4}
_LARGEST_ITEM_BYTES = 8
_WHAT_IT_IS = "its file"


class MXNetReader:
    """Reads excerpts as a runtime has them; a framework infers the types and fuses layers."""

    def __init__(self, framework: Framework, level: Level, most_bytes: int) -> None:
        self._framework = framework
        self._level = level
        self._most_bytes = most_bytes
        self._alone = cache(self._fused_alone)

    def read(self, content: bytes) -> LayerGraph:
        """Return the layers of an excerpt; raise BrokenBrickError, whose message completes "brick ... "."""
        try:
            return self._read(content)
        except (UnsuitableLayersError, ModelError, WorkerRefusedError, WorkerLostError) as error:
            raise BrokenBrickError(str(error)) from None

    def _read(self, content: bytes) -> LayerGraph:
        file = parse_symbol(content, _WHAT_IT_IS)
        types = {number: _declared_type(node) for number, node in enumerate(file.nodes) if node.is_variable}
        # Before the shapes are used in any computation.
        self._refuse_too_large(types.values())
        for node in file.nodes:
            if not node.is_variable:
                _check_operator(node)
        graph = self._graph(file, types)
        layers = graph.layers
        if [layer.name for layer in layers] != [str(number) for number in range(len(layers))]:
            raise UnsuitableLayersError("has layers that are not numbered in order")
        if not any(layer.operators for layer in layers):
            raise UnsuitableLayersError("has no layer that computes anything")
        for layer in layers:
            if layer.unmeasurable is not None:
                raise UnsuitableLayersError(f"cannot be run here: {layer.unmeasurable}")
        return self._fused(graph) if self._level is Level.FUSED else graph

    def _graph(self, file: SymbolFile, types: Mapping[int, TensorType]) -> LayerGraph:
        shapes = {unique_name(number): found.shape for number, found in types.items() if found.shape is not None}
        answer = self._framework.infer(file.render(), shapes)
        if len(answer.types) != len(file.nodes):
            raise UnsuitableLayersError(f"has {len(file.nodes)} nodes, and {len(answer.types)} were answered for")
        self._refuse_too_large(found for outputs in answer.types for found in outputs)
        _refuse_other_types(file, types, answer)
        roles = {number: _ROLES[_role(file.nodes[number])] for number in types}
        return build_graph(file, roles, answer, _WHAT_IT_IS)

    def _fused(self, graph: LayerGraph) -> LayerGraph:
        """Return the graph with a fused layer instead of each written one, as the runtime fuses them.

        Each layer is fused alone, because layers in one graph would fuse with each other. Equal layers are fused once.
        """
        layers: list[Layer] = []
        # The outputs of a layer may have other numbers once it is fused.
        moved = {Feed(None, number): Feed(None, number) for number in range(len(graph.inputs))}
        for layer in graph.layers:
            if not layer.operators:
                found, results = layer, list(range(len(layer.results)))
            else:
                alone = self._alone(packed(_part(graph, [layer.index])))
                (found,) = alone.layers
                # The inputs of the layer alone are named after their numbers.
                entering = outer_feeds([layer])
                inputs = [entering[int(each.name.removeprefix(DATA))] for each in alone.inputs]
                feeds = tuple([moved[inputs[feed.output]] for feed in found.feeds])
                # Each layer is fused alone: arrays that it shares with others are no longer known.
                found = replace(found, index=layer.index, name=layer.name, feeds=feeds, arrays=())
                results = [head.output for head in alone.heads]
            layers.append(found)
            moved |= {Feed(layer.index, number): Feed(layer.index, result) for number, result in enumerate(results)}
        heads = tuple([moved[head] for head in graph.heads])
        return LayerGraph(graph.name, Level.FUSED, tuple(layers), graph.inputs, heads)

    def _fused_alone(self, content: bytes) -> LayerGraph:
        file = parse_symbol(content, "a layer")
        types = self._framework.infer(file.render(), {}).types
        variables = [number for number, node in enumerate(file.nodes) if node.is_variable]
        shapes = {unique_name(number): types[number][0].shape or () for number in variables}
        answer = self._framework.fuse(file.render(), shapes)
        fused = parse_symbol(answer.symbol or "", "a fused layer")
        if not len(fused.nodes) == len(answer.types) == len(answer.parts):
            raise UnsuitableLayersError("was answered for another graph when it was to be fused")
        operators = [node.op for node in fused.nodes if not node.is_variable]
        if len(operators) != 1:
            raise UnsuitableLayersError(
                f"is {len(operators)} layers here ({', '.join(operators[:4])}), and must be one"
            )
        roles = {}
        for number, node in enumerate(fused.nodes):
            if node.is_variable:
                names = [file.nodes[part].name for part in answer.parts[number]]
                roles[number] = Role.INPUT if any(name.startswith(DATA) for name in names) else Role.WEIGHT
        return build_graph(fused, roles, answer, "a fused layer", file)

    def _refuse_too_large(self, tensors: Iterable[TensorType]) -> None:
        needed = sum(
            prod(found.shape) * _ITEM_BYTES.get(found.dtype, _LARGEST_ITEM_BYTES)
            for found in tensors
            if found.shape is not None
        )
        refuse_too_large(needed, self._most_bytes)


def _declared_type(node: SymbolNode) -> TensorType:
    """Return the type of a variable; refuse any other attribute."""
    attributes = dict(node.attributes)
    role = _role(node)
    if (LAYER_ATTRIBUTE in attributes) != (role == CONSTANT):
        raise UnsuitableLayersError(f"has a variable {node.name!r} with a wrong layer attribute")
    _layer_number(attributes.pop(LAYER_ATTRIBUTE, "0"))
    shape = _shape(attributes.pop(SHAPE_ATTRIBUTE, ""))
    dtype = attributes.pop(DTYPE_ATTRIBUTE, str(DTYPES.index(USUAL_DTYPE)))
    if attributes or not _NUMBER.fullmatch(dtype) or int(dtype) >= len(DTYPES):
        raise UnsuitableLayersError(f"has a variable {node.name!r} with other attributes than its shape and data type")
    return TensorType(shape, DTYPES[int(dtype)])


def _shape(text: str) -> tuple[int, ...]:
    try:
        found: Sequence[object] = parse_tuple(text) or ()
    except (LiteralError, ArithmeticError):
        found = ()
    shape = tuple([size for size in found if isinstance(size, int) and size > 0])
    if not shape or len(shape) != len(found) or len(shape) > _MOST_DIMENSIONS:
        raise UnsuitableLayersError(f"has a variable of the shape {text[:40]!r}")
    return shape


def _check_operator(node: SymbolNode) -> None:
    """Refuse an operator with anything but declared parameters in their only spelling, and its layer."""
    known = known_operator(node.op)
    if node.subgraphs:
        raise UnsuitableLayersError(f"holds an operator {known.name} with a graph inside")
    if not _OPERATOR.fullmatch(node.name):
        raise UnsuitableLayersError(f"holds an operator called {node.name[:40]!r}")
    said = dict(node.attributes)
    _layer_number(said.pop(LAYER_ATTRIBUTE, ""))
    if said != spelled(known, said):
        raise UnsuitableLayersError(f"holds an operator {known.name} with parameters in another spelling than ours")


def _layer_number(text: str) -> None:
    if not _NUMBER.fullmatch(text):
        raise UnsuitableLayersError(f"has {LAYER_ATTRIBUTE} {text[:40]!r}, which is not a number")


def _role(node: SymbolNode) -> str:
    found = _VARIABLE.fullmatch(node.name)
    if found is None:
        raise UnsuitableLayersError(f"has a variable called {node.name[:40]!r}")
    return found[1]


def _refuse_other_types(file: SymbolFile, types: Mapping[int, TensorType], answer: GraphAnswer) -> None:
    for number, declared in types.items():
        if tuple(answer.types[number]) != (declared,):
            raise UnsuitableLayersError(
                f"declares a type of {file.nodes[number].name} that does not follow from its operators"
            )
