"""Language models on systems: which of them is the quickest for a model, and which the cheapest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from dlbricks_tui.api.language_systems import LanguageOnSystem
from dlbricks_tui.documents.parts import BLANK_LINE, CellKind, Column, Heading, Part, Sentence, Table, name_column
from dlbricks_tui.runtime.variant import threads_in_words
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    ago,
    between,
    counted,
    delay_text,
    memory_text,
    names_of,
    or_dash,
    percent,
    rate_text,
)

_MOST_NAMED = 5
_RESTS_ON = {"other models": "other models", "peaks": "its peaks", "description": "nothing"}


def language_systems_columns(found: Sequence[LanguageOnSystem]) -> tuple[Column[LanguageOnSystem], ...]:
    """Return the columns of one model on systems; those of prices only if one of them has any."""
    costs: tuple[Column[LanguageOnSystem], ...] = (
        Column("$/million", lambda it: _signed(it, None if it.cost is None else f"{it.cost.dollars_per_million:.2f}")),
        Column(
            "95 %",
            lambda it: "-" if it.cost is None else between(*it.cost.interval, lambda cost: f"{cost:.2f}"),
            is_optional=True,
        ),
        Column(
            "prompt $/m",
            lambda it: _signed(it, None if it.cost is None else f"{it.cost.dollars_per_million_of_prompt:.2f}"),
            is_optional=True,
        ),
    )
    return (
        name_column("system", lambda it: f"{'this host ' if it.is_host else ''}{it.system}"),
        Column("tokens/s", lambda it: _signed(it, or_dash(rate_text, it.decode_tokens_per_second)), style="strong"),
        Column(
            "95 %",
            lambda it: "-" if it.decode_interval is None else between(*it.decode_interval, rate_text),
            is_optional=True,
        ),
        Column("first token", lambda it: _signed(it, or_dash(delay_text, it.first_token_ms)), is_optional=True),
        Column(
            "memory",
            lambda it: f"{memory_text(it.memory_bytes)} of {memory_text(it.host_memory_bytes)}",
            CellKind.WORD,
            lambda it: "text" if it.fits else "bad",
            is_optional=True,
        ),
        *(costs if any(it.cost for it in found) else ()),
        name_column("by", partial(_execution, found), "muted"),
        Column("rests on", _basis_text, CellKind.WORD, "muted", is_optional=True, goes_last=True),
        Column("remarks", lambda it: ", ".join(_remarks(it)), CellKind.WORD, _style),
    )


def _execution(all_: Sequence[LanguageOnSystem], it: LanguageOnSystem) -> str:
    """Return the variant of a row, with what differs from row to row."""
    several = [it.runtime.partition(" ")[0]] * (len({each.runtime.partition(" ")[0] for each in all_}) > 1)
    cache = [f"{it.cache} cache"] * (len({each.cache for each in all_}) > 1)
    return ", ".join([*several, it.precision, *cache, threads_in_words(it.threads or None)])


def language_systems_parts(found: Sequence[LanguageOnSystem]) -> Iterator[Part]:
    """Yield each model on its systems, and how to find out what is not known."""
    for _, of_model in groupby(found, lambda it: it.model):
        rows = list(of_model)
        yield Heading(rows[0].title or rows[0].model)
        yield Sentence(
            f"{names_of(sorted({it.runtime.partition(' ')[0] for it in rows}))}; a prompt of "
            f"{counted(rows[0].prompt_tokens, 'token')}, {rows[0].generated_tokens:,} generated"
        )
        yield BLANK_LINE
        yield Table(language_systems_columns(rows), rows)
    yield from _legend(found)


def language_systems_answer(found: Sequence[LanguageOnSystem]) -> str:
    """Return the best systems for a model in a line; empty if none is known to be."""
    told = [f"{it.system} is the quickest: {_speed(it)}" for it in found if it.quickest]
    dollars = [(it.system, it.cost.dollars_per_million) for it in found if it.cheapest and it.cost]
    told += [f"{system} is the cheapest: $ {cost:.2f} for a million tokens" for system, cost in dollars]
    return "; ".join(told)


def _legend(found: Sequence[LanguageOnSystem]) -> Iterator[Part]:
    if any(it.is_predicted and it.rests_on == "bricks" for it in found):
        yield Sentence(f"{PREDICTED} predicted in part: not all bricks of the model were measured there")
    if any(it.rests_on == "other models" for it in found):
        yield Sentence(f"{PREDICTED} other models: predicted from bricks of others, which were measured there")
    if of_peaks := [it for it in found if it.rests_on == "peaks"]:
        others = sorted({name for it in of_peaks for name in it.compared_with})
        shares = f"what {names_of(others, _MOST_NAMED)} reached of theirs" if others else "what hosts usually reach"
        yield Sentence(f"{PREDICTED} its peaks: predicted from the peaks of the system and {shares}")
    first = found[0].model if found else ""
    if unknown := sorted({it.system for it in found if it.rests_on == "description"}):
        yield Sentence(
            f"nothing but its description is known of {names_of(unknown, _MOST_NAMED)}: run `dlbricks llm {first} "
            "--probe` there for seconds, and take its results here (`dlbricks results export` and `import`)",
            "warn",
        )
    if any(it.cost for it in found):
        yield Sentence("$/million: of generated tokens, one request after another; prompt $/m: of a prompt", "muted")
    if lacking := sorted({it.system for it in found if it.cost is None and it.decode_tokens_per_second is not None}):
        yield Sentence(f"no price of {names_of(lacking, _MOST_NAMED)}: write it into prices.toml", "muted")


def _remarks(it: LanguageOnSystem) -> Iterator[str]:
    if not it.fits:
        yield "does not fit"
    if it.quickest:
        yield "quickest"
    elif it.verdict is not None:
        yield it.verdict
    if it.cheapest:
        yield "cheapest"


def _style(it: LanguageOnSystem) -> str:
    return "good" if it.quickest or it.cheapest else "muted" if it.fits else "bad"


def _basis_text(it: LanguageOnSystem) -> str:
    if it.rests_on != "bricks":
        return _RESTS_ON[it.rests_on]
    share = f"{percent(min(max(it.coverage, 0.01), 0.99))} " if it.is_predicted else ""
    return f"{share}measured {ago(it.measured_when or '')}"


def _signed(it: LanguageOnSystem, told: str | None) -> str:
    return "-" if told in (None, "-") else f"{PREDICTED if it.is_predicted else ''}{told}"


def _speed(it: LanguageOnSystem) -> str:
    return _signed(it, f"{rate_text(it.decode_tokens_per_second or 0.0)} tokens/s")
