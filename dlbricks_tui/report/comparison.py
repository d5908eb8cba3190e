"""The page of a comparison: what is compared, what changed, and which host and version is how fast."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.answers.analysis.results import Cell
from dlbricks_tui.answers.comparisons.changes import (
    GroupComparison,
    NotCompared,
    ResultPair,
    false_alarms,
    not_compared_lines,
    number_tested,
    overall,
)
from dlbricks_tui.answers.comparisons.columns import MOST_ESTIMATED, Columns, ComparedCell, ComparedRow
from dlbricks_tui.answers.comparisons.compared_sides import ComparedSides
from dlbricks_tui.answers.comparisons.matching import value_in_words
from dlbricks_tui.answers.comparisons.side_facts import SideFact
from dlbricks_tui.answers.comparisons.sides import ResultExecution, Side
from dlbricks_tui.documents.comparison import VERDICT_STYLES
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Rows, round_ticks
from dlbricks_tui.printable import printable
from dlbricks_tui.report import drawing
from dlbricks_tui.report.page import Exhibit, PageHeading, Report, Section, csv_table, written
from dlbricks_tui.report.paper import marked, series_meaning, thin_line
from dlbricks_tui.store.change import BRICKS, FEWEST_PROCESSES, MOST_APART, USUAL_SHARE, Verdict
from dlbricks_tui.wording.checks import verdict_counts
from dlbricks_tui.wording.numbers import counted, names_of, percent

_LONGEST_LABEL = 37
_ROOM = 0.04
# Beyond this ratio the axis is logarithmic.
_MOST_LINEAR = 1.8
# Intervals may be much wider than the changes, which have to stay visible: a share of the range of the ratios.
_MOST_BEYOND = 0.3
_LEAST_CHANGE = 0.01
_MOST_TICKS = 6
# Smaller ratios are shown as fractions.
_LEAST_DECIMAL = 0.2


class DrawnRatio(NamedTuple):
    """A ratio with its 95 % interval, and the series that it belongs to."""

    series: LegendSign
    value: float
    low: float
    high: float


def ratio_rows(axis: str, says: str, labels: Sequence[str], ratios: Sequence[Sequence[DrawnRatio]]) -> Rows:
    """Return the ratios of each label, with a line at one."""
    low, high = ratios_shown([it for held in ratios for it in held])
    rows = [
        BarRow(
            label,
            tuple(thin_line(it.low, it.high, it.series.style) for it in held),
            tuple(marked(it.series, it.value) for it in held),
        )
        for label, held in zip(labels, ratios, strict=True)
    ]
    legend = tuple(dict.fromkeys(it.series for held in ratios for it in held))
    return Rows(axis, says, ratio_axis(low, high), tuple(rows), legend, 1.0)


def ratios_shown(ratios: Sequence[DrawnRatio]) -> tuple[float, float]:
    """Return the least and the largest ratio of the axis, in which one and all ratios lie."""
    logs = [0.0, *(math.log(it.value) for it in ratios if it.value > 0)]
    least, largest = min(logs), max(logs)
    reach = max(math.log1p(_LEAST_CHANGE), _MOST_BEYOND * (largest - least))
    lows = [math.log(it.low) if it.low > 0 else -math.inf for it in ratios]
    highs = [math.log(it.high) if it.high > 0 else math.inf for it in ratios]
    least = max(least - reach, min([least, *lows]))
    largest = min(largest + reach, max([largest, *highs]))
    room = max(math.log1p(_LEAST_CHANGE), _ROOM * (largest - least))
    return math.exp(least - room), math.exp(largest + room)


def ratio_axis(low: float, high: float) -> Axis:
    """Return an axis of changes in percent; one of powers of two where they are large."""
    if low >= 1 / _MOST_LINEAR and high <= _MOST_LINEAR:
        ticks = round_ticks(Axis(100 * (low - 1.0), 100 * (high - 1.0)), _MOST_TICKS)
        return Axis(low, high, ticks=tuple((1.0 + value / 100, f"{value + 0.0:+g} %") for value, _ in ticks))
    begin, end = math.ceil(math.log2(low)), math.floor(math.log2(high))
    powers = range(begin, end + 1, max(1, -(-(end - begin) // _MOST_TICKS)))
    return Axis(low, high, is_log=True, ticks=tuple((2.0**it, _times(2.0**it)) for it in powers))


def row_labels(named: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return labels that fit: names, and the circumstances that tell rows apart, which are kept."""
    common = set[str]().union(*(told for _, told in named)).intersection(*(told for _, told in named))
    return [_label(printable(name), " ".join(it for it in told if it not in common)) for name, told in named]


