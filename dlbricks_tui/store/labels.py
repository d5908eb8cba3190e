"""Short names of bricks, made from their canonical form."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from dlbricks_tui.models.kinds import KIND_OF_OP, Kind, heaviest, kind_of

_MOST_OPERATORS = 4
# Labels leave out the prefixes of framework names.
_KIND_OF_WORD = {op.rpartition(".")[2].strip("_"): kind for op, kind in KIND_OF_OP.items()}

# An operator's neutral name and its parameters.
_Part = tuple[str, Mapping[str, Any]]


def label_of(canonical: str) -> str:
    """Return operators, kernel and input shape, `conv+relu 3x3/2 1x64x56x56`; empty for an unknown form."""
    try:
        form = json.loads(canonical)
        parts = [part for operator in form["operators"] for part in _parts(operator)]
        # An operator of a damaged file may have only its framework's name.
        names = [name.rpartition(".")[2].strip("_") or name for name, _ in parts[:_MOST_OPERATORS]]
        chain = "+".join(names) + ("+..." if len(parts) > _MOST_OPERATORS else "")
        window = next((params for _, params in parts if params.get("kernel")), {})
        words = [chain, _window(window), *(_size(shape) for shape, *_ in form["data"][:1])]
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        return ""
    return " ".join(filter(None, words))


@lru_cache(maxsize=1 << 15)
def kind_of_label(label: str) -> Kind:
    """Return the kind of the brick with this label, as its operators tell."""
    chain = label.partition(" ")[0].removesuffix("+...")
    return heaviest(_KIND_OF_WORD.get(word, Kind.OTHER) for word in chain.split("+"))


def _parts(operator: Mapping[str, Any]) -> list[_Part]:
    """Return the parts of a fused operator; any other operator, loops too, is one part."""
    own: _Part = (str(operator["op"]), operator.get("params", {}))
    if kind_of(own[0]) is not Kind.OTHER:
        return [own]
    nodes = [node for text in operator.get("inner", ()) for node in json.loads(text)]
    # Variables are texts, and the heads are pairs of numbers.
    return [(node[0], dict(node[1])) for node in nodes if isinstance(node, list) and isinstance(node[0], str)] or [own]


def _window(params: Mapping[str, Any]) -> str:
    kernel, stride = params.get("kernel") or (), params.get("stride") or ()
    if not kernel:
        return ""
    step = "" if all(each == 1 for each in stride) else f"/{_size(stride[:1] if len(set(stride)) == 1 else stride)}"
    return _size(kernel) + step


def _size(shape: Sequence[int] | None) -> str:
    return "x".join(map(str, shape or ()))
