"""How good predictions have been."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from dlbricks_tui.documents.parts import BLANK_LINE, Column, Part, Sentence, Table, name_column
from dlbricks_tui.estimate.prediction.score import PredictionBasis, Score
from dlbricks_tui.wording.numbers import counted, milliseconds, percent, signed_percent

_TOLD = {
    PredictionBasis.HISTORY: "predicted from earlier results",
    PredictionBasis.LEFT_OUT: "predicted from the results of other models, as there are no earlier ones",
}
NOTHING_TO_SCORE = (
    "no model was measured in full whose bricks could be predicted: measure two models that share operators"
)


_COLUMNS: tuple[Column[Score], ...] = (
    name_column("model, in ms", lambda it: it.model),
    Column("predicted", lambda it: milliseconds(it.predicted_ms)),
    Column("from", lambda it: milliseconds(it.low_ms)),
    Column("to", lambda it: milliseconds(it.high_ms)),
    Column("measured", lambda it: milliseconds(it.measured_ms)),
    Column("error", lambda it: signed_percent(it.error)),
    Column("in interval", lambda it: "yes" if it.holds else "no"),
)


def score_parts(found: Sequence[Score]) -> Iterator[Part]:
    """Yield the summary, then a line for each model, the worst first."""
    if not found:
        yield Sentence(NOTHING_TO_SCORE)
        return
    yield from map(Sentence, _summary(found))
    yield BLANK_LINE
    yield Table(_COLUMNS, sorted(found, key=lambda it: -abs(it.error)))


def _summary(found: Sequence[Score]) -> list[str]:
    """Return sentences about all models together."""
    errors = [abs(it.error) for it in found]
    within = sum(error <= 0.2 for error in errors)
    held = sum(it.holds for it in found)
    lines = [
        f"{counted(len(found), 'model')}: median error {percent(median(errors), 1)}, {within} within 20 %; "
        f"the 95 % interval was right {held} of {counted(len(found), 'time')}"
    ]
    bases = Counter(it.basis for it in found)
    lines += [f"{bases[basis]} {told}" for basis, told in _TOLD.items() if bases[basis]]
    refused = sum(it.refused_share > 0 for it in found)
    if refused:
        lines.append(f"{refused} without some layers, of which too little was known; these do not count in the error")
    return lines
