"""The reference program, equal in every run: when its latency changes, the host's speed has changed."""

import json
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from dlbricks_tui.measure.supervised_worker import SupervisedWorker
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.onnx.neutral import native_node
from dlbricks_tui.models.onnx.writer import OnnxSheet
from dlbricks_tui.runtime.protocol import ArrayType, Network, Program
from dlbricks_tui.runtime.traits import Format

# A convolution as in the middle of most networks: long enough to be timed well, short enough to cost little.
_DATA, _WEIGHT = (1, 64, 28, 28), (64, 64, 3, 3)
_DTYPE = "float32"
_OPSET = 13
# So much memory shows when other guests of the host take bandwidth.
_BYTES_READ, _ROWS = 1 << 26, 64

REFERENCE = "reference"
# A single run is too short to judge a round by: one interrupt would make the round count as disturbed.
_UNTIMED_RUNS, _RUNS = 1, 5
RUNS_PER_READING = _UNTIMED_RUNS + _RUNS


def reference_ms(worker: SupervisedWorker) -> float | None:
    """Return the latency of the reference program now; None if the worker could not load it."""
    if not worker.holds(REFERENCE):
        return None
    taken = worker.sample([REFERENCE], _UNTIMED_RUNS, _RUNS)
    return median(taken[REFERENCE]) if taken else None


def reference_program(form: Format) -> Program:
    """Return the program for runtimes of a format."""
    data, weight = {"data": ArrayType(_DATA, _DTYPE)}, {"weight": ArrayType(_WEIGHT, _DTYPE)}
    return Program(Network(_WRITERS[form](), data, weight))


def _symbol() -> str:
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "weight", "inputs": []},
        {
            "op": "Convolution",
            "name": "reference",
            "attrs": {"kernel": "(3, 3)", "pad": "(1, 1)", "num_filter": "64", "no_bias": "True"},
            "inputs": [[0, 0, 0], [1, 0, 0]],
        },
    ]
    document = {"nodes": nodes, "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "attrs": {"mxnet_version": ["int", 10500]}}
    return json.dumps(document)


def _onnx() -> str:
    sheet = OnnxSheet()
    weight = sheet.variable("weight", TensorType(_WEIGHT, _DTYPE), learned=True)
    return _written(sheet, "Conv", TensorType(_DATA, _DTYPE), (weight, 0), pads=[1, 1, 1, 1])


def memory_reference() -> Program:
    """Return a program of ONNX that reads memory with all threads, as decoding does."""
    read = TensorType((_ROWS, _BYTES_READ // _ROWS // 4), _DTYPE)
    text = _written(OnnxSheet(), "ReduceMax", read, axes=[1], keepdims=1)
    return Program(Network(text, {"data": ArrayType(read.shape or (), _DTYPE)}, {}))


def _written(sheet: OnnxSheet, op: str, read: TensorType, *weights: tuple[int, int], **attributes: Any) -> str:
    """Return a network with one operator, which reads data and weights."""
    from onnx.helper import make_node

    feeds = [(sheet.variable("data", read, learned=False), 0), *weights]
    node = make_node(op, ["data", "weight"][: len(feeds)], ["result"], **attributes)
    return sheet.text([(sheet.operator(native_node(node, {}, _OPSET), "reference", feeds), 0)])


_WRITERS: Mapping[Format, Callable[[], str]] = {Format.MXNET: _symbol, Format.ONNX: _onnx}
