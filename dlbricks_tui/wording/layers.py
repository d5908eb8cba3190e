"""The common beginnings of the names of layers, which are said once."""

from collections.abc import Sequence


def common_beginning(names: Sequence[str]) -> str:
    """Return the words that all names begin with; nothing for a single name."""
    if len(set(names)) < 2:
        return ""
    first, last = min(names), max(names)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[: max(first.rfind(sign, 0, same) for sign in "_/.") + 1]


def usual_beginning(names: Sequence[str]) -> str:
    """Return the words that at least four fifths of the names begin with; nothing for a single name."""
    ordered, odd = sorted(names), len(names) // 10
    # Names with the same beginning are neighbours.
    return common_beginning(ordered[odd : len(ordered) - odd])
