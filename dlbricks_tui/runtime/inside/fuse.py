"""The graph that MXNet runs: fused, without dropout, equal operators merged."""

from __future__ import annotations

import json
from typing import Any

from dlbricks_tui.runtime.inside.infer import infer_outputs
from dlbricks_tui.runtime.inside.loading import ask, load, refuse_unknown, save
from dlbricks_tui.runtime.inside.refusal import RefusalError
from dlbricks_tui.runtime.inside.symbol_file import ALIAS, SymbolFile
from dlbricks_tui.runtime.protocol import Fuse, Fused, Reason, Tensor


def fuse(mxnet: Any, request: Fuse) -> Fused:
    """Return the graph that an executor of this MXNet would run; before 1.6 that is the given graph."""
    file = SymbolFile(request.symbol)
    refuse_unknown(mxnet, file)
    outputs = infer_outputs(mxnet, file, request.shapes, request.dtypes)
    if not hasattr(mxnet.executor.Executor, "get_optimized_symbol"):
        return Fused(request.symbol, outputs, tuple((index,) for index in range(len(file.names))))
    # MXNet writes control characters unescaped.
    document = json.loads(_optimised(mxnet, file, outputs), strict=False)
    parts = _parts(document["nodes"], file)
    _restore_names(document["nodes"], file)
    text = json.dumps(document)
    fused = SymbolFile(text)
    shapes = {name: shape for name, shape in request.shapes.items() if name in fused.names}
    dtypes = {name: dtype for name, dtype in request.dtypes.items() if name in fused.names}
    try:
        return Fused(text, infer_outputs(mxnet, fused, shapes, dtypes), parts)
    except RefusalError as error:
        raise RefusalError(Reason.UNFUSABLE, f"what MXNet fuses contradicts itself: {error}") from error


def _optimised(mxnet: Any, file: SymbolFile, outputs: tuple[tuple[Tensor, ...], ...]) -> str:
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


def _parts(nodes: list[dict[str, Any]], file: SymbolFile) -> tuple[tuple[int, ...], ...]:
    parts = [_named_parts(node) for node in nodes]
    twins = file.twins()
    kept = {index for named in parts for index in named}
    computes = {twins[index]: named for named in parts for index in named}
    for index, twin in enumerate(twins):
        # MXNet has removed this node because it equals another one.
        if index not in kept and twin in computes:
            computes[twin].append(index)
    return tuple(tuple(named) for named in parts)


def _named_parts(node: dict[str, Any]) -> list[int]:
    names = [node["name"]]
    if not ALIAS.fullmatch(node["name"]):
        inner = (part for subgraph in node.get("subgraphs", ()) for part in subgraph["nodes"])
        names = [part["name"] for part in inner if part["op"] != "null"]
    return [int(name[1:-1]) for name in names if ALIAS.fullmatch(name)]


def _restore_names(nodes: list[dict[str, Any]], file: SymbolFile) -> None:
    taken = set(file.names)
    for node in nodes:
        if ALIAS.fullmatch(node["name"]):
            node["name"] = file.restored(node["name"])
            continue
        # A file that was saved after fusing contains such names already.
        while node["name"] in taken:
            node["name"] += "_again"
        taken.add(node["name"])
        for part in (part for subgraph in node.get("subgraphs", ()) for part in subgraph["nodes"]):
            part["name"] = file.restored(part["name"])
