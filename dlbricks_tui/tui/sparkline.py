"""Values in a row as columns of blocks."""

from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """The newest values, one a cell, from the least to the most that there is among them."""
    shown = values[-width:] if width > 0 else ()
    if not shown:
        return ""
    least, most = min(shown), max(shown)
    if most <= least:
        return _BLOCKS[0] * len(shown)
    step = (len(_BLOCKS) - 1) / (most - least)
    return "".join(_BLOCKS[round((value - least) * step)] for value in shown)