def _label(name: str, beside: str) -> str:
    room = _LONGEST_LABEL - (len(beside) + 2 if beside else 0)
    short = name if len(name) <= room else f"{name[: max(8, room) - 1]}…"
    return f"{short}, {beside}"[:_LONGEST_LABEL] if beside else short


def _times(ratio: float) -> str:
    return f"{ratio:g}x" if ratio >= _LEAST_DECIMAL else f"1/{1 / ratio:g}x"


_MOST_ROWS = 200
_MOST_NAMED = 10


def hosts_section(hosts: Columns | None) -> Section:
    """Return the section of the systems side by side."""
    return _section(
        "Which host is how fast?",
        "hosts",
        "The end-to-end latency of each model on each system, over that on the first, in the same execution. A system "
        "counts with the results of the first side that has it.",
        [] if hosts is None else [hosts],
        "All results are of one system.",
    )


def versions_section(versions: Sequence[Columns]) -> Section:
    """Return the section of the versions side by side."""
    return _section(
        "Which version is how fast?",
        "versions",
        "The end-to-end latency of each model by framework, by the version of each framework, and by the version of "
        "dlbricks, over that by the first one, in the same execution.",
        versions,
        "All results are of one version of one framework, as far as they tell.",
    )


def mean_words(ratio: float | None, interval: tuple[float, float] | None) -> str:
    """Return a geometric mean with its interval: `0.984 times as long, 95 % 0.956 to 1.011`."""
    if ratio is None or interval is None:
        return "nothing in common"
    return f"{ratio:.3f} times as long, 95 % {interval[0]:.3f} to {interval[1]:.3f}"


def _section(heading: str, anchor: str, explanation: str, found: Sequence[Columns], nothing: str) -> Section:
    return Section(
        heading,
        anchor,
        explanation,
        tuple([_exhibit(f"figure-{anchor}-{number}", it) for number, it in enumerate(found, 1) if it.models]),
        missing=tuple([line for it in found for line in (*it.remarks, *_unestimated(it))]),
        answer=" ".join(line for it in found for line in _answers(it)) or nothing,
    )


def _answers(found: Columns) -> Iterator[str]:
    for it in found.others:
        if it.ratio is None:
            yield f"{it.name} has no model to compare with {found.first}."
        else:
            mean = f"geometric mean of {counted(it.models, 'result')}"
            yield f"{it.name} takes {mean_words(it.ratio, it.interval)}, as {found.first} ({mean})."


def _exhibit(name: str, found: Columns) -> Exhibit:
    rows, first = found.models, found.first
    title, drawn = f"By {found.what}", rows[:MOST_ESTIMATED]
    series = {it.name: series_meaning(number, it.name) for number, it in enumerate(found.others)}
    labels = row_labels([(it.model, it.execution.split(", ")) for it in drawn])
    ratios = [[DrawnRatio(series[it.column], it.ratio, *it.interval) for it in row.others] for row in drawn]
    says = f"A row for each of {len(drawn)} models, with the latency over that of {first} and its 95 % interval."
    columns, details = ["model", "execution", f"{first} ms", f"{first} estimate ms"], list[str]()
    for own in series:
        columns += [f"{own} {it}" for it in ("ms", "estimate ms", "ratio", "low", "high", "verdict")]
        details += [f"{own} low", f"{own} high"]
    cut = f" The picture has the first {len(drawn)} of {len(rows):,} rows." if len(drawn) < len(rows) else ""
    estimated = sum(it is not None for row in drawn for it in _estimates(row))
    told = f" Estimates are from bricks, for models of the library: {estimated:,} of them." if estimated else ""
    return Exhibit(
        name,
        title,
        f"{counted(len(rows), 'row')}, relative to {first}.{cut}{told}",
        csv_table(columns, [_cells(it, list(series)) for it in rows], details, _MOST_ROWS),
        drawing.draw(name, title, ratio_rows(f"latency over that of {first}", says, labels, ratios)),
    )


