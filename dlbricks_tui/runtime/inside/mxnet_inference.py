"""Types of a graph by MXNet's partial inference, which creates no arrays, and the graph that MXNet runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import reduce
from operator import mul
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.mxnet_framework import (
    ALIAS,
    Edge,
    SymbolNodes,
    ask,
    load,
    operators,
    refuse_unknown,
    save,
)
from dlbricks_tui.runtime.protocol import Fuse, Fused, Infer, Inferred, Reason, Tensor

# MXNet's usual builds count the elements of an array in 32 bits.
MOST_ELEMENTS = 2**31 - 1
DEFAULT_DTYPE = "float32"
NOTHING = Tensor(None, None)


def infer(mxnet: Any, request: Infer) -> Inferred:
    """Infer all types that follow from the request; leave out operators that MXNet lacks."""
    file = SymbolNodes(request.symbol)
    unknown = file.unknown_to(operators(mxnet))
    outputs = infer_outputs(mxnet, file, request.shapes, left_out=frozenset(unknown))
    return Inferred(outputs, tuple(unknown))


def infer_outputs(
    mxnet: Any, file: SymbolNodes, shapes: Mapping[str, tuple[int, ...]], left_out: Collection[int] = ()
) -> tuple[tuple[Tensor, ...], ...]:
    """Return the outputs of each node of the file; nodes that no head needs have one unknown output."""
    for name, shape in shapes.items():
        if not shape or 0 in shape:
            raise RefusalError(Reason.MALFORMED, f"input {name} cannot have the shape {shape}")
        if _elements(shape) > MOST_ELEMENTS:
            raise RefusalError(Reason.TOO_LARGE, f"input {name} has more elements than MXNet can count: {shape}")
    internals = load(mxnet, file, left_out).get_internals()
    places = _places(internals)
    # MXNet reads beyond its tables where a file names an output that a node does not have.
    reached = {edge.node for edge in places}.difference(left_out)
    for edge in [*file.heads, *(edge for index in reached for edge in file.inputs[index])]:
        if edge not in places and edge.node not in left_out:
            message = f"output {edge.output} of {file.names[edge.node]} is read, which has no such output"
            raise RefusalError(Reason.MALFORMED, message, edge.node)
    # MXNet rejects types of inputs that no head needs.
    inputs = frozenset(internals.list_inputs())
    by_alias = {file.alias(name): shape for name, shape in shapes.items()}
    given = {alias: shape for alias, shape in by_alias.items() if alias in inputs}
    found_shapes = ask(mxnet, file, lambda: internals.infer_shape_partial(**given)[1])
    found_dtypes = _dtypes(mxnet, file, internals, given)
    outputs: list[list[Tensor]] = [[] for _ in file.names]
    for edge, place in places.items():
        if edge.node not in left_out:
            shape, dtype = found_shapes[place], found_dtypes[place]
            # MXNet writes 0 for an unknown size, and a negative number for one beyond its range.
            known = tuple(shape) if shape and min(shape) > 0 else None
            if known is not None and _elements(known) > MOST_ELEMENTS:
                message = f"{file.names[edge.node]} makes more elements than MXNet can count: {shape}"
                raise RefusalError(Reason.TOO_LARGE, message, edge.node)
            described = None if dtype is None else numpy.dtype(dtype)
            # MXNet describes bfloat16, which numpy lacks, as a structure of one field.
            named = described and str(described.names[0] if described.names else described.name)
            outputs[edge.node].append(Tensor(known, named))
    return tuple(tuple(tensors) or (NOTHING,) for tensors in outputs)


def _places(internals: Any) -> dict[Edge, int]:
    # MXNet orders the nodes of a graph in its own way. The heads of the saved internals tell the node of each output.
    document = json.loads(save(internals), strict=False)
    aliases = [ALIAS.fullmatch(node["name"]) for node in document["nodes"]]
    found = ((aliases[head[0]], head[1], place) for place, head in enumerate(document["heads"]))
    return {Edge(int(alias[1]), output): place for alias, output, place in found if alias}


def _dtypes(mxnet: Any, file: SymbolNodes, internals: Any, inputs: Collection[str]) -> list[Any]:
    """Infer dtypes from the default for these inputs, and for variables that the graph then leaves open."""

    def ask_for(dtypes: Mapping[str, str]) -> list[Any]:
        try:
            found: list[Any] = ask(mxnet, file, lambda: internals.infer_type_partial(**dtypes)[1])
        except KeyError as unknown:
            message = f"MXNet has no data type {unknown}: correct the __dtype__ of its variables"
            raise RefusalError(Reason.INCONSISTENT, message) from unknown
        return found

    undeclared = frozenset(internals.list_inputs()) - file.declaring("__dtype__")
    given, undecided = dict.fromkeys(undeclared.intersection(inputs), DEFAULT_DTYPE), undeclared.difference(inputs)
    try:
        found = ask_for(given)
    except RefusalError:
        # Before 1.6 MXNet refuses a graph with unknown dtypes.
        return ask_for({**dict.fromkeys(undecided, DEFAULT_DTYPE), **given})
    names = internals.list_outputs()
    open_ones = [name for place, name in enumerate(names) if found[place] is None and name in undecided]
    if not open_ones:
        return found
    try:
        return ask_for({**dict.fromkeys(open_ones, DEFAULT_DTYPE), **given})
    except RefusalError:
        # The default contradicts other dtypes of the graph, so these variables stay unknown.
        return found


def _elements(shape: tuple[int, ...]) -> int:
    # math.prod came with Python 3.8, and numpy's product would overflow.
    return reduce(mul, shape, 1)


def fuse(mxnet: Any, request: Fuse) -> Fused:
    """Return the graph that an executor of this MXNet would run; before 1.6 that is the given graph."""
    network = request.network
    file, given = SymbolNodes(network.symbol), {name: it.shape for name, it in network.inputs.items()}
    refuse_unknown(mxnet, file)
    outputs = infer_outputs(mxnet, file, given)
    if not hasattr(mxnet.executor.Executor, "get_optimized_symbol"):
        return Fused(network.symbol, outputs, tuple((index,) for index in range(len(file.names))))
    # MXNet writes control characters unescaped.
    document = json.loads(_optimised(mxnet, file, outputs), strict=False)
    parts = _parts(document["nodes"], file)
    _restore_names(document["nodes"], file)
    text = json.dumps(document)
    fused = SymbolNodes(text)
    shapes = {name: shape for name, shape in given.items() if name in fused.names}
    try:
        return Fused(text, infer_outputs(mxnet, fused, shapes), parts)
    except RefusalError as error:
        raise RefusalError(Reason.UNFUSABLE, f"what MXNet fuses contradicts itself: {error}") from error


def _optimised(mxnet: Any, file: SymbolNodes, outputs: tuple[tuple[Tensor, ...], ...]) -> str:
    # `optimize_for` fuses in the same way but does not merge equal operators, as an executor does. Only binding shows
    # an executor's graph. The arrays stay untouched, so they take no physical memory.
    symbol = load(mxnet, file)

    def array(alias: str) -> Any:
        index = int(alias[1:-1])
        ((shape, dtype),) = outputs[index]
        if shape is None or dtype is None:
            raise RefusalError(Reason.UNFUSABLE, f"the shape of {file.names[index]} is not known", index)
        return mxnet.nd.empty(shape, dtype=dtype)

    def bind() -> str:
        arguments = {alias: array(alias) for alias in symbol.list_arguments()}
        states = {alias: array(alias) for alias in symbol.list_auxiliary_states()}
        executor = symbol.bind(mxnet.cpu(), arguments, aux_states=states, grad_req="null")
        return save(executor.get_optimized_symbol())

    text: str = ask(mxnet, file, bind, Reason.UNFUSABLE)
    return text


def _parts(nodes: list[dict[str, Any]], file: SymbolNodes) -> tuple[tuple[int, ...], ...]:
    parts = []
    for node in nodes:
        names = [node["name"]]
        if not ALIAS.fullmatch(node["name"]):
            inner = (part for subgraph in node.get("subgraphs", ()) for part in subgraph["nodes"])
            names = [part["name"] for part in inner if part["op"] != "null"]
        parts.append([int(name[1:-1]) for name in names if ALIAS.fullmatch(name)])
    twins = file.twins()
    kept = {index for named in parts for index in named}
    computes = {twins[index]: named for named in parts for index in named}
    for index, twin in enumerate(twins):
        # MXNet has removed this node because it equals another one.
        if index not in kept and twin in computes:
            computes[twin].append(index)
    return tuple(tuple(named) for named in parts)


def _restore_names(nodes: list[dict[str, Any]], file: SymbolNodes) -> None:
    for node in nodes:
        node["name"] = file.restored(node["name"])
        for part in (part for subgraph in node.get("subgraphs", ()) for part in subgraph["nodes"]):
            part["name"] = file.restored(part["name"])
