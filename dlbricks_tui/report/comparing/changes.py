"""The section of the models and the bricks that became slower or faster from the first side to each other one."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.changes import (
    GroupComparison,
    NotCompared,
    ResultPair,
    false_alarms,
    not_compared_lines,
    number_tested,
    overall,
)
from dlbricks_tui.answers.sides import ResultExecution, value_in_words
from dlbricks_tui.documents.comparison import VERDICT_STYLES
from dlbricks_tui.documents.pictures import LegendSign
from dlbricks_tui.report import drawing
from dlbricks_tui.report.comparing.columns import mean_words
from dlbricks_tui.report.comparing.ratio_rows import DrawnRatio, ratio_rows, row_labels
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.store.change import BRICKS, FEWEST_PROCESSES, MOST_APART, USUAL_SHARE, Verdict
from dlbricks_tui.wording.checks import verdict_counts
from dlbricks_tui.wording.numbers import counted, percent

_MOST_DRAWN = 40
_MOST_ROWS = 200
_OF_EITHER_SIDE = (Verdict.SLOWER, Verdict.FASTER)
# This table is not folded.
_MOST_ALONE = 20
_SIGNS = {Verdict.SLOWER: "▶", Verdict.FASTER: "◀", Verdict.SAME: "●", Verdict.UNKNOWN: "○"}
_VERDICTS = {it: LegendSign(sign, it.value, VERDICT_STYLES[it]) for it, sign in _SIGNS.items()}
_EXPLANATION = (
    "Only results of the same execution are compared: the same system, framework, threads, batch size, precision, "
    "level and method, except for what each side has one value of. A change of a model counts from "
    f"{percent(USUAL_SHARE)} on, that of a brick from {percent(BRICKS.by)} on, and with fewer than {FEWEST_PROCESSES} "
    f"runs on a side from {percent(MOST_APART)} more on, if the samples (Mann-Whitney test) and the latencies (t-test) "
    "both say that it is no chance: p is below 0.05, corrected for the number of models or bricks (Benjamini and "
    "Hochberg). A brick counts once in each context. `same`: the interval reaches at most "
    f"{percent(USUAL_SHARE)} to either side. `unknown`: samples or runs are too few, or vary too much."
)
_COLUMNS = (
    *("name", "verdict", "change", "low", "high", "first_ms", "second_ms", "p_value", "first_samples"),
    *("second_samples", "execution", "second_execution", "system", "second_system", "context", "key", "why_unknown"),
    *("first_results", "second_results"),
)
_DETAILS = (
    *("second_execution", "system", "second_system", "context", "key", "first_results", "second_results"),
    *("first_samples", "second_samples"),
)


def letters(number: int) -> str:
    """Return the letter of a side: A, B, ... Z, and numbers after them."""
    return chr(ord("A") + number) if number < 26 else str(number + 1)


def changes_section(comparisons: Sequence[GroupComparison]) -> Section:
    """Return the section of the changes from the first side to each other one."""
    exhibits = tuple([it for number, found in enumerate(comparisons, 1) for it in _exhibits(number, found)])
    return Section(
        "What became slower or faster?",
        "regressions",
        _EXPLANATION,
        exhibits,
        missing=tuple([line for number, found in enumerate(comparisons, 1) for line in _missing(number, found)]),
        answer=" ".join([_answer(number, it) for number, it in enumerate(comparisons, 1)]),
    )


def _answer(number: int, found: GroupComparison) -> str:
    way = f"From A to {letters(number)}"
    told = [_counts(pairs, noun) for pairs, noun in ((found.models, "model"), (found.bricks, "brick")) if pairs]
    return f"{way}, {', and '.join(told) or 'nothing can be compared'}."


def _counts(pairs: Sequence[ResultPair], noun: str) -> str:
    return f"of {counted(len(pairs), noun)} {verdict_counts([it.change.verdict for it in pairs])}"


def _exhibits(number: int, found: GroupComparison) -> Iterator[Exhibit]:
    letter = letters(number)
    for kind, pairs in (("model", found.models), ("brick", found.bricks)):
        if pairs:
            yield _changes(f"{kind}s", letter, pairs)
    rows = [_alone_row(it, own) for own, alone in zip(("A", letter), found.alone, strict=True) for it in alone]
    if rows:
        columns = ("only_in", "of", "name", "why", "execution", "system", "context", "key")
        first = f": the first {_MOST_ALONE} of {len(rows):,}" if len(rows) > _MOST_ALONE else ""
        exact = csv_table(columns, rows, ("context", "key"), _MOST_ALONE)
        yield Exhibit(f"table-alone-{letter.lower()}", f"Of A or {letter} only{first}", "", exact)


def _changes(what: str, letter: str, pairs: Sequence[ResultPair]) -> Exhibit:
    name, title = f"figure-{what}-{letter.lower()}", f"{what.capitalize()}, from A to {letter}"
    drawn = _drawn(pairs)
    caption = f"{_false_alarms(pairs, what)}{_shown_of(pairs)}"
    labels = row_labels([(it.name, _circumstances(it.executions.first)) for it in drawn])
    ratios = [[DrawnRatio(_VERDICTS[it.change.verdict], it.change.ratio, *it.change.ratios)] for it in drawn]
    many = f" The picture has {len(drawn)} of them." if len(drawn) < len(pairs) else ""
    says = f"A row for each of {len(drawn)} {what}, with the change of its latency and its 95 % interval."
    svg = drawing.draw(name, title, ratio_rows(f"latency in {letter} against A", says, labels, ratios))
    exact = csv_table(_COLUMNS, list(map(_row, pairs)), _DETAILS, _MOST_ROWS)
    return Exhibit(name, title, caption + many, exact, svg)


def _circumstances(execution: ResultExecution) -> Sequence[str]:
    return *execution.in_words.split(", "), execution.system


def _drawn(pairs: Sequence[ResultPair]) -> list[ResultPair]:
    """Return the largest changes to either side, and after them others if there is room."""
    ranks: Counter[Verdict] = Counter()
    places: list[tuple[bool, int]] = []
    for number, it in enumerate(pairs):
        ranks[it.change.verdict] += 1
        is_large = it.change.verdict in _OF_EITHER_SIDE and ranks[it.change.verdict] <= _MOST_DRAWN // 2
        places.append((not is_large, number))
    return [pairs[number] for number in sorted(number for _, number in sorted(places)[:_MOST_DRAWN])]


def _false_alarms(pairs: Sequence[ResultPair], what: str) -> str:
    significant, together = sum(it.change.significant for it in pairs), overall(pairs)
    average = "nothing in common" if together is None else mean_words(together.ratio, together.ratios)
    return (
        f"On average {average} (geometric mean). {number_tested(pairs):,} of {len(pairs):,} {what} "
        f"were tested. {significant:,} differ significantly; at most {false_alarms(pairs):.1f} of them are expected to "
        "be false alarms. The largest changes come first."
    )


def _shown_of(rows: Sequence[object]) -> str:
    return (
        f" The table has the first {_MOST_ROWS} of {len(rows):,}, the CSV file has all."
        if len(rows) > _MOST_ROWS
        else ""
    )


def _row(pair: ResultPair) -> tuple[Cell, ...]:
    change, both = pair.change, pair.executions
    samples = [sum(len(it.samples_ms) for it in results) for results in (pair.first, pair.second)]
    return (
        *(pair.name, change.verdict.value, change.change, *change.interval, change.was_ms, change.is_ms),
        *(change.p_value, *samples, both.first.in_words, both.second.in_words, both.first.system, both.second.system),
        *(pair.subject.context, pair.subject.key, change.reason),
        *(" ".join(it.id for it in results) for results in (pair.first, pair.second)),
    )


def _alone_row(it: NotCompared, side: str) -> tuple[Cell, ...]:
    return side, it.of, it.name, it.reason, it.execution, it.system, it.context, it.key


def _missing(number: int, found: GroupComparison) -> Iterator[str]:
    """Yield what is not compared, counted and named, and what limits the verdicts."""
    letter = letters(number)
    yield from not_compared_lines(found, "A", letter)
    own, others = found.first.methods, found.second.methods
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


def _values(name: str, executions: Iterable[ResultExecution]) -> str:
    return ", ".join(sorted({value_in_words(name, it) for it in executions}))
