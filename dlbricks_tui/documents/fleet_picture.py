"""The picture of the hosts of a fleet: the latency of one model on each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.fleet import dollars, fastest_hosts, hosts_sentence, latency_on
from dlbricks_tui.documents.pictures import Axis, Mark, Meaning, Piece, Row, Rows
from dlbricks_tui.wording.numbers import PREDICTED

if TYPE_CHECKING:
    from dlbricks_tui.answers.fleets.results import FleetEstimate, FleetModel

_MEASURED, _PREDICTED = ("=", "█"), (PREDICTED, "░")


def hosts_picture(model: FleetModel) -> Rows | None:
    """Return the latency of a model on each host with its interval, the fastest first."""
    found = [it for it in model.estimates if it.sequential_ms is not None]
    if not found:
        return None
    fastest = fastest_hosts(model)
    rows = tuple(_row(it, is_fastest=it.host in fastest) for it in found)
    longest_ms = max(it.high_ms or it.sequential_ms or 0.0 for it in found)
    legend = [Meaning(_MEASURED[0], "measured", "bar", _MEASURED[1])]
    if any(it.predicted_layers for it in found):
        legend.append(Meaning(_PREDICTED[0], "predicted in part", "accent", _PREDICTED[1]))
    legend.append(Meaning("[ ]", "95 % interval", "text"))
    return Rows("ms, shorter is better", hosts_sentence(model), Axis(0.0, longest_ms), rows, tuple(legend))


def _row(it: FleetEstimate, *, is_fastest: bool) -> Row:
    (mark, block), style = (_PREDICTED, "accent") if it.predicted_layers else (_MEASURED, "bar")
    style = "good" if is_fastest else style
    ends = ((it.low_ms, "["), (it.high_ms, "]"))
    marks = tuple(Mark(value, sign, "text") for value, sign in ends if value is not None)
    price = "" if it.dollars_per_million is None else f", {dollars(it)} a million"
    bar = (Piece(0.0, it.sequential_ms or 0.0, mark, block, style),)
    return Row(it.host, bar, marks, f"{latency_on(it)}{price}", "good" if is_fastest else "text")