def _cells(row: ComparedRow, names: Sequence[str]) -> tuple[Cell, ...]:
    by_name = {it.column: it for it in row.others}
    others = (cell for name in names for cell in _cells_of(by_name.get(name)))
    return row.model, row.execution, row.ms, row.estimate_ms, *others


def _cells_of(it: ComparedCell | None) -> tuple[Cell, ...]:
    if it is None:
        return (None,) * 6
    return it.ms, it.estimate_ms, it.ratio, *it.interval, it.verdict.value


def _estimates(row: ComparedRow) -> Iterator[float | None]:
    """Yield the estimates of both sides of each ratio."""
    for it in row.others:
        yield from (row.estimate_ms, it.estimate_ms)


def _unestimated(found: Columns) -> Iterator[str]:
    lacking = list(dict.fromkeys(it.model for it in found.models[:MOST_ESTIMATED] if None in _estimates(it)))
    if lacking:
        yield (
            f"No estimate by {found.what} of {counted(len(lacking), 'model')} ({names_of(lacking, _MOST_NAMED)}): they "
            "are not in the library, or not all of their bricks are among the results."
        )


_MOST_DRAWN = 40
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
        missing=tuple([line for number, found in enumerate(comparisons, 1) for line in _limits(number, found)]),
        answer=" ".join([_change_answer(number, it) for number, it in enumerate(comparisons, 1)]),
    )


def _change_answer(number: int, found: GroupComparison) -> str:
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


def _limits(number: int, found: GroupComparison) -> Iterator[str]:
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


_TITLE = "Results side by side"
_ABOUT_FILES = "Rows of changes have the ids of the results behind them; `dlbricks results show ID` shows a result."


def make_comparison(compared: ComparedSides, folder: Path) -> Report:
    """Draw the figures of a comparison and write its page into a folder."""
    sections = (
        sides_section(compared.sides, compared.facts),
        changes_section(compared.comparisons),
        hosts_section(compared.hosts),
        versions_section(compared.versions),
    )
    lead = " · ".join(it.name for it in compared.sides)
    return written(folder, PageHeading(_TITLE, (lead,), _ABOUT_FILES), None, sections)


def sides_section(sides: Sequence[Side], facts: Sequence[SideFact]) -> Section:
    """Return the section of what is compared."""
    columns = ("what", *(letters(number) for number in range(len(sides))))
    rows = [(it.name, *(value or None for value in it.values)) for it in facts]
    differing = [it for it in facts if it.differs]
    names = {it.name for it in differing}
    exhibits = [Exhibit("table-sides", "The sides", f"{counted(len(sides), 'side')}.", csv_table(columns, rows))]
    if differing:
        differences = csv_table(columns, [row for row in rows if row[0] in names])
        exhibits.append(Exhibit("table-differences", "Differences", "Circumstances that differ.", differences))
    return Section(
        "What is being compared?",
        "sides",
        "Each side is a file of results, or a selection of the store. Results in doubt are not compared.",
        tuple(exhibits),
        missing=tuple(_missing(sides)),
        answer=_answer(sides, differing),
    )


def _answer(sides: Sequence[Side], differing: Sequence[SideFact]) -> str:
    told = ", ".join(f"{letters(number)} is {it.name}" for number, it in enumerate(sides))
    if not differing:
        return f"{told}. They tell no difference in systems, runtimes, versions and methods."
    return f"{told}. They differ in: {', '.join(it.name for it in differing)}."


def _missing(sides: Sequence[Side]) -> Iterator[str]:
    for number, side in enumerate(sides):
        runs = {it.run for it in side.results}
        untold = len(runs - {it.run for it in side.origins})
        if untold:
            yield (
                f"{letters(number)} does not tell the versions of packages and the state of the host for "
                f"{untold:,} of its {counted(len(runs), 'run')}."
            )
        if side.refused:
            lines = counted(len(side.refused), "line")
            yield f"{letters(number)} has {lines} without a record, the first: {side.refused[0]}."
