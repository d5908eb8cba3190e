"""The second section: the models and the bricks that became slower or faster from the first side to each other one."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dlbricks_tui.evaluations.change import USUAL_SHARE, Verdict
from dlbricks_tui.report.comparing.changes import (
    Alone,
    Comparison,
    Mean,
    Pair,
    false_alarms,
    mean_of,
    methods_of,
    number_tested,
)
from dlbricks_tui.report.comparing.facts import letters
from dlbricks_tui.report.comparing.matching import value_in_words
from dlbricks_tui.report.comparing.picture import Dot, DotSeries, label_in_rows, picture
from dlbricks_tui.report.comparing.sides import Execution
from dlbricks_tui.report.drawing import Ink
from dlbricks_tui.report.exhibits import Cell, Exhibit, Section, Table, table
from dlbricks_tui.store.contrast import LEAST_DIFFERENCE
from dlbricks_tui.wording.checks import reason_for_doubt, verdict_counts
from dlbricks_tui.wording.numbers import counted, names_of, percent

_ANCHOR = "regressions"
_MOST_DRAWN = 40
_MOST_ROWS = 200
_OF_EITHER_SIDE = (Verdict.SLOWER, Verdict.FASTER)
_MOST_NAMED = 10
# This table is not folded.
_MOST_ALONE = 20
_STYLES = {
    Verdict.SLOWER: (Ink.ORANGE, ">", False),
    Verdict.FASTER: (Ink.GREEN, "<", False),
    Verdict.SAME: (Ink.STONE, "o", False),
    Verdict.UNKNOWN: (Ink.BLUE, "o", True),
}
_EXPLANATION = (
    "Only results of the same execution are compared: the same system, framework, threads, batch size, precision, "
    "level and method, except for what each side has one value of. A change of a model counts from "
    f"{percent(USUAL_SHARE)} on, that of a brick from {percent(LEAST_DIFFERENCE)} on, if the samples (Mann-Whitney "
    "test) and the intervals both say that it is no chance: p is below 0.05, corrected for the number of models or "
    "bricks (Benjamini and Hochberg). A brick counts once in each context. `same`: the interval reaches at most "
    f"{percent(USUAL_SHARE)} to either side. `unknown`: the samples are too few, or vary too much."
)
# The circumstances that a label names if they differ between rows.
_TELLING = ("framework", "threads", "batch", "precision", "kernels", "level", "system")
_SHORT = {"batch": "batch {}"}
_COLUMNS = (
    *("name", "verdict", "change", "low", "high", "first_ms", "second_ms", "p_value", "first_samples"),
    *("second_samples", "execution", "second_execution", "system", "second_system", "context", "key", "why_unknown"),
    *("first_results", "second_results"),
)
_DETAILS = (
    *("second_execution", "system", "second_system", "context", "key", "first_results", "second_results"),
    *("first_samples", "second_samples"),
)


def regressions_section(comparisons: Sequence[Comparison]) -> Section:
    """Return the section of the changes from the first side to each other one."""
    exhibits = tuple([it for number, found in enumerate(comparisons, 1) for it in _exhibits(number, found)])
    return Section(
        "What became slower or faster?",
        _ANCHOR,
        _EXPLANATION,
        exhibits,
        missing=tuple([line for number, found in enumerate(comparisons, 1) for line in _missing(number, found)]),
        answer=" ".join([_answer(number, it) for number, it in enumerate(comparisons, 1)]),
    )


def _answer(number: int, found: Comparison) -> str:
    way = f"From A to {letters(number)}"
    told = [_counts(pairs, noun) for pairs, noun in ((found.models, "model"), (found.bricks, "brick")) if pairs]
    return f"{way}, {', and '.join(told) or 'nothing can be compared'}."


def _counts(pairs: Sequence[Pair], noun: str) -> str:
    return f"of {counted(len(pairs), noun)} {verdict_counts([it.change.verdict for it in pairs])}"


def mean_words(mean: Mean | None) -> str:
    """Return a geometric mean with its interval: `0.984 times as long, 95 % 0.956 to 1.011`."""
    if mean is None:
        return "nothing in common"
    return f"{mean.ratio:.3f} times as long, 95 % {mean.low:.3f} to {mean.high:.3f}"


def _exhibits(number: int, found: Comparison) -> Iterator[Exhibit]:
    letter = letters(number)
    for kind, pairs in (("model", found.models), ("brick", found.bricks)):
        if pairs:
            yield _changes(f"{kind}s", letter, pairs)
    if found.alone:
        columns = ("only_in", "of", "name", "why", "execution", "system", "context", "key")
        rows = [_alone_row(it, letter) for it in found.alone]
        first = f": the first {_MOST_ALONE} of {len(rows):,}" if len(rows) > _MOST_ALONE else ""
        title = f"Of A or {letter} only{first}"
        numbers = table(columns, rows, ("context", "key"), most=_MOST_ALONE)
        yield Exhibit(f"table-alone-{letter.lower()}", title, "", numbers)


def _changes(what: str, letter: str, pairs: Sequence[Pair]) -> Exhibit:
    name, title = f"figure-{what}-{letter.lower()}", f"{what.capitalize()}, from A to {letter}"
    drawn = _drawn(pairs)
    caption = f"{_false_alarms(pairs, what)}{_shown_of(pairs)}"
    labels = labels_of([(it.name, it.executions.first) for it in drawn])
    series = [_series(verdict, drawn) for verdict in _STYLES]
    many = f" The picture has {len(drawn)} of them." if len(drawn) < len(pairs) else ""
    about = f"A row for each of {len(drawn)} {what}, with the change of its latency and its 95 % interval."
    svg = picture(name, title, about, labels, series, f"latency in {letter} against A")
    return Exhibit(name, title, caption + many, _table(pairs), svg)


def _drawn(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the largest changes to either side, and after them others if there is room."""
    ranks: Counter[Verdict] = Counter()
    places: list[tuple[bool, int]] = []
    for number, it in enumerate(pairs):
        ranks[it.change.verdict] += 1
        is_large = it.change.verdict in _OF_EITHER_SIDE and ranks[it.change.verdict] <= _MOST_DRAWN // 2
        places.append((not is_large, number))
    return [pairs[number] for number in sorted(number for _, number in sorted(places)[:_MOST_DRAWN])]


