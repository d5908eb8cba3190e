"""The sources of noise on a host, with their effects and cures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import MarkedSentence, Part, Sentence
from dlbricks_tui.host.noise import NoiseVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.host.noise import Finding

# The kernel settings of a recorded host were not examined.
OF_THE_LIVE_HOST = "These are findings about the host of this demonstration, not about the recorded one."
_STYLES = {NoiseVerdict.NOISY: "warn", NoiseVerdict.UNKNOWN: "muted", NoiseVerdict.QUIET: "good"}
_WIDTH = max(len(it.value) for it in NoiseVerdict)


def noisy_words(found: Sequence[Finding]) -> str:
    """Return how many sources of noise are noisy: `2 noisy`; empty if none is."""
    noisy = sum(it.verdict is NoiseVerdict.NOISY for it in found)
    return f"{noisy} noisy" if noisy else ""


def finding_parts(found: Finding) -> Iterator[Part]:
    """Yield the verdict on a source of noise, and its effect and cure unless it is quiet."""
    verdict = found.verdict.value
    state = f": {found.state}" if found.state != verdict else ""
    yield MarkedSentence(f"{verdict:<{_WIDTH}}", _STYLES[found.verdict], state, found.source)
    if found.cure:
        indent = " " * (_WIDTH + 1)
        yield Sentence(f"{indent}{found.effect}", "muted")
        yield Sentence(f"{indent}cure: {found.cure}")
