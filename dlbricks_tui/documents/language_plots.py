"""The speed of a language model by the length of its context, and its first token by that of the prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.parts import Column, Part, Table
from dlbricks_tui.documents.pictures import Axis, Level, Plot, Series
from dlbricks_tui.wording.language import between, delay_text, rate_text, rate_words
from dlbricks_tui.wording.numbers import PREDICTED, counted

if TYPE_CHECKING:
    from dlbricks_tui.answers.language.results import LanguageAnswer

# The room above the highest point, and beside the first and the last one.
_ABOVE, _BESIDE = 1.1, 1.3
# Bounds and intervals that are higher would press all points to the ground.
_MOST_ABOVE = 2.0
# The least distance between two numbers on an axis, as a share of it.
_LEAST_APART = 0.25
_MEASURED = "o"


class _Point(NamedTuple):
    """A place on the horizontal axis, and a value with its interval."""

    at: int
    value: float
    low: float
    high: float
    predicted: bool

    def told(self, text: Callable[[float], str]) -> str:
        """The value, marked if it is predicted."""
        return f"{PREDICTED if self.predicted else ''}{text(self.value)}"


def language_plots(answer: LanguageAnswer) -> tuple[Plot, ...]:
    """Return tokens per second by context length, and time to first token by prompt length.

    Fewer than two points of one of them make no picture.
    """
    speeds = [_Point(it.context, it.tokens_per_second, it.low, it.high, it.predicted) for it in answer.contexts]
    delays = [
        _Point(it.prompt_tokens, it.first_token_ms / 1000, it.low_ms / 1000, it.high_ms / 1000, it.predicted)
        for it in answer.prompts
    ]
    if min(len(speeds), len(delays)) < 2:
        return ()
    (first, *_, last), (least, *_, most) = speeds, delays
    rates = f"{first.told(rate_words)} after {counted(first.at, 'token')}, {last.told(rate_text)} after {last.at:,}."
    after, then = (it.told(lambda seconds: delay_text(1000 * seconds)) for it in (least, most))
    waits = f"The first token comes {after} after a prompt of {counted(least.at, 'token')}, {then} after {most.at:,}."
    bound, most_bound = answer.bound_tokens_per_second, _MOST_ABOVE * max(it.value for it in speeds)
    levels = () if bound is None or bound > most_bound else (Level("bound by memory bandwidth", bound),)
    is_mixed = len({it.predicted for it in (*speeds, *delays)}) > 1
    return (
        _plot("Tokens per second by context length", rates, speeds, levels, is_mixed=is_mixed),
        _plot("First token (s) by prompt length", waits, delays, is_log=True, is_mixed=is_mixed),
    )


def curve_parts(answer: LanguageAnswer) -> Iterator[Part]:
    """Yield tokens per second by context length, and time to first token by prompt length, with their intervals."""
    speeds = [_Point(it.context, it.tokens_per_second, it.low, it.high, it.predicted) for it in answer.contexts]
    delays = [_Point(it.prompt_tokens, it.first_token_ms, it.low_ms, it.high_ms, it.predicted) for it in answer.prompts]
    yield Table(_columns("context", "tokens/s", rate_text), speeds)
    yield Table(_columns("prompt", "first token", delay_text), delays)


def _columns(length: str, figure: str, text: Callable[[float], str]) -> tuple[Column[_Point], ...]:
    return (
        Column(length, lambda it: f"{it.at:,}"),
        Column(figure, lambda it: it.told(text), style="strong"),
        Column("95 %", lambda it: between(it.low, it.high, text)),
    )


def _plot(
    title: str,
    says: str,
    points: Sequence[_Point],
    levels: tuple[Level, ...] = (),
    *,
    is_log: bool = False,
    is_mixed: bool,
) -> Plot:
    """Return points with their intervals; the legend of a plot beside another one names the marks of both."""
    placed = [(float(max(1, it.at)), it) for it in points]
    of = {kind: tuple((x, it.value) for x, it in placed if it.predicted is kind) for kind in (True, False)}
    series = (
        Series("", ".", "muted", tuple((x, it.value) for x, it in placed), "."),
        Series("95 %", "-", "muted", tuple((x, end) for x, it in placed for end in (it.low, it.high))),
        Series("predicted", PREDICTED, "warn", of[True]),
        Series("measured", _MEASURED, "accent", of[False]),
    )
    across = Axis(placed[0][0] / _BESIDE, placed[-1][0] * _BESIDE, True)
    across = replace(across, ticks=tuple((x, f"{x:,.0f}") for x in _apart([x for x, _ in placed], across)))
    # Ends of wide intervals stand at the upper edge.
    most = _MOST_ABOVE * max(it.value for it in points)
    highest = max([*(min(most, it.high) for it in points), *(it.value for it in levels)])
    up = Axis(min(it.low for it in points) / _ABOVE if is_log else 0.0, highest * _ABOVE, is_log)
    return Plot(title, says, across, up, tuple(it for it in series if it.points or is_mixed), levels)


def _apart(places: Sequence[float], axis: Axis) -> list[float]:
    """Return the last of some places, and those before it whose numbers do not touch."""
    least, kept = (axis.high / axis.low) ** _LEAST_APART, [places[-1]]
    for each in reversed(places):
        kept += [each] if kept[-1] / each >= least else []
    return kept[::-1]
