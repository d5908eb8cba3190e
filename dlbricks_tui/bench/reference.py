"""A program that is the same in every run: when its latency changes, the machine has changed."""

import json

from dlbricks_tui.runtime.protocol import ArrayType, Network, Program

# A convolution as they stand in the middle of most networks, long enough to be timed well and short enough to be free.
_DATA, _WEIGHT = (1, 64, 28, 28), (64, 64, 3, 3)
_DTYPE = "float32"


def reference_program() -> Program:
    """The program; its name for a person is `reference`."""
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
    network = Network(json.dumps(document), {"data": ArrayType(_DATA, _DTYPE)}, {"weight": ArrayType(_WEIGHT, _DTYPE)})
    return Program(network)
