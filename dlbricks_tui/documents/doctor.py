"""A host: the sources of noise with their effects and cures, its peaks, and weights that make a model slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import BLANK_LINE, Column, MarkedSentence, Part, Sentence, Table, name_column
from dlbricks_tui.host.fingerprint import GIBIBYTE
from dlbricks_tui.host.noise import NoiseVerdict
from dlbricks_tui.wording.numbers import counted, percent, speeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dlbricks_tui.answers.doctor import ExaminedSystem
    from dlbricks_tui.host.noise import Finding
    from dlbricks_tui.measure.denormals import DenormalCount

# The kernel settings of a recorded host were not examined.
OF_THE_LIVE_HOST = "These are findings about the host of this demonstration, not about the recorded one."
_STYLES = {NoiseVerdict.NOISY: "warn", NoiseVerdict.UNKNOWN: "muted", NoiseVerdict.QUIET: "good"}
_WIDTH = max(len(it.value) for it in NoiseVerdict)


def finding_parts(found: Finding) -> Iterator[Part]:
    """Yield the verdict on a source of noise, and its effect and cure unless it is quiet."""
    verdict = found.verdict.value
    state = f": {found.state}" if found.state != verdict else ""
    yield MarkedSentence(f"{verdict:<{_WIDTH}}", _STYLES[found.verdict], state, found.source)
    if found.cure:
        indent = " " * (_WIDTH + 1)
        yield Sentence(f"{indent}{found.effect}", "muted")
        yield Sentence(f"{indent}cure: {found.cure}")


def host_parts(found: ExaminedSystem) -> Iterator[Part]:
    """Yield the facts about a host, its peaks, and the sources of noise."""
    system = found.system
    facts = ", ".join(f"{name.replace('_', ' ')} {str(value).lower()}" for name, value in system.facts)
    yield Sentence(f"{system.name}, {system.memory_bytes / GIBIBYTE:.1f} GiB", "strong")
    yield Sentence(f"known as {system.id}; {facts}")
    for it in found.peaks:
        yield Sentence(f"at most {speeds(it)}, with {counted(it.threads, 'thread')}")
    yield BLANK_LINE
    for each in found.noise:
        yield from finding_parts(each)


def weights_parts(path: Path, counts: Sequence[DenormalCount]) -> Iterator[Part]:
    """Yield the denormal numbers in a file of weights."""
    affected = [it for it in counts if it.denormals]
    values = counted(sum(it.values for it in counts), "value")
    if not affected:
        yield Sentence(f"{path}: none of {values} is denormal")
        return
    columns: tuple[Column[DenormalCount], ...] = (
        name_column("array", lambda it: it.array),
        Column("values", lambda it: it.values),
        Column("denormal", lambda it: it.denormals),
        Column("share", lambda it: percent(it.share, 2)),
    )
    denormal = f"{sum(it.denormals for it in affected)} of {values} denormal"
    yield Sentence(f"{path}: {denormal}; kernels may take up to ten times as long")
    yield Table(columns, affected)
