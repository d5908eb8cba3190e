"""Two things, or two selections of results, side by side; and the results of an evaluation beside earlier ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from dlbricks_tui.api.evaluating import ComparedResult, EvaluatedLoad, EvaluatedResult, EvaluationResult
from dlbricks_tui.api.open_models import PairKind
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    CellKind,
    Column,
    Heading,
    Part,
    Sentence,
    Table,
    name_column,
    word_column,
)
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Mark, Rows
from dlbricks_tui.evaluations.evaluation import SHORT_HASH
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.runtime.variant import Variant, variant_in_words
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording.answers import verdict_counts
from dlbricks_tui.wording.jobs import kind_in_words, percentile_name
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    age,
    counted,
    in_ms,
    milliseconds,
    minute_of,
    or_dash,
    p_words,
    percent,
    seconds_since,
    signed_ms,
    signed_percent,
    with_interval,
)

if TYPE_CHECKING:
    from dlbricks_tui.api.changes import ComparedPair, ComparedResults
    from dlbricks_tui.api.pairs import ComparedPart, ComparedTwo
    from dlbricks_tui.api.sides import NamedSelection

# Three decimals would not tell small latencies apart.
_precise = partial(milliseconds, precise=True)
VERDICT_STYLES = {Verdict.SLOWER: "bad", Verdict.FASTER: "good", Verdict.SAME: "muted", Verdict.UNKNOWN: "warn"}


def comparison_parts(found: ComparedTwo, most: int) -> Iterator[Part]:
    """Yield the whole comparison, with so many of its parts."""
    yield Sentence(question_words(found.of, found.a.name, found.b.name))
    yield Sentence(answer_words(found), "strong")
    yield BLANK_LINE
    yield from side_parts(found)
    if shown := found.parts[:most]:
        yield BLANK_LINE
        yield Table(part_columns(found), shown)
    yield from difference_parts(found)


def question_words(of: str, first: str, second: str) -> str:
    """Return what is asked: `Which model is faster: A alexnet or B vgg16?`."""
    what = "" if of in (PairKind.RESULT, PairKind.SELECTION) else f" {of}"
    return f"Which{what} is faster: A {printable(first)} or B {printable(second)}?"


def answer_words(found: ComparedTwo) -> str:
    """Return the verdict with the ratio and its interval, in one sentence."""
    interval = f"(95 % {_ratio(found.interval[0])} to {_ratio(found.interval[1])})"
    if found.verdict is Verdict.FASTER:
        return f"B is faster: it takes {_ratio(found.ratio)} times as long as A {interval}."
    if found.verdict is Verdict.SLOWER:
        return f"A is faster: B takes {_ratio(found.ratio)} times as long {interval}."
    why = f"; {found.reason}" if found.reason else ""
    told = "They take about the same time" if found.verdict is Verdict.SAME else "They cannot be told apart"
    return f"{told}: B takes {_ratio(found.ratio)} times as long as A {interval}{why}."


def side_parts(found: ComparedTwo) -> Iterator[Part]:
    """Yield the latency of each side, and how old it is."""
    for letter, side in zip("AB", (found.a, found.b), strict=True):
        latency = PREDICTED * side.how.endswith("predicted") + with_interval(side.ms, *side.interval)
        old = f", {age(seconds_since(side.since))} old" if side.since else ""
        yield Sentence(f"{letter}  {side.name}: {latency}, {side.how}{old}")


def difference_parts(found: ComparedTwo) -> Iterator[Part]:
    """Yield the circumstances that differ, and remarks."""
    yield Heading("What else differs")
    if found.differences:
        yield Table(_DIFFERENCE_COLUMNS, list(found.differences.items()))
    else:
        yield Sentence("nothing that the store tells")
    if found.remarks:
        yield BLANK_LINE
        yield from map(Sentence, found.remarks)


_DIFFERENCE_COLUMNS: tuple[Column[tuple[str, tuple[str, str]]], ...] = (
    Column("", lambda it: it[0], CellKind.NAME, "muted"),
    Column("A", lambda it: it[1][0] or "-", CellKind.SENTENCE),
    Column("B", lambda it: it[1][1] or "-", CellKind.SENTENCE),
)


def part_columns(found: ComparedTwo) -> tuple[Column[ComparedPart], ...]:
    """Return the columns of the parts of both; sums of layers have no verdicts."""
    has_verdicts = any(it.verdict is not None for it in found.parts)
    return (
        name_column(found.parts_are, lambda it: it.name),
        Column("A ms", lambda it: or_dash(_precise, it.a_ms)),
        Column("B ms", lambda it: or_dash(_precise, it.b_ms)),
        Column("B - A", _difference, style=_style, is_optional=True, goes_last=True),
        Column("change", lambda it: or_dash(signed_percent, it.change), style=_style),
        *((_P_COLUMN,) if any(it.p_value is not None for it in found.parts) else ()),
        *((word_column("B is", verdict_words, _style),) if has_verdicts else ()),
    )


_P_COLUMN: Column[Any] = Column("p", lambda it: p_words(it.p_value), style="muted", is_optional=True)


def verdict_words(part: ComparedPart) -> str:
    """Return the verdict on a part; empty for sums."""
    return "" if part.verdict is None else part.verdict.value


def _style(part: ComparedPart) -> str:
    return "text" if part.verdict is None else VERDICT_STYLES[part.verdict]


def _difference(part: ComparedPart) -> str:
    return f"{'+' if part.difference_ms > 0 else ''}{_precise(part.difference_ms)}"


def _ratio(ratio: float) -> str:
    if ratio >= 100:
        return f"{ratio:,.0f}"
    return f"{ratio:.3g}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


NOTHING_IN_COMMON = (
    "They have no brick in the same context and no model in common in executions that correspond: where one has "
    "several, a filter such as threads=1 chooses."
)


def selection_parts(sides: Sequence[NamedSelection]) -> Iterator[Sentence]:
    """Yield what is compared."""
    for letter, side in zip("AB", sides, strict=True):
        yield Sentence(f"{letter}: {side.words}, {counted(len(side.selection), 'result')}")


def ratio_parts(found: ComparedResults) -> Iterator[Sentence]:
    """Yield the ratio of the models, or without any the bricks, and how many have which verdict."""
    if found.ratio is None or found.interval is None:
        return
    low, high = found.interval
    models = sum(it.of == "model" for it in found.pairs)
    over = counted(models, "model") if models else counted(len(found.pairs), "brick")
    mean = f"95 % {low:.3f} to {high:.3f}, geometric mean of {over}"
    together = f"{_precise(found.a.total_ms)} and {in_ms(found.b.total_ms)}"
    yield Sentence(f"B takes {found.ratio:.3f} times as long ({mean}); together {together}", "strong")
    # Some are in both, but cannot be compared: they take no time.
    alone = f"not compared: {found.a.alone:,} of A, {found.b.alone:,} of B"
    yield Sentence(f"{verdict_counts([it.verdict for it in found.pairs])}; {alone}")
    reasons = Counter(it.reason for it in found.pairs if it.reason)
    yield from (Sentence(f"unknown ({count:,}): {reason}") for reason, count in reasons.most_common())


def pair_columns(pairs: Sequence[ComparedPair]) -> tuple[Column[ComparedPair], ...]:
    """Return the columns of the bricks and models that both have; that of the runtime where there are several."""

    def style(it: ComparedPair) -> str:
        return VERDICT_STYLES[it.verdict]

    return (
        name_column("brick or model", lambda it: f"{it.name} [{it.context}]" if it.context else it.name),
        *((name_column("runtime", lambda it: it.execution),) if len({it.execution for it in pairs}) > 1 else ()),
        Column("A ms", lambda it: _precise(it.a_ms)),
        Column("B ms", lambda it: _precise(it.b_ms)),
        Column("change", lambda it: signed_percent(it.change), style=style),
        _P_COLUMN,
        word_column("B is", lambda it: it.verdict.value, style),
    )


_BAR = LegendSign("=", "", "bar", "█")
_BOUND = LegendSign("|", "95 % interval", "strong")
_MORE = LegendSign("+", "B takes longer", "bad", "▓")
_LESS = LegendSign("-", "B takes less", "good", "░")
# The largest differences; the others are one step.
_MOST_STEPS = 7
# Parts that make up all but this share of both latencies explain the difference.
_LEFT_OUT = 0.15
_SMALLEST = 1e-9


def latencies_picture(found: ComparedTwo) -> Rows:
    """Return A and B as bars; the faster one is green where they can be told apart."""
    # Empty where they cannot be told apart.
    faster = {Verdict.FASTER: "B", Verdict.SLOWER: "A"}.get(found.verdict, "")
    sides = list(zip("AB", (found.a, found.b), strict=True))
    rows = []
    for letter, side in sides:
        style = "good" if letter == faster else "bar"
        bounds = tuple(Mark(bound, _BOUND.mark, _BOUND.style) for bound in side.interval)
        bar = (_BAR.piece(0.0, side.ms, style),)
        rows.append(BarRow(f"{letter} {side.name}", bar, bounds, in_ms(side.ms), style if faster == letter else "text"))
    steps = _steps(found)
    rows += steps
    longest = max(
        *(max(side.ms, side.interval[1]) for _, side in sides), *(it.high for row in steps for it in row.pieces)
    )
    says = ", ".join(f"{letter} {in_ms(side.ms)} ({side.how})" for letter, side in sides)
    meanings = (_BOUND, *((_MORE, _LESS) if steps else ()))
    if steps and faster:
        largest = max(found.parts, key=lambda it: abs(it.difference_ms))
        says += f", most of all by {largest.name} ({signed_ms(largest.difference_ms)})"
    return Rows("ms, shorter is better", f"{says}.", Axis(0.0, longest), tuple(rows), meanings)


def _steps(found: ComparedTwo) -> list[BarRow]:
    """Return the differences of the parts one after another, from A to B; none where they explain too little."""
    sums = [math.fsum(part.a_ms or 0.0 for part in found.parts), math.fsum(part.b_ms or 0.0 for part in found.parts)]
    if any(abs(total - side.ms) > _LEFT_OUT * side.ms for total, side in zip(sums, (found.a, found.b), strict=True)):
        return []
    ordered = sorted(found.parts, key=lambda it: -abs(it.difference_ms))
    named = [(it.name, it.difference_ms) for it in ordered[:_MOST_STEPS]]
    rest = found.b.ms - found.a.ms - math.fsum(it for _, it in named)
    rows, begin = [], found.a.ms
    for name, difference in [*named, ("all else", rest)]:
        end = begin + difference
        if abs(difference) > _SMALLEST:
            sign = _MORE if difference > 0 else _LESS
            piece = sign.piece(max(0.0, min(begin, end)), max(0.0, begin, end))
            rows.append(BarRow(name, (piece,), text=signed_ms(difference), style="muted"))
        begin = end
    return rows


def results_parts(result: EvaluationResult) -> Iterator[Part]:
    """Yield the name of an evaluation, its results and scenarios, and the requirements that they did not meet."""
    name = result.evaluation
    # The number of each requirement that some result does not meet.
    unmet = [*(it.unmet for it in result.results), *(it.unmet for it in result.scenarios)]
    marks = {text: number for number, text in enumerate(dict.fromkeys(chain.from_iterable(unmet)), start=1)}
    yield Sentence(f"evaluation {name.name} ({name.file}, sha256 {name.sha256[:SHORT_HASH]})")
    if result.results:
        yield BLANK_LINE
        yield Table(_result_columns(marks), result.results)
        yield Sentence("latencies in milliseconds")
    if result.scenarios:
        yield BLANK_LINE
        yield Table(_load_columns(marks), result.scenarios)
    if marks:
        yield BLANK_LINE
        yield from (Sentence(f"[{number}] {text}") for text, number in marks.items())


def compared_parts(result: EvaluationResult, by: float) -> Iterator[Part]:
    """Yield today's latencies beside the earlier ones, and the differences of each."""
    compared = result.comparison or ()
    where = "in the file" if result.compared_with == "file" else "of the store"
    yield Sentence(f"compared with the earlier results {where}; a change of up to {percent(by, 1)} counts as none")
    yield BLANK_LINE
    yield Table(_COMPARED_COLUMNS, compared)
    yield from _grouped("unknown", [(it.reason,) if it.reason else () for it in compared], compared)
    yield from _grouped("different", [tuple([each.in_words for each in it.differences]) for it in compared], compared)
    if any(it.per_item for it in compared):
        yield BLANK_LINE
        yield Sentence("latencies of results with another batch size are those of one item")


