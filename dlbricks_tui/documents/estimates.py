"""The estimates of several models beside what was measured, and how good estimates and predictions are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from dlbricks_tui.documents.estimate import way_words
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    Column,
    Heading,
    Part,
    Row,
    Sentence,
    Table,
    bar_column,
    name_column,
)
from dlbricks_tui.estimate.comparison import Accuracy, SharedSettings, accuracy, by_group
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.runtime.variant import remarks_on
from dlbricks_tui.wording.answers import doubts_about, engine_remarks, runtime_words
from dlbricks_tui.wording.numbers import (
    PARTLY,
    PREDICTED_LEGEND,
    counted,
    ends_of,
    in_ms,
    milliseconds,
    or_dash,
    partly,
    percent,
    percent_of_part,
    signed_percent,
)

if TYPE_CHECKING:
    from dlbricks_tui.estimate.estimate import Composed
    from dlbricks_tui.estimate.score import Score
    from dlbricks_tui.estimate.system_estimate import SystemEstimate

    EstimateColumn = Column[SystemEstimate]

_MOST_DOUBTS = 5


def estimates_parts(estimates: Sequence[SystemEstimate]) -> Iterator[Part]:
    """Yield a line for each model, doubts about them, and their agreement with end-to-end latencies."""
    workers = estimates[0].estimate.options.workers
    known = [it for it in estimates if it.estimate.composed]
    columns = [*_MODEL_AND_SUM, _bars(estimates), _composed("parallel", lambda it: it.parallel_ms)]
    if workers is not None:
        columns.append(_composed(counted(workers, "worker"), lambda it: it.workers_ms or 0.0))
    columns += [
        _LAYERS,
        Column("end to end", lambda it: in_ms(it.end_to_end.value_ms) if it.end_to_end else "-"),
        Column("error", lambda it: "-" if it.error is None else signed_percent(it.error)),
    ]
    if len({it.way.runtime for it in known}) > 1:
        # The lines above the table name the combinations in full.
        columns.append(name_column("by", lambda it: runtime_title(it.way.runtime.partition("-")[0])))
    yield from (Sentence(told) for told in dict.fromkeys(map(way_words, known)))
    yield BLANK_LINE
    yield Table(tuple(columns), estimates)
    yield from _marks(estimates)
    yield from _remarks(engine_remarks(estimates))
    doubts = [(it.estimate.model, told) for it in estimates for told in doubts_about(it)]
    shown = [f"in doubt: {printable(model)}: {told}" for model, told in doubts[:_MOST_DOUBTS]]
    more = len(doubts) - len(shown)
    yield from _remarks(shown + [f"{more} more: `dlbricks estimate MODEL` says which"] * bool(more))
    if judged := judged_by_way(estimates):
        yield from accuracy_parts(judged)


def intervals_parts(estimates: Sequence[SystemEstimate]) -> Iterator[Part]:
    """Yield a line for each model with its interval, and the share of it that is predicted."""
    known = [it for it in estimates if it.estimate.composed]
    columns: tuple[EstimateColumn, ...] = (
        *_MODEL_AND_SUM,
        _bars(known),
        Column("95 %", _interval),
        _LAYERS,
        Column("predicted", lambda it: percent_of_part(it.estimate.predicted_share)),
    )
    yield from (Sentence(told) for told in dict.fromkeys(map(way_words, known)))
    yield BLANK_LINE
    yield Table(columns, known)
    yield from _marks(known)


def judged_by_way(estimates: Iterable[SystemEstimate]) -> list[tuple[SharedSettings, Accuracy]]:
    """Return the accuracy of each way of measuring that has models to judge by."""
    groups = by_group(estimates)
    return [(group, found) for group, held in groups.items() if (found := accuracy(held)) is not None]


def accuracy_parts(judged: Sequence[tuple[SharedSettings, Accuracy]]) -> Iterator[Part]:
    """Yield the agreement of estimates with end-to-end latencies, a line for each way of measuring."""

    def size(it: tuple[SharedSettings, Accuracy]) -> str:
        cut = it[0].cut.value
        return counted(it[0].granularity, "layer") + ("" if cut == "chain" else f" {cut}")

    columns: tuple[Column[tuple[SharedSettings, Accuracy]], ...] = (
        # What tells rows apart comes first: a narrow terminal cuts off the end.
        name_column("runtime", lambda it: f"{runtime_words(it[0].way.runtime)}, on {it[0].way.system}"),
        name_column("level", lambda it: it[0].way.level.value),
        Column("bricks of", size),
        *accuracy_columns(lambda it: it[1]),
    )
    yield Heading("Sequential estimate over end to end")
    yield Sentence(
        "geometric mean, mean absolute and worst error, share within 5 % and 10 %, speed-up by the paper's formula; by "
        "others: models of which other models have 90 %, and their median error without their own measurements",
        "muted",
    )
    yield Table(columns, judged)


def accuracy_columns(of: Callable[[Row], Accuracy]) -> tuple[Column[Row], ...]:
    """Return the columns of the accuracy of each row; in a narrow terminal the names of rows stay."""

    def median_error(it: Row) -> str:
        return or_dash(lambda share: percent(share, 1), of(it).by_others_median_error)

    return (
        Column("models", lambda it: str(of(it).models)),
        Column("mean", lambda it: f"{of(it).geometric_mean:.3f}"),
        Column("error", lambda it: percent(of(it).mean_absolute_error, 1)),
        Column("worst", lambda it: signed_percent(of(it).worst_error)),
        Column("5 %", lambda it: percent(of(it).within_5_percent)),
        Column("10 %", lambda it: percent(of(it).within_10_percent), is_optional=True, goes_last=True),
        Column("by others", lambda it: str(of(it).by_others), is_optional=True, goes_last=True),
        Column("median", median_error, is_optional=True),
        Column("speed-up", lambda it: or_dash("{:.2f}".format, of(it).speedup), is_optional=True, goes_last=True),
    )


def _composed(title: str, of: Callable[[Composed], float]) -> EstimateColumn:
    def text(it: SystemEstimate) -> str:
        found = it.estimate
        if found.composed is None:
            return "-"
        return partly(of(found.composed), part=found.is_partial, predicted=bool(found.coverage.predicted))

    return Column(title, text)


def _bars(estimates: Sequence[SystemEstimate]) -> EstimateColumn:
    longest_ms = max((it.sequential_ms or 0.0 for it in estimates), default=0.0) or 1.0
    return bar_column(lambda it: (it.sequential_ms or 0.0) / longest_ms)


_MODEL_AND_SUM: tuple[EstimateColumn, ...] = (
    name_column("model", lambda it: it.estimate.model),
    _composed("sequential", lambda it: it.sequential_ms),
)
_LAYERS: EstimateColumn = Column("layers", lambda it: f"{it.estimate.coverage.measured}/{it.estimate.coverage.layers}")


def _interval(it: SystemEstimate) -> str:
    composed = it.estimate.composed
    if composed is None:
        return "-"
    return f"{ends_of(*composed.latency[1:])} ms"


def _marks(estimates: Sequence[SystemEstimate]) -> Iterator[Part]:
    known = [it.estimate for it in estimates if it.estimate.composed]
    told = [PREDICTED_LEGEND] * any(it.coverage.predicted for it in known)
    told += remarks_on(it.variant.precision for it in estimates)
    if any(it.is_partial for it in known):
        told.append(f"{PARTLY}before a latency: a sum of layers with a latency; the model may take more or less")
    yield from _remarks(told)


def _remarks(told: Iterable[str]) -> Iterator[Part]:
    for each in told:
        yield BLANK_LINE
        yield Sentence(each)


# By the name of its basis.
_TOLD = {
    "HISTORY": "predicted from earlier results",
    "LEFT_OUT": "predicted from the results of other models, as there are no earlier ones",
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
    errors = [abs(it.error) for it in found]
    within, held = sum(error <= 0.2 for error in errors), sum(it.holds for it in found)
    yield Sentence(
        f"{counted(len(found), 'model')}: median error {percent(median(errors), 1)}, {within} within 20 %; "
        f"the 95 % interval was right {held} of {counted(len(found), 'time')}"
    )
    bases = Counter(it.basis.name for it in found)
    yield from (Sentence(f"{bases[basis]} {told}") for basis, told in _TOLD.items() if bases[basis])
    if refused := sum(it.refused_share > 0 for it in found):
        yield Sentence(f"{refused} without some layers, of which too little was known; these do not count in the error")
    yield BLANK_LINE
    yield Table(_COLUMNS, sorted(found, key=lambda it: -abs(it.error)))
