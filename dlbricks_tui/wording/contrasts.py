"""The comparison of two selections of results, in words."""

from collections.abc import Iterator

from dlbricks_tui.store.contrast import Contrast, Verdict
from dlbricks_tui.wording.numbers import milliseconds

NOTHING_IN_COMMON = "They have no brick in the same context and no model in common."
SIGNS = {Verdict.SLOWER: "+", Verdict.FASTER: "-", Verdict.ALIKE: "=", Verdict.TOO_FEW: "?"}
_LEAST_P = 0.001


def p_words(p_value: float | None) -> str:
    """Return a p-value: `0.042`, `<0.001`, and a dash for too few samples."""
    if p_value is None:
        return "-"
    return f"<{_LEAST_P:g}" if p_value < _LEAST_P else f"{p_value:.3f}"


def ratio_words(found: Contrast) -> tuple[str, str, str, str, str]:
    """Return the sentence on all pairs in five parts, of which the second and the fourth are its figures."""
    first_ms, second_ms = found.total_ms
    return (
        "B takes ",
        f"{found.ratio or 1.0:.3f}",
        f" times as long (95 % {found.low:.3f} to {found.high:.3f}, geometric mean of ",
        f"{len(found.pairs):,}",
        f"); together {milliseconds(first_ms)} and {milliseconds(second_ms)} ms",
    )


def verdicts_in_words(found: Contrast) -> Iterator[tuple[Verdict, str]]:
    """Yield each verdict that any pair has, with its number: `12 slower`."""
    for verdict in Verdict:
        if count := found.count(verdict):
            yield verdict, f"{count:,} {verdict.value}"


def left_out_in_words(found: Contrast) -> str:
    """Return how many subjects only one of the selections has."""
    return f"only in A {found.only_first:,}, only in B {found.only_second:,}"
