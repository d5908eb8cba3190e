"""Layers of an analysis as lines of plain characters: their names in a given width, and their times."""

from collections.abc import Sequence

from dlbricks_tui.analysis.bounds import GroupTimes
from dlbricks_tui.estimate.compositions import milliseconds as from_picoseconds
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.analysis import short_name
from dlbricks_tui.wording.numbers import milliseconds
from dlbricks_tui.wording.tables import Column, justified

_GAP = "  "
_LEAST_NAMES = 16


def layer_lines(groups: Sequence[GroupTimes], width: int) -> list[str]:
    """Return a row for each group of layers: its time here, the least one, and the executions that reached it."""
    common = common_beginning([name for it in groups for name in it.layers])
    columns: list[Column[GroupTimes]] = [
        Column("HERE", lambda it: _from_ps(it.latency_ps)),
        Column("BEST", lambda it: _from_ps(it.best_ps)),
        Column("FASTEST", lambda it: " + ".join(dict.fromkeys(map(short_name, it.fastest))), holds_names=True),
    ]
    cells = [[column.cell(it) for column in columns] for it in groups]
    titles, *times = justified(columns, [[column.title for column in columns], *cells])
    room = max(_LEAST_NAMES, width - len(titles) - len(_GAP))
    heading = f"LAYERS of {printable(common)}..., in ms"
    heading = heading if common and len(heading) <= room else "LAYERS, in ms"
    names = [heading, *(named_layers([name.removeprefix(common) for name in it.layers], room) for it in groups)]
    shown = max(map(len, names))
    return [f"{name:<{shown}}{_GAP}{line}".rstrip() for name, line in zip(names, (titles, *times), strict=True)]


def _from_ps(latency_ps: int) -> str:
    return milliseconds(from_picoseconds(latency_ps))


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


def named_layers(layers: Sequence[str], width: int) -> str:
    """Return as many names as fit, and the number of the others."""
    shown: list[str] = []
    for place, layer in enumerate(map(printable, layers)):
        left = len(layers) - place - 1
        text = ", ".join([*shown, layer]) + (f" and {left} more" if left else "")
        if len(text) > width:
            break
        shown.append(layer)
    left = len(layers) - len(shown)
    if not shown:
        first = printable(layers[0])
        # The end of a name tells more than its beginning.
        return first if len(first) <= width else f"...{first[min(-1, 3 - width) :]}"
    return ", ".join(shown) + (f" and {left} more" if left else "")