def _grouped(title: str, words: Sequence[tuple[str, ...]], compared: Sequence[ComparedResult]) -> Iterator[Part]:
    """Yield the words about each result below the names of all results that have the same words."""
    named: dict[tuple[str, ...], list[str]] = {}
    for it, told in zip(compared, words, strict=True):
        if told:
            named.setdefault(told, []).append(f"{it.model}, {runtime_title(it.framework)}, {_variant(it)}")
    for told, results in named.items():
        yield BLANK_LINE
        yield Sentence(f"{title} for {'all' if len(results) == len(compared) else '; '.join(results)}:")
        yield from (Sentence(f"  {each}") for each in told)


def _marked(it: EvaluatedResult | EvaluatedLoad, marks: Mapping[str, int]) -> str:
    return " ".join([it.model, *(f"[{marks[text]}]" for text in it.unmet)])


def _result_columns(marks: Mapping[str, int]) -> tuple[Column[EvaluatedResult], ...]:
    return (
        name_column("model", lambda it: _marked(it, marks)),
        name_column("runtime", lambda it: f"{runtime_title(it.framework)} {it.version}"),
        name_column("variant", lambda it: variant_in_words(it)),
        Column("when", lambda it: _minute(it.when), CellKind.NAME, is_optional=True),
        Column("end to end", lambda it: or_dash(_precise, it.measured_ms)),
        Column("95 % interval", lambda it: _interval(it.measured_interval_ms, _precise), is_optional=True),
        Column("estimate", lambda it: or_dash(_precise, it.estimate_ms)),
        Column("samples", lambda it: str(it.samples) if it.samples else "-", is_optional=True),
    )


