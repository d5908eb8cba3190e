"""Bricks in the published layer lists of 2019, which distinguish kinds, parameters and shapes, but not biases.

A convolution with a bias and one without are two bricks here. In the lists they are one, with one mean latency.
"""

import hashlib
import json

from dlbricks_tui.store.dlbricks_2019.results import PROTOCOL

__all__ = ["PROTOCOL", "bias_counterpart"]

# Their first array is the weight, their second the bias, with one number for each output.
_WITH_OR_WITHOUT_BIAS = frozenset({"conv", "linear"})


def bias_counterpart(canonical: str) -> str | None:
    """Return the key of the brick that differs from this one only in its bias; None if there is none."""
    form = json.loads(canonical)
    operators, weights = form["operators"], form["weights"]
    if len(operators) != 1 or operators[0]["op"] not in _WITH_OR_WITHOUT_BIAS or not weights:
        return None
    (operator,), (shape, dtype) = operators, weights[0]
    if len(weights) == 1 and shape is not None:
        operator["inputs"].append(["weight", 1, 0])
        weights.append([[shape[0]], dtype])
    elif len(weights) == 2:
        operator["inputs"].pop()
        weights.pop()
    else:
        return None
    # As in `bricks.identity`: the order of names and the lack of spaces affect the key.
    counterpart = json.dumps(form, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(counterpart.encode()).hexdigest()
