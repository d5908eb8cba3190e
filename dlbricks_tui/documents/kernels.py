"""The kernels that compute the layers of a model: those that take most first, and the kernel of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import cut_start
from dlbricks_tui.documents.parts import Column, Kind, Part, Sentence, Table, each_fit, name_column
from dlbricks_tui.wording.numbers import counted, milliseconds, percent

if TYPE_CHECKING:
    from dlbricks_tui.analysis.kernels import TimedKernel

_UNKNOWN = "(the runtime does not tell)"


def kernels_table(found: Sequence[TimedKernel]) -> Table[Sequence[TimedKernel]]:
    """Return a row for each kernel with its layers and their time, and the reasons against other kernels below it."""
    held: dict[str, list[TimedKernel]] = {}
    for it in found:
        held.setdefault(it.kernel.implementation, []).append(it)
    whole_ms = _sum_ms(found)
    columns: tuple[Column[Sequence[TimedKernel]], ...] = (
        name_column("kernel", lambda its: its[0].kernel.implementation or _UNKNOWN),
        Column("layers", lambda its: str(len(its))),
        Column("conversions", lambda its: str(sum(len(it.kernel.conversions) for it in its) or "-")),
        Column("ms", lambda its: milliseconds(_sum_ms(its))),
        Column("share", lambda its: percent(_sum_ms(its) / whole_ms) if whole_ms else "-"),
    )
    return Table(columns, sorted(held.values(), key=lambda its: -_sum_ms(its)), _reasons)


def layer_kernels_table(found: Sequence[TimedKernel]) -> Table[TimedKernel]:
    """Return a row for each layer with its kernel and its conversions, the longest first."""
    columns: tuple[Column[TimedKernel], ...] = (
        # The ends of long names tell layers apart.
        Column("layer", lambda it: it.name, Kind.NAME, fit=each_fit(cut_start)),
        Column("ms", lambda it: milliseconds(it.latency_ms)),
        name_column("kernel", lambda it: it.kernel.implementation or _UNKNOWN),
        name_column("conversions", lambda it: ", ".join(it.kernel.conversions) or "-"),
    )
    return Table(columns, sorted(found, key=lambda it: -it.latency_ms))


def _reasons(found: Sequence[TimedKernel]) -> Iterator[Part]:
    """Yield each reason once, with the number of its layers, or with the name of its only one."""
    layers: dict[tuple[str, bool], list[str]] = {}
    for it in found:
        for reason in it.kernel.refusals:
            layers.setdefault((reason, it.kernel.is_derived), []).append(it.name)
    for (reason, is_derived), names in layers.items():
        where = names[0] if len(names) == 1 else counted(len(names), "layer")
        yield Sentence(f"{where}: {reason}{' (derived)' * is_derived}", "muted")


def _sum_ms(found: Sequence[TimedKernel]) -> float:
    return sum(it.latency_ms for it in found)