def _false_alarms(pairs: Sequence[Pair], what: str) -> str:
    significant = sum(it.change.significant for it in pairs)
    return (
        f"On average {mean_words(mean_of(pairs))} (geometric mean). {number_tested(pairs):,} of {len(pairs):,} {what} "
        f"were tested. {significant:,} differ significantly; at most {false_alarms(pairs):.1f} of them are expected to "
        "be false alarms. The largest changes come first."
    )


def _shown_of(rows: Sequence[object]) -> str:
    return (
        f" The table has the first {_MOST_ROWS} of {len(rows):,}, the CSV file has all."
        if len(rows) > _MOST_ROWS
        else ""
    )


def _series(verdict: Verdict, pairs: Sequence[Pair]) -> DotSeries:
    dots = [
        Dot(row, it.ratio, 1.0 + it.change.low, 1.0 + it.change.high)
        for row, it in enumerate(pairs)
        if it.change.verdict is verdict
    ]
    return DotSeries(verdict.value, *_STYLES[verdict][:2], tuple(dots), _STYLES[verdict][2])


def labels_of(pairs: Sequence[tuple[str, Execution]]) -> list[str]:
    """Return the labels of rows: the name, and what tells its execution from those of the other rows."""
    executions = {id(it): it for _, it in pairs}.values()
    telling = [name for name in _TELLING if len({value_in_words(name, it) for it in executions}) > 1]
    return [
        label_in_rows(name, " ".join(_SHORT.get(it, "{}").format(value_in_words(it, execution)) for it in telling))
        for name, execution in pairs
    ]


def _table(pairs: Sequence[Pair]) -> Table:
    return table(_COLUMNS, list(map(_row, pairs)), _DETAILS, most=_MOST_ROWS)


def _row(pair: Pair) -> tuple[Cell, ...]:
    change, both = pair.change, pair.executions
    samples = [sum(len(it.samples_ms) for it in results) for results in (pair.first, pair.second)]
    return (
        *(pair.name, change.verdict.value, change.change, change.low, change.high, change.was_ms, change.is_ms),
        *(change.p_value, *samples, both.first.in_words, both.second.in_words, both.first.system, both.second.system),
        *(pair.subject.context, pair.subject.key, reason_for_doubt(change, USUAL_SHARE)),
        *(" ".join(it.id for it in results) for results in (pair.first, pair.second)),
    )


def _alone_row(it: Alone, letter: str) -> tuple[Cell, ...]:
    kind = "model" if it.subject.is_model else "brick"
    execution = it.execution
    own = ("A", letter)[it.of]
    return own, kind, it.name, it.reason, execution.in_words, execution.system, it.subject.context, it.subject.key


def _missing(number: int, found: Comparison) -> Iterator[str]:
    """Yield what is not compared, counted and named, and what limits the verdicts."""
    letter = letters(number)
    for place, (side, other) in enumerate((("A", letter), (letter, "A"))):
        alone = [it for it in found.alone if it.of == place]
        if alone:
            yield f"Of {side} and not compared with {other}: {_named(alone)}."
    own, others = methods_of(found.first), methods_of(found.second)
    if own != others:
        unlike = ", ".join(sorted(own ^ others))
        yield f"Results of methods that only one of A and {letter} has are not compared: {unlike}."
    for name in sorted({name for it in found.executions for name in it.differ}):
        both = [it for it in found.executions if name in it.differ]
        ones, theirs = (
            _values(name, executions) for executions in zip(*((it.first, it.second) for it in both), strict=True)
        )
        yield f"Different, and compared all the same: {name} ({ones} in A, {theirs} in {letter})."
    if shared := len({it.id for it in found.first.results} & {it.id for it in found.second.results}):
        yield f"A and {letter} share {counted(shared, 'result')}."
    if any(len({it.run for it in group.results}) == 1 for group in (found.first, found.second)):
        yield (
            f"A or {letter} has results of one run only, so the intervals leave out how much processes differ, often "
            "some percent. Measure twice before you trust a small change."
        )


def _named(alone: Sequence[Alone]) -> str:
    """Return models and bricks that are not compared: their numbers, the names of models, and the reasons."""
    models = list(dict.fromkeys(it.name for it in alone if it.subject.is_model))
    bricks = sum(not it.subject.is_model for it in alone)
    what = [f"{counted(len(models), 'model')} ({names_of(models, _MOST_NAMED)})"] if models else []
    what += [counted(bricks, "brick")] if bricks else []
    reasons = Counter(it.reason for it in alone)
    ordered = sorted(reasons.items(), key=lambda it: (-it[1], it[0]))
    why = "; ".join(f"{reason} ({count:,})" if len(reasons) > 1 else reason for reason, count in ordered)
    return f"{' and '.join(what)}: {why}"


def _values(name: str, executions: Iterable[Execution]) -> str:
    return ", ".join(sorted({value_in_words(name, it) for it in executions}))
