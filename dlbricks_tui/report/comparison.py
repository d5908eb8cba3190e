"""The page of a comparison: what is compared, what changed, and which host and version is how fast."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.api.analyses import Cell
from dlbricks_tui.api.changes import (
    MOST_ESTIMATED,
    Columns,
    ComparedRow,
    ComparedSides,
    GroupComparison,
    ResultPair,
    false_alarms,
    not_compared_lines,
    number_tested,
    overall,
)
from dlbricks_tui.api.sides import Side, SideFact, value_in_words
from dlbricks_tui.documents.comparison import VERDICT_STYLES
from dlbricks_tui.documents.outline import letters
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Rows, round_ticks
from dlbricks_tui.printable import printable
from dlbricks_tui.report.drawing import draw, series_meaning
from dlbricks_tui.report.page import CsvTable, Exhibit, PageHeading, Report, Section, written
from dlbricks_tui.report.paper import marked, thin_line
from dlbricks_tui.store.change import BRICKS, FEWEST_PROCESSES, MOST_APART, USUAL_SHARE, Verdict
from dlbricks_tui.wording.answers import verdict_counts
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
_MOST_DRAWN, _MOST_ROWS, _MOST_NAMED = 40, 200, 10
# This table is not folded.
_MOST_ALONE = 20
_SIGNS = {Verdict.SLOWER: "▶", Verdict.FASTER: "◀", Verdict.SAME: "●", Verdict.UNKNOWN: "○"}
_VERDICTS = {it: LegendSign(sign, it.value, VERDICT_STYLES[it]) for it, sign in _SIGNS.items()}


def make_comparison(compared: ComparedSides, folder: Path) -> Report:
    """Draw the figures of a comparison and write its page into a folder."""
    sections = (
        sides_section(compared.sides, compared.facts),
        changes_section(compared.comparisons),
        hosts_section(compared.hosts),
        _columns_section(
            "Which version is how fast?",
            "versions",
            "The end-to-end latency of each model by framework, by the version of each framework, and by the version "
            "of dlbricks, over that by the first one, in the same execution.",
            compared.versions,
            "All results are of one version of one framework, as far as they tell.",
        ),
    )
    lead = " · ".join(it.name for it in compared.sides)
    about = "Rows of changes have the ids of the results behind them; `dlbricks results show ID` shows a result."
    return written(folder, PageHeading("Results side by side", (lead,), about), None, sections)


def sides_section(sides: Sequence[Side], facts: Sequence[SideFact]) -> Section:
    """Return the section of what is compared."""
    columns = ("what", *map(letters, range(len(sides))))
    rows = [(it.name, *(value or None for value in it.values)) for it in facts]
    differing = {it.name for it in facts if it.differs}
    exhibits = [Exhibit("table-sides", "The sides", f"{counted(len(sides), 'side')}.", CsvTable(columns, rows))]
    answer = f"{', '.join(f'{letters(number)} is {it.name}' for number, it in enumerate(sides))}. "
    if differing:
        differences = CsvTable(columns, [row for row in rows if row[0] in differing])
        exhibits.append(Exhibit("table-differences", "Differences", "Circumstances that differ.", differences))
        answer += f"They differ in: {', '.join(it.name for it in facts if it.differs)}."
    else:
        answer += "They tell no difference in systems, runtimes, versions and methods."
    missing = []
    for number, side in enumerate(sides):
        runs = {it.run for it in side.results}
        if untold := len(runs - {it.run for it in side.origins}):
            missing.append(
                f"{letters(number)} does not tell the versions of packages and the state of the host for "
                f"{untold:,} of its {counted(len(runs), 'run')}."
            )
        if side.refused:
            lines = counted(len(side.refused), "line")
            missing.append(f"{letters(number)} has {lines} without a record, the first: {side.refused[0]}.")
    return Section(
        "What is being compared?",
        "sides",
        "Each side is a file of results, or a selection of the store. Results in doubt are not compared.",
        tuple(exhibits),
        missing=tuple(missing),
        answer=answer,
    )


def changes_section(comparisons: Sequence[GroupComparison]) -> Section:
    """Return the section of the models and bricks that became slower or faster from the first side to each other."""
    exhibits: list[Exhibit] = []
    missing, answers = list[str](), []
    for number, found in enumerate(comparisons, 1):
        letter, told = letters(number), []
        for noun, pairs in (("model", found.models), ("brick", found.bricks)):
            if pairs:
                exhibits.append(_changes(f"{noun}s", letter, pairs))
                told.append(f"of {counted(len(pairs), noun)} {verdict_counts([it.change.verdict for it in pairs])}")
        exhibits += _alone(letter, found)
        missing += _limits(letter, found)
        answers.append(f"From A to {letter}, {', and '.join(told) or 'nothing can be compared'}.")
    return Section(
        "What became slower or faster?",
        "regressions",
        "Only results of the same execution are compared: the same system, framework, threads, batch size, precision, "
        "level and method, except for what each side has one value of. A change of a model counts from "
        f"{percent(USUAL_SHARE)} on, that of a brick from {percent(BRICKS.by)} on, and with fewer than "
        f"{FEWEST_PROCESSES} runs on a side from {percent(MOST_APART)} more on, if the samples (Mann-Whitney test) and "
        "the latencies (t-test) both say that it is no chance: p is below 0.05, corrected for the number of models or "
        "bricks (Benjamini and Hochberg). A brick counts once in each context. `same`: the interval reaches at most "
        f"{percent(USUAL_SHARE)} to either side. `unknown`: samples or runs are too few, or vary too much.",
        tuple(exhibits),
        missing=tuple(missing),
        answer=" ".join(answers),
    )


def _changes(what: str, letter: str, pairs: Sequence[ResultPair]) -> Exhibit:
    name, title = f"figure-{what}-{letter.lower()}", f"{what.capitalize()}, from A to {letter}"
    significant, together = sum(it.change.significant for it in pairs), overall(pairs)
    average = "nothing in common" if together is None else _mean_words(together.ratio, together.ratios)
    caption = (
        f"On average {average} (geometric mean). {number_tested(pairs):,} of {len(pairs):,} {what} "
        f"were tested. {significant:,} differ significantly; at most {false_alarms(pairs):.1f} of them are expected to "
        "be false alarms. The largest changes come first."
    )
    if len(pairs) > _MOST_ROWS:
        caption += f" The table has the first {_MOST_ROWS} of {len(pairs):,}, the CSV file has all."
    # The largest changes to either side, and after them others if there is room.
    ranks: Counter[Verdict] = Counter()
    places: list[tuple[bool, int]] = []
    for number, it in enumerate(pairs):
        ranks[it.change.verdict] += 1
        is_changed = it.change.verdict in (Verdict.SLOWER, Verdict.FASTER)
        places.append((not (is_changed and ranks[it.change.verdict] <= _MOST_DRAWN // 2), number))
    drawn = [pairs[number] for number in sorted(number for _, number in sorted(places)[:_MOST_DRAWN])]
    caption += f" The picture has {len(drawn)} of them." if len(drawn) < len(pairs) else ""
    executions = [(it.name, it.executions.first) for it in drawn]
    labels = row_labels([(named, [*first.in_words.split(", "), first.system]) for named, first in executions])
    ratios = [[DrawnRatio(_VERDICTS[it.change.verdict], it.change.ratio, *it.change.ratios)] for it in drawn]
    says = f"A row for each of {len(drawn)} {what}, with the change of its latency and its 95 % interval."
    svg = draw(name, title, ratio_rows(f"latency in {letter} against A", says, labels, ratios))
    rows: list[tuple[Cell, ...]] = []
    for it in pairs:
        change, first, second = it.change, it.executions.first, it.executions.second
        latencies = change.verdict.value, change.change, *change.interval, change.was_ms, change.is_ms, change.p_value
        samples = [sum(len(each.samples_ms) for each in results) for results in (it.first, it.second)]
        where = first.in_words, second.in_words, first.system, second.system
        ids = [" ".join(each.id for each in results) for results in (it.first, it.second)]
        rows.append((it.name, *latencies, *samples, *where, it.subject.context, it.subject.key, change.reason, *ids))
    columns = (
        *("name", "verdict", "change", "low", "high", "first_ms", "second_ms", "p_value", "first_samples"),
        *("second_samples", "execution", "second_execution", "system", "second_system", "context", "key"),
        *("why_unknown", "first_results", "second_results"),
    )
    details = (
        *("second_execution", "system", "second_system", "context", "key", "first_results", "second_results"),
        *("first_samples", "second_samples"),
    )
    return Exhibit(name, title, caption, CsvTable(columns, rows, details, _MOST_ROWS), svg)


def _alone(letter: str, found: GroupComparison) -> Iterator[Exhibit]:
    """Yield a table of the models and bricks that only one side has; none without any."""
    rows = [
        (own, it.of, it.name, it.reason, it.execution, it.system, it.context, it.key)
        for own, alone in zip(("A", letter), found.alone, strict=True)
        for it in alone
    ]
    if rows:
        columns = ("only_in", "of", "name", "why", "execution", "system", "context", "key")
        first = f": the first {_MOST_ALONE} of {len(rows):,}" if len(rows) > _MOST_ALONE else ""
        exact = CsvTable(columns, rows, ("context", "key"), _MOST_ALONE)
        yield Exhibit(f"table-alone-{letter.lower()}", f"Of A or {letter} only{first}", "", exact)


def _limits(letter: str, found: GroupComparison) -> Iterator[str]:
    """Yield what is not compared, counted and named, and what limits the verdicts."""
    yield from not_compared_lines(found, "A", letter)
    own, others = found.first.methods, found.second.methods
    if own != others:
        unlike = ", ".join(sorted(own ^ others))
        yield f"Results of methods that only one of A and {letter} has are not compared: {unlike}."
    for name in sorted({name for it in found.executions for name in it.differ}):
        both = [it for it in found.executions if name in it.differ]
        ones = ", ".join(sorted({value_in_words(name, it.first) for it in both}))
        theirs = ", ".join(sorted({value_in_words(name, it.second) for it in both}))
        yield f"Different, and compared all the same: {name} ({ones} in A, {theirs} in {letter})."
    if shared := len({it.id for it in found.first.results} & {it.id for it in found.second.results}):
        yield f"A and {letter} share {counted(shared, 'result')}."
    if any(len({it.run for it in group.results}) == 1 for group in (found.first, found.second)):
        yield (
            f"A or {letter} has results of one run only, so the intervals leave out how much processes differ, often "
            "some percent. Measure twice before you trust a small change."
        )


def hosts_section(hosts: Columns | None) -> Section:
    """Return the section of the systems side by side."""
    return _columns_section(
        "Which host is how fast?",
        "hosts",
        "The end-to-end latency of each model on each system, over that on the first, in the same execution. A system "
        "counts with the results of the first side that has it.",
        [] if hosts is None else [hosts],
        "All results are of one system.",
    )


def _columns_section(heading: str, anchor: str, explanation: str, found: Sequence[Columns], nothing: str) -> Section:
    answers, missing = [], list[str]()
    for it in found:
        for other in it.others:
            if other.ratio is None:
                answers.append(f"{other.name} has no model to compare with {it.first}.")
            else:
                mean = f"geometric mean of {counted(other.models, 'result')}"
                ratio = _mean_words(other.ratio, other.interval)
                answers.append(f"{other.name} takes {ratio}, as {it.first} ({mean}).")
        drawn = it.models[:MOST_ESTIMATED]
        missing += it.remarks
        if lacking := list(dict.fromkeys(row.model for row in drawn if None in _estimates(row))):
            missing.append(
                f"No estimate by {it.what} of {counted(len(lacking), 'model')} ({names_of(lacking, _MOST_NAMED)}): "
                "they are not in the library, or not all of their bricks are among the results."
            )
    return Section(
        heading,
        anchor,
        explanation,
        tuple(_columns(f"figure-{anchor}-{number}", it) for number, it in enumerate(found, 1) if it.models),
        missing=tuple(missing),
        answer=" ".join(answers) or nothing,
    )


def _columns(name: str, found: Columns) -> Exhibit:
    """Return the latencies of models side by side, relative to the first column."""
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
    cells: list[list[Cell]] = []
    for row in rows:
        cells.append([row.model, row.execution, row.ms, row.estimate_ms])
        by_name = {it.column: it for it in row.others}
        for it in map(by_name.get, series):
            nothing = [None] * 6
            cells[-1] += nothing if it is None else [it.ms, it.estimate_ms, it.ratio, *it.interval, it.verdict.value]
    cut = f" The picture has the first {len(drawn)} of {len(rows):,} rows." if len(drawn) < len(rows) else ""
    estimated = sum(it is not None for row in drawn for it in _estimates(row))
    told = f" Estimates are from bricks, for models of the library: {estimated:,} of them." if estimated else ""
    caption = f"{counted(len(rows), 'row')}, relative to {first}.{cut}{told}"
    svg = draw(name, title, ratio_rows(f"latency over that of {first}", says, labels, ratios))
    return Exhibit(name, title, caption, CsvTable(columns, cells, details, _MOST_ROWS), svg)


def _estimates(row: ComparedRow) -> list[float | None]:
    """Return the estimates of both sides of each ratio."""
    return [each for it in row.others for each in (row.estimate_ms, it.estimate_ms)]


def _mean_words(ratio: float | None, interval: tuple[float, float] | None) -> str:
    """Return a geometric mean with its interval: `0.984 times as long, 95 % 0.956 to 1.011`."""
    if ratio is None or interval is None:
        return "nothing in common"
    return f"{ratio:.3f} times as long, 95 % {interval[0]:.3f} to {interval[1]:.3f}"


class DrawnRatio(NamedTuple):
    """A ratio with its 95 % interval, and the series that it belongs to."""

    series: LegendSign
    value: float
    low: float
    high: float


def ratio_rows(axis: str, says: str, labels: Sequence[str], ratios: Sequence[Sequence[DrawnRatio]]) -> Rows:
    """Return the ratios of each label with marks and intervals, and a line at one."""
    rows = []
    for label, held in zip(labels, ratios, strict=True):
        lines = tuple(thin_line(it.low, it.high, it.series.style) for it in held)
        rows.append(BarRow(label, lines, tuple(marked(it.series, it.value) for it in held)))
    everything = [it for held in ratios for it in held]
    legend = tuple(dict.fromkeys(it.series for it in everything))
    return Rows(axis, says, ratio_axis(*ratios_shown(everything)), tuple(rows), legend, 1.0)


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
    powers = [2.0**it for it in range(begin, end + 1, max(1, -(-(end - begin) // _MOST_TICKS)))]
    ticks = tuple((it, f"{it:g}x" if it >= _LEAST_DECIMAL else f"1/{1 / it:g}x") for it in powers)
    return Axis(low, high, is_log=True, ticks=ticks)


def row_labels(named: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return labels that fit: names, and the circumstances that tell rows apart, which are kept."""
    common = set[str]().union(*(told for _, told in named)).intersection(*(told for _, told in named))
    labels = []
    for name, told in named:
        label, beside = printable(name), " ".join(it for it in told if it not in common)
        room = _LONGEST_LABEL - (len(beside) + 2 if beside else 0)
        label = label if len(label) <= room else f"{label[: max(8, room) - 1]}…"
        labels.append(f"{label}, {beside}"[:_LONGEST_LABEL] if beside else label)
    return labels