def _load_columns(marks: Mapping[str, int]) -> tuple[Column[EvaluatedLoad], ...]:
    return (
        name_column("model", lambda it: _marked(it, marks)),
        name_column("runtime", lambda it: it.runtime.split(" ")[0]),
        name_column("scenario", _scenario),
        Column("when", lambda it: _minute(it.measured and it.measured.when), CellKind.NAME, is_optional=True),
        Column("percentile", lambda it: percentile_name(it.percentile)),
        Column("latency", lambda it: or_dash(_precise, it.measured and it.measured.percentile_ms)),
        Column("per second", lambda it: or_dash(milliseconds, it.measured and it.measured.per_second)),
        Column("valid", lambda it: _yes(it.measured and it.measured.valid), is_optional=True),
    )


_COMPARED_COLUMNS: tuple[Column[ComparedResult], ...] = (
    name_column("model", lambda it: it.model),
    name_column("runtime", lambda it: runtime_title(it.framework)),
    name_column("variant", lambda it: _variant(it)),
    Column("of", lambda it: it.of or "-", CellKind.NAME, is_optional=True),
    Column("was", lambda it: or_dash(_precise, it.was_ms)),
    Column("is", lambda it: or_dash(_precise, it.is_ms)),
    Column("change", lambda it: or_dash(signed_percent, it.change)),
    Column("95 % interval", lambda it: _interval(it.interval, signed_percent), is_optional=True),
    Column("verdict", lambda it: it.verdict.value),
)


def _variant(it: ComparedResult) -> str:
    return variant_in_words(Variant(threads=it.threads, batch=it.batch, precision=it.precision))


def _scenario(it: EvaluatedLoad) -> str:
    return kind_in_words(it.kind) + ("" if it.bound_ms is None else f" within {it.bound_ms:g} ms")


def _yes(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"


def _minute(when: str | None) -> str:
    return "-" if when is None else minute_of(when)


def _interval(bounds: tuple[float, float] | None, written: Callable[[float], str]) -> str:
    return "-" if bounds is None else f"{written(bounds[0])} to {written(bounds[1])}"
