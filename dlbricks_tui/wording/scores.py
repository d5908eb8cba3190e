"""How good predictions have been, as lines of plain characters."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from dlbricks_tui.estimate.prediction.score import Basis, Score
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import counted, milliseconds, percent, signed_percent

_HEADINGS = ("predicted", "from", "to", "measured", "error", "held")
_GAP = 2
_LEAST_NAME = 12
_TOLD = {
    Basis.HISTORY: "predicted from earlier results",
    Basis.LEFT_OUT: "predicted from the results of other models, as there are no earlier ones",
}
NOTHING_TO_SCORE = (
    "no model was measured in full whose bricks could be predicted: measure two models that share operators"
)


def score_lines(found: Sequence[Score], width: int) -> list[str]:
    """Return the summary, then a line for each model, the worst first."""
    if not found:
        return [NOTHING_TO_SCORE]
    rows = [
        (
            it.model,
            milliseconds(it.predicted_ms),
            milliseconds(it.low_ms),
            milliseconds(it.high_ms),
            milliseconds(it.measured_ms),
            signed_percent(it.error),
            "yes" if it.holds else "no",
        )
        for it in sorted(found, key=lambda each: -abs(each.error))
    ]
    table = [("model, in ms", *_HEADINGS), *rows]
    names, *columns = zip(*table, strict=True)
    widths = [_GAP + max(map(len, column)) for column in columns]
    room = max(_LEAST_NAME, min(width - sum(widths), max(map(len, names))))
    lines = [_line(name, values, room, widths) for name, *values in table]
    return [*summary_lines(found), "", *lines]


def summary_lines(found: Sequence[Score]) -> list[str]:
    """Return sentences about all models together."""
    errors = [abs(it.error) for it in found]
    within = sum(error <= 0.2 for error in errors)
    held = sum(it.holds for it in found)
    lines = [
        f"{counted(len(found), 'model')}: median error {percent(median(errors), 1)}, {within} within 20 %; "
        f"the 95 % interval held {held} of {counted(len(found), 'time')}"
    ]
    bases = Counter(it.basis for it in found)
    lines += [f"{bases[basis]} {told}" for basis, told in _TOLD.items() if bases[basis]]
    refused = sum(it.refused_share > 0 for it in found)
    if refused:
        lines.append(f"{refused} without some layers, of which too little was known; these do not count in the error")
    return lines


def _line(name: str, values: Sequence[str], room: int, widths: Sequence[int]) -> str:
    shown = printable(name)
    shown = shown if len(shown) <= room else f"{shown[: room - 1]}…"
    return shown.ljust(room) + "".join(value.rjust(width) for value, width in zip(values, widths, strict=True))
