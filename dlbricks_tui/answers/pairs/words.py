"""The comparison of two things in words: the question, the answer in one line, the sides, and what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.answers.pairs.compared import Kind
from dlbricks_tui.evaluations.change import Verdict
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.ages import seconds_since
from dlbricks_tui.wording.numbers import age, milliseconds, signed_percent, with_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.answers.pairs.compared import ComparedPart, ComparedSide, ComparedTwo

LETTERS = ("A", "B")
SIGNS = {Verdict.SLOWER: "+", Verdict.FASTER: "-", Verdict.SAME: "=", Verdict.UNKNOWN: "?"}
_ASKED = {Kind.RESULT: "", Kind.SELECTION: ""}


def question_of(of: Kind, first: str, second: str) -> str:
    """Return what is asked: `Which model is faster: A alexnet or B vgg16?`."""
    what = _ASKED.get(of, f" {of.value}")
    return f"Which{what} is faster: A {printable(first)} or B {printable(second)}?"


def answer_of(found: ComparedTwo) -> str:
    """Return the verdict with the ratio and its interval, in one sentence."""
    interval = f"(95 % {_ratio(found.interval[0])} to {_ratio(found.interval[1])})"
    if found.verdict is Verdict.FASTER:
        return f"B is faster: it takes {_ratio(found.ratio)} times as long as A {interval}."
    if found.verdict is Verdict.SLOWER:
        return f"A is faster: B takes {_ratio(found.ratio)} times as long {interval}."
    return f"They cannot be told apart: B takes {_ratio(found.ratio)} times as long as A {interval}."


def side_of(side: ComparedSide) -> str:
    """Return the latency of a side, and how old it is: `5.800 ms (5.600 to 5.900), estimated, 3 d old`."""
    return f"{with_interval(side.ms, *side.interval)}, {side.how}{age_of(side)}"


def age_of(side: ComparedSide) -> str:
    """Return the age of the oldest measurement of a side: `, 3 d old`; empty if it is not known."""
    if not side.since:
        return ""
    return f", {age(seconds_since(side.since))} old"


def parts_heading(found: ComparedTwo) -> str:
    """Return the title of the list of parts."""
    return f"{found.parts_are[:1].upper()}{found.parts_are[1:]}, the largest difference first"


def figures_of(part: ComparedPart) -> tuple[str, str, str, str]:
    """Return both latencies of a part, the difference in ms, and the change; dashes where a side has no such part."""
    change = signed_percent(part.b_ms / part.a_ms - 1.0) if part.a_ms and part.b_ms is not None else "-"
    sign = "+" if part.difference_ms > 0 else ""
    return _cell(part.a_ms), _cell(part.b_ms), f"{sign}{milliseconds(part.difference_ms)}", change


def verdict_of(part: ComparedPart) -> str:
    """Return the verdict on a part with its sign; empty for sums."""
    return "" if part.verdict is None else f"{SIGNS[part.verdict]} {part.verdict.value}"


def difference_lines(found: ComparedTwo, width: int) -> Iterator[str]:
    """Yield what else differs, as a table of the name and both values."""
    rows = [(name, printable(one) or "-", printable(other) or "-") for name, (one, other) in found.differences.items()]
    if not rows:
        yield "nothing that the store tells"
        return
    names = max(len(name) for name, _, _ in rows)
    firsts = min(max(len(one) for _, one, _ in rows), max(12, (width - names - 4) // 2))
    for name, one, other in rows:
        if len(one) <= firsts and names + firsts + len(other) + 4 <= width:
            yield f"{name:<{names}}  {one:<{firsts}}  {other}"
        else:
            yield f"{name:<{names}}  A {one}"
            yield f"{'':<{names}}  B {other}"


def text_lines(found: ComparedTwo, width: int, most: int) -> Iterator[str]:
    """Yield the whole comparison as text, with so many of its parts."""
    yield question_of(found.of, found.a.name, found.b.name)
    yield answer_of(found)
    yield ""
    for letter, side in zip(LETTERS, (found.a, found.b), strict=True):
        yield f"{letter}  {printable(side.name)}: {side_of(side)}"
    if found.parts:
        yield ""
        yield from _part_lines(found, found.parts[:most], width)
    yield ""
    yield "What else differs"
    yield from difference_lines(found, width)
    if found.remarks:
        yield ""
        yield from found.remarks


def _part_lines(found: ComparedTwo, parts: Sequence[ComparedPart], width: int) -> Iterator[str]:
    titles = ("A MS", "B MS", "B - A", "CHANGE")
    rows = [figures_of(it) for it in parts]
    sizes = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    last = max(len(verdict_of(it)) for it in parts)
    room = max(20, width - sum(sizes) - 2 * len(sizes) - (last + 2 if last else 0))
    names = min(room, max(len(found.parts_are), *(len(it.name) for it in parts)))
    figures = "  ".join(f"{title:>{size}}" for title, size in zip(titles, sizes, strict=True))
    yield f"{found.parts_are.upper():<{names}}  {figures}{'  B IS' if last else ''}"
    for part, row in zip(parts, rows, strict=True):
        name = part.name if len(part.name) <= names else f"{part.name[: names - 1]}…"
        figures = "  ".join(f"{text:>{size}}" for text, size in zip(row, sizes, strict=True))
        yield f"{name:<{names}}  {figures}  {verdict_of(part)}".rstrip()


def _cell(value_ms: float | None) -> str:
    return "-" if value_ms is None else milliseconds(value_ms)


def _ratio(ratio: float) -> str:
    if ratio >= 100:
        return f"{ratio:,.0f}"
    return f"{ratio:.3g}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"
