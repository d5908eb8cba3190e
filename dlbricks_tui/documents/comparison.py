"""Two things of one kind, or two selections of results, side by side: which is faster, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dlbricks_tui.answers.sides import PairKind
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    Column,
    Heading,
    Part,
    Sentence,
    SideBySide,
    Table,
    name_column,
    word_column,
)
from dlbricks_tui.printable import printable
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording.checks import verdict_counts
from dlbricks_tui.wording.numbers import (
    age,
    counted,
    milliseconds,
    or_dash,
    p_words,
    seconds_since,
    signed_percent,
    with_interval,
)

if TYPE_CHECKING:
    from dlbricks_tui.answers.changes import ComparedPair, ComparedResults
    from dlbricks_tui.answers.pairs import ComparedPart, ComparedSide, ComparedTwo
    from dlbricks_tui.answers.sides import NamedSelection

VERDICT_STYLES = {
    Verdict.SLOWER: "bad",
    Verdict.FASTER: "good",
    Verdict.SAME: "muted",
    Verdict.UNKNOWN: "warn",
}


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
    return f"They cannot be told apart: B takes {_ratio(found.ratio)} times as long as A {interval}{why}."


def side_parts(found: ComparedTwo) -> Iterator[Part]:
    """Yield the latency of each side, and how old it is."""
    for letter, side in zip("AB", (found.a, found.b), strict=True):
        latency = with_interval(side.ms, *side.interval)
        yield Sentence(f"{letter}  {side.name}: {latency}, {side.how}{_age(side)}")


def difference_parts(found: ComparedTwo) -> Iterator[Part]:
    """Yield the circumstances that differ, and remarks."""
    yield Heading("What else differs")
    if found.differences:
        yield SideBySide(tuple((name, one or "-", other or "-") for name, (one, other) in found.differences.items()))
    else:
        yield Sentence("nothing that the store tells")
    if found.remarks:
        yield BLANK_LINE
        yield from map(Sentence, found.remarks)


def part_columns(found: ComparedTwo) -> tuple[Column[ComparedPart], ...]:
    """Return the columns of the parts of both; sums of layers have no verdicts."""
    has_verdicts = any(it.verdict is not None for it in found.parts)
    return (
        name_column(found.parts_are, lambda it: it.name),
        Column("A ms", lambda it: or_dash(milliseconds, it.a_ms)),
        Column("B ms", lambda it: or_dash(milliseconds, it.b_ms)),
        Column("B - A", _difference, style=_style, is_optional=True, goes_last=True),
        Column("change", _change, style=_style),
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
    return f"{'+' if part.difference_ms > 0 else ''}{milliseconds(part.difference_ms)}"


def _change(part: ComparedPart) -> str:
    return or_dash(signed_percent, part.change)


def _age(side: ComparedSide) -> str:
    return f", {age(seconds_since(side.since))} old" if side.since else ""


def _ratio(ratio: float) -> str:
    if ratio >= 100:
        return f"{ratio:,.0f}"
    return f"{ratio:.3g}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


NOTHING_IN_COMMON = "They have no brick in the same context and no model in common."


def selection_parts(sides: Sequence[NamedSelection]) -> Iterator[Sentence]:
    """Yield what is compared."""
    for letter, side in zip("AB", sides, strict=True):
        yield Sentence(f"{letter}: {side.words}, {counted(len(side.selection), 'result')}")


def ratio_parts(found: ComparedResults) -> Iterator[Sentence]:
    """Yield the ratio of all pairs, and how many have which verdict."""
    if found.ratio is None or found.interval is None:
        return
    low, high = found.interval
    mean = f"95 % {low:.3f} to {high:.3f}, geometric mean of {len(found.pairs):,}"
    together = f"{milliseconds(found.a.total_ms)} and {milliseconds(found.b.total_ms)} ms"
    yield Sentence(f"B takes {found.ratio:.3f} times as long ({mean}); together {together}", "strong")
    alone = f"only in A {found.a.alone:,}, only in B {found.b.alone:,}"
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
        Column("A ms", lambda it: milliseconds(it.a_ms)),
        Column("B ms", lambda it: milliseconds(it.b_ms)),
        Column("change", lambda it: signed_percent(it.change), style=style),
        _P_COLUMN,
        word_column("B is", lambda it: it.verdict.value, style),
    )
