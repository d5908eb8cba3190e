"""The kernels of a model's layers as lines of plain characters: one row for each kernel, those that take most first."""

from collections.abc import Sequence
from typing import NamedTuple

from dlbricks_tui.analysis.kernels import LayerKernel
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import counted, milliseconds, percent
from dlbricks_tui.wording.tables import names_and_numbers

_INDENT = "    "
_UNKNOWN = "(the runtime does not tell)"


class TimedKernel(NamedTuple):
    """The kernel of a layer, the name of the layer, and its time in an inference."""

    kernel: LayerKernel
    name: str
    latency_ms: float


def kernel_lines(found: Sequence[TimedKernel], width: int) -> list[str]:
    """Return a row for each kernel with its layers and their time, and under it the reasons against other kernels."""
    held: dict[str, list[TimedKernel]] = {}
    for it in found:
        held.setdefault(it.kernel.implementation, []).append(it)
    ordered = sorted(held.items(), key=lambda item: -_sum_ms(item[1]))
    whole_ms = _sum_ms(found)
    rows = [("KERNEL", "LAYERS", "CONVERSIONS", "MS", "SHARE")]
    for implementation, its in ordered:
        conversions = sum(len(it.kernel.conversions) for it in its)
        share = percent(_sum_ms(its) / whole_ms) if whole_ms else "-"
        name = printable(implementation) or _UNKNOWN
        rows.append((name, str(len(its)), str(conversions or "-"), milliseconds(_sum_ms(its)), share))
    titles, *kernels = names_and_numbers(rows)
    lines = [titles]
    for kernel, (_, its) in zip(kernels, ordered, strict=True):
        lines += [kernel, *_reason_lines(its, width)]
    return lines


def _reason_lines(found: Sequence[TimedKernel], width: int) -> list[str]:
    """Return each reason once, with the number of its layers, or with the name of its only one."""
    layers: dict[tuple[str, bool], list[str]] = {}
    for it in found:
        for reason in it.kernel.refusals:
            layers.setdefault((reason, it.kernel.is_derived), []).append(it.name)
    lines = []
    for (reason, is_derived), names in layers.items():
        where = printable(names[0]) if len(names) == 1 else counted(len(names), "layer")
        line = f"{_INDENT}{where}: {printable(reason)}{' (derived)' * is_derived}"
        lines.append(line if len(line) <= width else f"{line[: max(1, width - 3)]}...")
    return lines


def _sum_ms(found: Sequence[TimedKernel]) -> float:
    return sum(it.latency_ms for it in found)
