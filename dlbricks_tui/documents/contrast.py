"""Two selections of results side by side: their ratio, and the bricks and models that both have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import Column, Sentence, name_column, word_column
from dlbricks_tui.store.contrast import Verdict
from dlbricks_tui.wording.numbers import counted, milliseconds, p_words, signed_percent

if TYPE_CHECKING:
    from dlbricks_tui.answers.comparisons.contrasts import ComparedPair, ComparedResults
    from dlbricks_tui.answers.comparisons.selecting import NamedSelection

NOTHING_IN_COMMON = "They have no brick in the same context and no model in common."
_SIGNS = {Verdict.SLOWER: "+", Verdict.FASTER: "-", Verdict.ALIKE: "=", Verdict.TOO_FEW: "?"}
_STYLES = {Verdict.SLOWER: "bad", Verdict.FASTER: "good", Verdict.ALIKE: "muted", Verdict.TOO_FEW: "warn"}


def selection_parts(sides: Sequence[NamedSelection]) -> Iterator[Sentence]:
    """Yield what is compared."""
    for letter, side in zip("AB", sides, strict=True):
        yield Sentence(f"{letter}: {side.name}, {counted(len(side.selection), 'result')}")


def ratio_parts(found: ComparedResults) -> Iterator[Sentence]:
    """Yield the ratio of all pairs, and how many have which verdict."""
    if found.ratio is None or found.interval is None:
        return
    low, high = found.interval
    mean = f"95 % {low:.3f} to {high:.3f}, geometric mean of {len(found.pairs):,}"
    together = f"{milliseconds(found.a.total_ms)} and {milliseconds(found.b.total_ms)} ms"
    yield Sentence(f"B takes {found.ratio:.3f} times as long ({mean}); together {together}", "strong")
    counts = [f"{count:,} {it.value}" for it in Verdict if (count := sum(it is pair.verdict for pair in found.pairs))]
    alone = f"only in A {found.a.alone:,}, only in B {found.b.alone:,}"
    yield Sentence(f"{', '.join(counts)}; {alone}")


def pair_columns() -> tuple[Column[ComparedPair], ...]:
    """Return the columns of the bricks and models that both have."""

    def style(it: ComparedPair) -> str:
        return _STYLES[it.verdict]

    return (
        name_column("brick or model", lambda it: f"{it.name} [{it.context}]" if it.context else it.name),
        Column("A ms", lambda it: milliseconds(it.a_ms)),
        Column("B ms", lambda it: milliseconds(it.b_ms)),
        Column("change", lambda it: signed_percent(it.change), style=style),
        Column("p", lambda it: p_words(it.p_value), style="muted", is_optional=True),
        word_column("B is", lambda it: f"{_SIGNS[it.verdict]} {it.verdict.value}", style),
    )
