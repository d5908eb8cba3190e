"""Lay out the users that a language model serves, and both delays by the number of users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from dlbricks_tui.api.loads import BatchStep, ServedUsers, TokenLoadAnswer, UsersLoad
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    Column,
    Heading,
    Part,
    Plots,
    Sentence,
    Table,
    name_column,
    word_column,
)
from dlbricks_tui.documents.pictures import Axis, Plot, Series, StraightLine
from dlbricks_tui.runtime.variant import threads_in_words, without_variant
from dlbricks_tui.scenarios.kinds import MOST_USERS
from dlbricks_tui.scenarios.tokens import TokenLoad, TokenServing
from dlbricks_tui.wording.answers import rough_peaks_words
from dlbricks_tui.wording.jobs import percentile_name
from dlbricks_tui.wording.numbers import PREDICTED, counted, delay_text, memory_text, rate_text

_PLOT_LINES = 12
# Delays far above their bounds would press all others to the ground.
_MOST_OVER, _ABOVE = 3.0, 1.1
_MARKS = {
    TokenServing.SINGLE.value: ("1", "muted"),
    TokenServing.STATIC.value: ("s", "accent"),
    TokenServing.CONTINUOUS.value: ("c", "good"),
}


class _Load(NamedTuple):
    """Users that are served in one way."""

    way: ServedUsers
    load: UsersLoad


def token_load_parts(answer: TokenLoadAnswer, *, on_screen: bool = False) -> Iterator[Part]:
    """Yield how many users a language model serves; a screen has its plots elsewhere."""
    asked = answer.scenario
    yield Heading(answer.title or answer.model)
    yield Sentence(token_load_line(answer), "strong")
    execution = f"{without_variant(answer.runtime)}, {threads_in_words(answer.threads)}, {answer.precision}"
    yield Sentence(f"{execution}, on {answer.system}")
    yield Sentence(scenario_words(answer))
    yield BLANK_LINE
    yield Table(_way_columns(), answer.ways)
    loads = [_Load(way, load) for way in answer.ways for load in way.loads]
    yield BLANK_LINE
    # A panel has room for the verdicts of drives only.
    yield Table(tuple(_load_columns(has_driven=not on_screen and any(it.load.driven for it in loads))), loads)
    yield BLANK_LINE
    step_columns: tuple[Column[BatchStep], ...] = (
        Column("answers in a step", lambda it: it.answers),
        Column("takes", lambda it: f"{PREDICTED if it.predicted else ''}{delay_text(it.ms)}"),
        Column("95 %", lambda it: f"{delay_text(it.low_ms)} to {delay_text(it.high_ms)}", is_optional=True),
        Column("tokens/s", lambda it: f"{PREDICTED if it.predicted else ''}{rate_text(1000.0 * it.answers / it.ms)}"),
    )
    yield Table(step_columns, answer.steps)
    if answer.coverage < 1.0 and not on_screen:
        yield Sentence(f"steps with {PREDICTED} are predicted: without --predict they are measured, and users driven")
    if answer.coverage < 1.0 and answer.has_rough_peaks:
        yield Sentence(rough_peaks_words([answer.threads]), "warn")
    engines = {it.load.driven.engine: None for it in loads if it.load.driven}
    if engines:
        yield Sentence(
            f"driven: {', '.join(engines)} with random weights; it makes no continuous batches on processors"
        )
    if not on_screen:
        yield BLANK_LINE
        yield Plots(token_load_plots(answer), _PLOT_LINES)
        if asked.think_s == 0.0:
            yield Sentence("users ask again at once; --think-s lets them pause")


def token_load_line(answer: TokenLoadAnswer) -> str:
    """Return the most users within both bounds, such as `~4 users (3 to 5) by continuous batches`."""
    single, *_ = answer.ways
    if any(it.fits for it in answer.ways):
        return _users_line(answer)
    needed = f"{memory_text(single.memory_bytes)} of {memory_text(answer.host_memory_bytes)}"
    return f"does not fit: {needed}; with enough memory {_users_line(answer)}"


def _users_line(answer: TokenLoadAnswer) -> str:
    best = max(answer.ways, key=lambda it: (it.fits, it.most_users, it.loads[0].predicted.tokens_per_second))
    single, *_ = answer.ways
    if not best.most_users:
        alone = single.curve[0]
        first, later = delay_text(_first_ms(alone)), delay_text(_later_ms(alone))
        delays = f"{PREDICTED}{first} to the first token, {PREDICTED}{later} for later ones"
        return f"no user is served within both bounds: {delays}"
    behind = "" if best is single else f"; {PREDICTED}{_users(single.most_users)} one after another"
    users = "user" if best.most_users == 1 else "users"
    how = "one after another" if best is single else f"by {best.serving} batches"
    return f"{PREDICTED}{_users(best.most_users)} {users} ({_interval(best)}) {how}{behind}"


def scenario_words(answer: TokenLoadAnswer) -> str:
    """Return what users ask for, and the bounds."""
    asked, name = answer.scenario, percentile_name(answer.scenario.percentile)
    pauses = f", pauses of {asked.think_s:g} s" if asked.think_s else ""
    tokens = f"{counted(asked.prompt, 'token')} for {asked.generate:,}{pauses}"
    bounds = (
        f"first token within {delay_text(asked.first_token_ms)}, later ones within {delay_text(asked.per_token_ms)}"
    )
    return f"{tokens}; {name} of the {bounds}"


def _users(number: int) -> str:
    return f"{number}" if number < MOST_USERS else f"{number} or more"


def _interval(served: ServedUsers) -> str:
    low, high = served.most_users_interval
    return f"{low} to {_users(high)}" if low < MOST_USERS else _users(low)


def _way_columns() -> tuple[Column[ServedUsers], ...]:
    return (
        name_column("batches", lambda it: it.serving),
        Column("batch", lambda it: it.batch, is_optional=True),
        Column("users", lambda it: f"{PREDICTED}{_users(it.most_users)}", style="strong"),
        Column("95 %", _interval),
        Column("memory", lambda it: memory_text(it.memory_bytes), is_optional=True, goes_last=True),
        word_column("fits", lambda it: "yes" if it.fits else "no", lambda it: "good" if it.fits else "bad"),
    )


def _load_columns(*, has_driven: bool) -> Iterator[Column[_Load]]:
    yield name_column("batches", lambda it: it.way.serving)
    yield Column("users", lambda it: it.load.predicted.users, is_key=True)
    for title, value, text in (
        ("first token", _first_ms, delay_text),
        ("later", _later_ms, delay_text),
        ("tokens/s", _rate, rate_text),
    ):
        # In a narrow terminal the delays stay.
        spare = value is _rate
        cell = partial(_predicted_cell, value, text)
        yield Column(title, cell, style="strong", is_optional=spare, goes_last=spare)
        if has_driven:
            yield Column("driven", partial(_driven_cell, value, text), is_optional=spare)
    yield Column("bounds", _verdict, style=lambda it: "good" if it.load.is_met and it.way.fits else "bad")


def _first_ms(it: TokenLoad) -> float:
    return it.first_token.bounded_ms


def _later_ms(it: TokenLoad) -> float:
    return it.per_token.bounded_ms


def _rate(it: TokenLoad) -> float:
    return it.tokens_per_second


def _predicted_cell(value: Callable[[TokenLoad], float], text: Callable[[float], str], it: _Load) -> str:
    # With the same pauses, which a short drive has few of.
    return f"{PREDICTED}{text(value(it.load.predicted_drive or it.load.predicted))}"


def _driven_cell(value: Callable[[TokenLoad], float], text: Callable[[float], str], it: _Load) -> str:
    return text(value(it.load.driven.load)) if it.load.driven else "-"


def _verdict(it: _Load) -> str:
    if not it.way.fits:
        return "does not fit"
    return f"{'' if it.load.driven else PREDICTED}{'met' if it.load.is_met else 'not met'}"


def token_load_plots(answer: TokenLoadAnswer) -> tuple[Plot, Plot]:
    """Return both delays by users in each way, with their bounds."""
    asked, name = answer.scenario, percentile_name(answer.scenario.percentile)
    return (
        _plot(answer, f"First token (s) by users, {name}", _first_ms, asked.first_token_ms, 1000.0),
        _plot(answer, f"Later tokens (ms) by users, {name}", _later_ms, asked.per_token_ms, 1.0),
    )


def _plot(
    answer: TokenLoadAnswer, title: str, delay: Callable[[TokenLoad], float], bound_ms: float, unit_ms: float
) -> Plot:
    series = []
    for way in answer.ways:
        delays = [(it.users, delay(it)) for it in way.curve]
        shown = [(float(users), ms / unit_ms) for users, ms in delays if ms <= _MOST_OVER * bound_ms] or [
            (1.0, min(delays[0][1], _MOST_OVER * bound_ms) / unit_ms)
        ]
        mark, style = _MARKS[way.serving]
        series.append(Series(way.serving, mark, style, tuple(shown), mark))
    points = [point for it in series for point in it.points]
    most = max(bound_ms / unit_ms, *(y for _, y in points)) * _ABOVE
    across = Axis(0.0, max(4.0, *(x for x, _ in points)) * _ABOVE)
    says, bound = f"{token_load_line(answer)}.", StraightLine("bound", bound_ms / unit_ms)
    return Plot(title, says, across, Axis(0.0, most), tuple(series), (bound,))
