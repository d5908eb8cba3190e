"""The short words by which a person knows a brick, made from its canonical form."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_MOST_OPERATORS = 4


def label_of(canonical: str) -> str:
    """Operators, kernel and the shape that comes in: `Convolution 3x3/2 1x64x56x56`; empty for a form not known."""
    try:
        form = json.loads(canonical)
        operators = form["operators"]
        names = [str(each["op"]) for each in operators[:_MOST_OPERATORS]]
        chain = "+".join(names) + ("+..." if len(operators) > _MOST_OPERATORS else "")
        words = [chain, _window(operators[0].get("params", {})), *(_size(shape) for shape, *_ in form["data"][:1])]
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        return ""
    return " ".join(filter(None, words))


def _window(params: Mapping[str, Any]) -> str:
    kernel, stride = params.get("kernel") or (), params.get("stride") or ()
    if not kernel:
        return ""
    step = "" if all(each == 1 for each in stride) else f"/{_size(stride[:1] if len(set(stride)) == 1 else stride)}"
    return _size(kernel) + step


def _size(shape: Sequence[int] | None) -> str:
    return "x".join(map(str, shape or ()))
