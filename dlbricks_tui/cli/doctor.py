"""`dlbricks doctor`: the causes of noise on this host, and weights that make a model slow."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from dlbricks_tui.answers.documents import document
from dlbricks_tui.cli.drawing import name_cell, plain_table
from dlbricks_tui.cli.output import narrate, show, write_json
from dlbricks_tui.cli.parser import Parser, Status, add_json_option, add_repeatable
from dlbricks_tui.host.fingerprint import GIBIBYTE, fingerprint
from dlbricks_tui.host.noise import Finding, findings
from dlbricks_tui.measure.denormals import DenormalCount, denormals_in
from dlbricks_tui.store.records import System
from dlbricks_tui.wording.numbers import percent

_INDENT = 8
_STYLES = {"quiet": "green", "noisy": "yellow", "unknown": "dim"}


def register(parser: Parser) -> None:
    """Add the options of `doctor`."""
    about = "look for denormal numbers in a *.params or *.onnx file"
    add_repeatable(parser, "--params", "FILE", about, type=Path)
    add_json_option(parser)
    parser.set_defaults(handler=examine)


def examine(args: argparse.Namespace) -> int:
    """Examine the host, and the named files of weights."""
    # Weights first, so that a mistyped path is refused at once.
    weights = {path: denormals_in(path) for path in args.params}
    system, found = fingerprint(), findings()
    if args.json:
        noise = [{**document(it), "cure": it.cure or None} for it in found]
        files = [_weights_document(path, counts) for path, counts in weights.items()]
        write_json({"system": _system_document(system), "noise": noise, "weights": files})
    else:
        _show(system, found)
        for path, counts in weights.items():
            _show_weights(path, counts)
    return Status.DONE


def _system_document(system: System) -> dict[str, Any]:
    return {
        "system": system.id,
        "name": system.name,
        "cpu": system.cpu,
        "cores": system.cores,
        "memory_bytes": system.memory_bytes,
        "instance_type": system.instance_type or None,
        **dict(system.facts),
    }


def _weights_document(path: Path, counts: Sequence[DenormalCount]) -> dict[str, Any]:
    return {
        "path": path,
        "values": sum(it.values for it in counts),
        "denormals": sum(it.denormals for it in counts),
        "arrays": [it for it in counts if it.denormals],
    }


def _show(system: System, found: Sequence[Finding]) -> None:
    facts = ", ".join(f"{name.replace('_', ' ')} {str(value).lower()}" for name, value in system.facts)
    show(
        Text(f"{system.name}, {system.memory_bytes / GIBIBYTE:.1f} GiB", style="bold"),
        Text(f"known as {system.id}; {facts}"),
        Text(),
        *(line for finding in found for line in _lines(finding)),
    )
    noisy = [it.source for it in found if it.verdict.value == "noisy"]
    narrate(f"noisy: {', '.join(noisy)}" if noisy else "no disturbance of this host was found")


def _lines(found: Finding) -> Iterator[RenderableType]:
    verdict = found.verdict.value
    state = f": {found.state}" if found.state != verdict else ""
    yield Text.assemble((f"{verdict:<{_INDENT}}", _STYLES[verdict]), (found.source, "bold"), state)
    if found.cure:
        for text in (found.effect, f"cure: {found.cure}"):
            yield Padding(Text(text), (0, 0, 0, _INDENT), expand=False)


def _show_weights(path: Path, counts: Sequence[DenormalCount]) -> None:
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
