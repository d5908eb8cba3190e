"""The kernels of a model's layers as lines of plain characters: a row for each kernel, or for each layer."""

from collections.abc import Sequence
from typing import NamedTuple

from dlbricks_tui.analysis.kernels import LayerKernel
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import counted, milliseconds, percent
from dlbricks_tui.wording.tables import Column, justified, names_and_numbers

_INDENT = "    "
_LEAST_NAME = 12
_UNKNOWN = "(the runtime does not tell)"


class TimedKernel(NamedTuple):
    """The kernel of a layer, the name of the layer, and its time in an inference."""

    kernel: LayerKernel
    name: str
    latency_ms: float


def kernel_lines(found: Sequence[TimedKernel], width: int | None = None) -> list[str]:
    """Return a row for each kernel with its layers and their time, and under it the reasons against other kernels.

    Those that take most are first. Reasons are cut to the width, if there is one.
    """
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


def layer_kernel_lines(found: Sequence[TimedKernel], width: int) -> list[str]:
    """Return a row for each layer with its kernel and its conversions, the longest first."""
    rows = [("LAYER", "MS", "KERNEL", "CONVERSIONS")]
    for it in sorted(found, key=lambda it: -it.latency_ms):
        implementation = printable(it.kernel.implementation) or _UNKNOWN
        conversions = printable(", ".join(it.kernel.conversions)) or "-"
        rows.append((printable(it.name), milliseconds(it.latency_ms), implementation, conversions))
    room = max(_LEAST_NAME, width // 3)
    # The ends of long names tell layers apart.
    shown = [(name if len(name) <= room else f"...{name[3 - room :]}", *others) for name, *others in rows]
    columns: list[Column[object]] = [Column(title, str, holds_names=title != "MS") for title in rows[0]]
    return [_shortened(line.rstrip(), width) for line in justified(columns, shown)]


def _reason_lines(found: Sequence[TimedKernel], width: int | None) -> list[str]:
    """Return each reason once, with the number of its layers, or with the name of its only one."""
    layers: dict[tuple[str, bool], list[str]] = {}
    for it in found:
        for reason in it.kernel.refusals:
            layers.setdefault((reason, it.kernel.is_derived), []).append(it.name)
    lines = []
    for (reason, is_derived), names in layers.items():
        where = printable(names[0]) if len(names) == 1 else counted(len(names), "layer")
        line = f"{_INDENT}{where}: {printable(reason)}{' (derived)' * is_derived}"
        lines.append(_shortened(line, width))
    return lines


def _shortened(line: str, width: int | None) -> str:
    return line if width is None or len(line) <= width else f"{line[: max(1, width - 3)]}..."


def _sum_ms(found: Sequence[TimedKernel]) -> float:
    return sum(it.latency_ms for it in found)
