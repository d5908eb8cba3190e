"""The executed nodes of OpenVINO behind the lines that its oneDNN prints.

A line does not name its node. Nodes run in a fixed order, each with one primitive of its kind at most, so lines and
nodes of a kind correspond in order. Conversions of layouts also run inside of other nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.protocol import Reason, Said

# oneDNN's primitives by the kinds of nodes that run them.
_PRIMITIVES = {
    "Convolution": ("convolution",),
    "Deconvolution": ("deconvolution", "convolution"),
    "FullyConnected": ("inner_product", "matmul"),
    "MatMul": ("matmul",),
    "Pooling": ("pooling", "pooling_v2"),
    "Lrn": ("lrn",),
    "Softmax": ("softmax", "softmax_v2"),
    "RNNCell": ("rnn",),
    "RNNSeq": ("rnn",),
    "Eltwise": ("eltwise", "binary"),
}
_CONVERSION, _REORDER = "Reorder", "reorder"
_CONVOLUTION, _CONVOLUTIONS = "Convolution", ("convolution", "deconvolution")


def with_owners(lines: Sequence[Said], kinds: Sequence[str], numbers: Sequence[int]) -> tuple[Said, ...]:
    """Return the lines of one run with the numbers of their nodes, None where lines and nodes do not correspond.

    `kinds` are those of the executed nodes in order, and `numbers` what each is known by.
    """
    ran = [_primitive(it.line) for it in lines]
    _refuse_left_out(ran, kinds)
    places = _places_of_computing(ran, kinds)
    places.update(_places_of_conversions(ran, kinds, places))
    return tuple(
        Said(it.line, numbers[places[number]] if number in places else None) for number, it in enumerate(lines)
    )


def _refuse_left_out(ran: Sequence[str], kinds: Sequence[str]) -> None:
    """Raise RefusalError if convolutions printed nothing: in some versions, oneDNN fails to compute them then."""
    missing = sum(kind == _CONVOLUTION for kind in kinds) - sum(primitive in _CONVOLUTIONS for primitive in ran)
    if missing > 0:
        message = (
            f"oneDNN prints nothing about {missing} convolutions: this version of OpenVINO leaves them out while it "
            "prints, or computes them without oneDNN"
        )
        raise RefusalError(Reason.UNBUILDABLE, message)


def _primitive(line: str) -> str:
    """Return the primitive that a line tells of: `...,exec,cpu,PRIMITIVE,...`; empty for other lines."""
    words = line.split(",")
    place = words.index("exec") + 2 if "exec" in words else len(words)
    return words[place] if place < len(words) else ""


def _places_of_computing(ran: Sequence[str], kinds: Sequence[str]) -> dict[int, int]:
    """Return the place of the node by the number of the line, for each kind with as many lines as nodes."""
    owners: dict[str, list[str]] = {}
    for kind, primitives in _PRIMITIVES.items():
        if kind in kinds:
            for primitive in primitives:
                owners.setdefault(primitive, []).append(kind)
    found: dict[int, int] = {}
    # Kinds that share a primitive are counted together.
    for members in _joined(list(owners.values())):
        nodes = [place for place, kind in enumerate(kinds) if kind in members]
        printed = [number for number, primitive in enumerate(ran) if set(owners.get(primitive, ())) & members]
        if len(nodes) == len(printed):
            found.update({number: nodes[place] for place, number in enumerate(printed)})
    return found


def _joined(groups: Sequence[Sequence[str]]) -> list[set[str]]:
    """Return the groups, with those joined that have a member in common."""
    found: list[set[str]] = []
    for group in groups:
        together = set(group)
        for other in [it for it in found if it & together]:
            together |= other
            found.remove(other)
        found.append(together)
    return found


def _places_of_conversions(ran: Sequence[str], kinds: Sequence[str], known: Mapping[int, int]) -> dict[int, int]:
    """Return the place of the node of each conversion, between the nodes of the lines before and after it.

    It is a node of its own, or belongs to the node that computes next.
    """
    found: dict[int, int] = {}
    following = _following(ran, known)
    before = -1
    for number, primitive in enumerate(ran):
        if number in known:
            before = known[number]
        elif primitive == _REORDER:
            after = following[number]
            until = len(kinds) if after is None else after
            own = next((place for place in range(before + 1, until) if kinds[place] == _CONVERSION), after)
            if own is not None:
                found[number] = own
                before = max(before, own if kinds[own] == _CONVERSION else before)
    return found


def _following(ran: Sequence[str], known: Mapping[int, int]) -> list[int | None]:
    """Return for each line the place of the next node that computes by a known line."""
    found: list[int | None] = []
    after: int | None = None
    for number in reversed(range(len(ran))):
        after = known.get(number, after)
        found.append(after)
    return found[::-1]
