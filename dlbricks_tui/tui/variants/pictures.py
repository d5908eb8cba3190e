"""The picture of a ranking: all combinations as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.pictures import Axis, Mark, Meaning, Piece, Row, Rows
from dlbricks_tui.wording.numbers import in_ms, milliseconds
from dlbricks_tui.wording.ranking import against_best, bar_name, ranking_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.documents.pictures import Picture
    from dlbricks_tui.estimate.ranking import Ranked, Ranking

_MEASURED, _PREDICTED = ("=", "█"), ("~", "░")


def ranking_picture(ranking: Ranking) -> Picture | None:
    """Return all combinations with a latency as bars, the best first."""
    found = [it for it in ranking.combinations if it.comparable.latency is not None]
    if not found:
        return None
    by_rate = len({it.point.batch_size for it in ranking.combinations}) > 1
    rows = tuple(_bar(it, ranking.combinations, by_rate=by_rate) for it in found)
    longest = max(piece.high for row in rows for piece in row.pieces)
    meanings = [Meaning(_MEASURED[0], "measured", "bar", _MEASURED[1])]
    if any(it.comparable.is_predicted for it in found):
        meanings.append(Meaning(_PREDICTED[0], "predicted", "muted", _PREDICTED[1]))
    title = "Per second, longer is better" if by_rate else "ms, shorter is better"
    return Rows(title, ranking_sentence(ranking, by_rate=by_rate), Axis(0.0, longest), rows, tuple(meanings))


def _bar(it: Ranked, found: Sequence[Ranked], *, by_rate: bool) -> Row:
    latency = it.comparable.latency
    value = (it.per_second or 0.0) if by_rate else 0.0 if latency is None else latency.value_ms
    (mark, block), style = (_PREDICTED, "muted") if it.comparable.is_predicted else (_MEASURED, "bar")
    style = "good" if it.is_best else style
    text = milliseconds(value) if by_rate else in_ms(value)
    # A single combination that is known well is compared with nothing.
    alone = len(found) == 1 and it.is_best
    marks = (Mark(value, "*", "good"),) if it.is_best and not alone else ()
    text += "" if alone else f" {against_best(it)}"
    bar = (Piece(0.0, value, mark, block, style),)
    return Row(bar_name(it, found), bar, marks, text, "good" if it.is_best else "text")
