"""A recurrent network written out step by step: any number of nodes, in a long and thin graph."""

from typing import Any

from dlbricks_tui.models.mxnet_file import symbol_document, symbol_file

WIDTH = 64
OPERATORS_PER_STEP = 13


def unrolled_lstm(nodes: int) -> bytes:
    """The symbol file of an LSTM with about so many nodes."""
    steps = max(1, nodes // OPERATORS_PER_STEP)
    graph = _Nodes()
    data = graph.add("null", "data", __shape__=f"(1, {steps}, {WIDTH})")
    weights = [graph.add("null", f"lstm_{part}") for part in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")]
    words = graph.add("SliceChannel", "words", (data, 0), axis="1", num_outputs=str(steps), squeeze_axis="True")
    hidden = graph.add("_zeros", "begin_hidden", shape=f"(1, {WIDTH})")
    cell = graph.add("_zeros", "begin_cell", shape=f"(1, {WIDTH})")
    for step in range(steps):
        hidden, cell = _step(graph, f"lstm_t{step}_", (words, step), hidden, cell, weights)
    return graph.rendered(hidden)


def _step(
    graph: "_Nodes", name: str, word: tuple[int, int], hidden: int, cell: int, weights: list[int]
) -> tuple[int, int]:
    def gate(output: int, function: str) -> int:
        return graph.add("Activation", f"{name}{function}{output}", (gates, output), act_type=function)

    size = str(4 * WIDTH)
    seen = graph.add("FullyConnected", f"{name}i2h", word, (weights[0], 0), (weights[1], 0), num_hidden=size)
    kept = graph.add("FullyConnected", f"{name}h2h", (hidden, 0), (weights[2], 0), (weights[3], 0), num_hidden=size)
    both = graph.add("elemwise_add", f"{name}both", (seen, 0), (kept, 0))
    gates = graph.add("SliceChannel", f"{name}gates", (both, 0), num_outputs="4")
    taken, forgotten, put_out = (gate(output, "sigmoid") for output in (0, 1, 3))
    remembered = graph.add("elemwise_mul", f"{name}old", (forgotten, 0), (cell, 0))
    learned = graph.add("elemwise_mul", f"{name}new", (taken, 0), (gate(2, "tanh"), 0))
    cell = graph.add("elemwise_add", f"{name}cell", (remembered, 0), (learned, 0))
    shown = graph.add("Activation", f"{name}shown", (cell, 0), act_type="tanh")
    return graph.add("elemwise_mul", f"{name}hidden", (put_out, 0), (shown, 0)), cell


class _Nodes:
    def __init__(self) -> None:
        self._nodes: list[dict[str, Any]] = []

    def add(self, op: str, name: str, *inputs: tuple[int, int], **attributes: str) -> int:
        entries = [[node, output, 0] for node, output in inputs]
        self._nodes.append({"op": op, "name": name, "attrs": attributes, "inputs": entries})
        return len(self._nodes) - 1

    def rendered(self, head: int) -> bytes:
        return symbol_file(symbol_document(self._nodes, [(head, 0)]))
