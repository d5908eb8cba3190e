"""Bricks as the published layer lists of 2019 tell them apart: by kind, parameters and shapes, and not by biases.

To us a convolution with a bias and one without are two bricks; in the lists they are one, and so is their mean.
"""

import hashlib
import json

from dlbricks_tui.store.dlbricks_2019.results import PROTOCOL

__all__ = ["PROTOCOL", "twin_of"]

# Their weights come first and their biases, one number for each output, second.
_WITH_OR_WITHOUT_BIAS = frozenset({"conv", "linear"})


def twin_of(canonical: str) -> str | None:
    """The key of the brick that differs from this one in its bias alone, None where there can be none."""
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
    # As identities are made: the order of names and the lack of spaces are part of the key.
    twin = json.dumps(form, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(twin.encode()).hexdigest()
