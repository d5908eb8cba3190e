"""`dlbricks doctor`: the causes of noise on this host, and weights that make a model slow."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import Json, narrate, show, write_json
from dlbricks_tui.cli.parser import Groups, Status, add_json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from dlbricks_tui.host.noise import Finding
    from dlbricks_tui.measure.denormals import DenormalCount
    from dlbricks_tui.store.records import System

_INDENT = 8
_STYLES = {"quiet": "green", "noisy": "yellow", "unknown": "dim"}


def register(groups: Groups) -> None:
    """Add `doctor`."""
    parser = groups.add_parser("doctor", help="name what disturbs measurements on this host, and what helps")
    parser.add_argument(
        "--params",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="look for denormal numbers in a *.params or *.onnx file; repeatable",
    )
    add_json_option(parser)
    parser.set_defaults(handler=examine)


def examine(args: argparse.Namespace) -> int:
    """Examine the host, and the named files of weights."""
    from dlbricks_tui.host.fingerprint import fingerprint
    from dlbricks_tui.host.noise import findings
    from dlbricks_tui.measure.denormals import denormals_in

    # Weights first, so that a mistyped path is told at once.
    weights = {path: denormals_in(path) for path in args.params}
    system, found = fingerprint(), findings()
    if args.json:
        write_json(
            {
                "system": _system_document(system),
                "noise": [_finding_document(it) for it in found],
                "weights": [_weights_document(path, counts) for path, counts in weights.items()],
            }
        )
    else:
        _show(system, found)
        for path, counts in weights.items():
            _show_weights(path, counts)
    return Status.DONE


def _system_document(system: System) -> Json:
    return {
        "system": system.id,
        "name": system.name,
        "cpu": system.cpu,
        "cores": system.cores,
        "memory_bytes": system.memory_bytes,
        "instance_type": system.instance_type or None,
        **dict(system.facts),
    }


def _finding_document(found: Finding) -> Json:
    return {
        "source": found.source,
        "state": found.state,
        "verdict": found.verdict.value,
        "effect": found.effect,
        "cure": found.cure or None,
    }


def _weights_document(path: Path, counts: Sequence[DenormalCount]) -> Json:
    return {
        "path": str(path),
        "values": sum(it.values for it in counts),
        "denormals": sum(it.denormals for it in counts),
        "arrays": [
            {"array": it.array, "values": it.values, "denormals": it.denormals} for it in counts if it.denormals
        ],
    }


def _show(system: System, found: Sequence[Finding]) -> None:
    from rich.text import Text

    from dlbricks_tui.host.fingerprint import GIBIBYTE

    show(
        Text(f"{system.name}, {system.memory_bytes / GIBIBYTE:.1f} GiB", style="bold"),
        Text(f"known as {system.id}; {_spelled(system)}"),
        Text(),
        *(line for finding in found for line in _lines(finding)),
    )
    noisy = [it.source for it in found if it.verdict.value == "noisy"]
    narrate(f"noisy: {', '.join(noisy)}" if noisy else "no disturbance of this host was found")


def _spelled(system: System) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {str(value).lower()}" for name, value in system.facts)


def _lines(found: Finding) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    verdict = found.verdict.value
    state = f": {found.state}" if found.state != verdict else ""
    head = Text.assemble((f"{verdict:<{_INDENT}}", _STYLES[verdict]), (found.source, "bold"), state)
    if not found.cure:
        return [head]
    below = (found.effect, f"cure: {found.cure}")
    return [head, *(Padding(Text(text), (0, 0, 0, _INDENT), expand=False) for text in below)]


def _show_weights(path: Path, counts: Sequence[DenormalCount]) -> None:
    from rich.text import Text

    from dlbricks_tui.cli.drawing import name_cell, plain_table
    from dlbricks_tui.wording.numbers import percent

    affected = [it for it in counts if it.denormals]
    total = sum(it.denormals for it in affected)
    values = sum(it.values for it in counts)
    if not affected:
        show(Text(f"{path}: none of {values} values is denormal"))
        return
    table = plain_table("ARRAY", "VALUES", "DENORMAL", "SHARE")
    for it in affected:
        table.add_row(name_cell(it.array), str(it.values), str(it.denormals), percent(it.share, 2))
    show(Text(f"{path}: {total} of {values} values are denormal; kernels may take up to ten times as long"), table)
    narrate("cure: set what is smaller than 1e-30 to zero before the model is saved; results do not change")
