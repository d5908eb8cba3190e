"""The slowest layers of a model as both doors show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.models.titles import layer_title
from dlbricks_tui.wording.numbers import PREDICTED, counted, in_ms, percent

if TYPE_CHECKING:
    from dlbricks_tui.estimate.slowest import Slowest, SlowPart
    from dlbricks_tui.models.graph import LayerGraph


def title_of(graph: LayerGraph, slow: SlowPart) -> str:
    """Return the titles of its layers: `conv 3x3 64 > pool 2x2`."""
    return " > ".join(layer_title(graph.layers[index]) for index in slow.part.layers)


def name_of(graph: LayerGraph, slow: SlowPart) -> str:
    """Return the name of its layer in the file, or of the first and the last one."""
    first, last = slow.part.layers[0], slow.part.layers[-1]
    name = graph.layers[first].name
    return name if first == last else f"{name} .. {graph.layers[last].name}"


def sign_of_part(slow: SlowPart) -> str:
    """Return the mark of a predicted latency; nothing for a measured one."""
    return PREDICTED if slow.part.predicted else ""


def slowest_in_words(slow: Slowest) -> str:
    """Return the share that the slowest sequences take together."""
    if not slow.parts:
        return "no layer has a latency"
    single = all(len(it.part.layers) == 1 for it in slow.parts)
    of = f"{len(slow.parts)} of {counted(slow.sequences, 'layer' if single else 'sequence')}"
    takes = "takes" if len(slow.parts) == 1 else "take"
    return f"{of} {takes} {percent(slow.parts[-1].cumulative)} of {in_ms(slow.total_ms)}"
