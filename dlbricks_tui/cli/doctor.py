"""`dlbricks doctor`: the causes of noise on this host, its peaks, and weights that make a model slow."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dlbricks_tui.answers.documents import document
from dlbricks_tui.cli.output import narrate, narrate_waiting, write_json
from dlbricks_tui.cli.parser import Parser, Status, Typed, add_json_option, add_repeatable
from dlbricks_tui.cli.rendering import show_parts
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Part, Sentence, Table, name_column
from dlbricks_tui.documents.systems import finding_parts
from dlbricks_tui.host.fingerprint import GIBIBYTE, fingerprint
from dlbricks_tui.host.noise import Finding, NoiseVerdict, findings
from dlbricks_tui.host.peaks import PeaksError, keep_peaks
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.measure.denormals import DenormalCount, denormals_in
from dlbricks_tui.settings.variant import THREADS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks, System
from dlbricks_tui.wording.numbers import counted, percent, speeds


def register(parser: Parser) -> None:
    """Add the options of `doctor`."""
    about = "look for denormal numbers in a *.params or *.onnx file"
    add_repeatable(parser, "--params", "FILE", about, type=Path)
    parser.add_argument(
        "--peaks",
        action="store_true",
        help="measure for about four seconds how fast this host computes and reads memory, and store it",
    )
    parser.add_argument(
        "--threads",
        metavar="N",
        type=Typed(THREADS.kind),
        help="number of threads for --peaks (default: one for each usable core)",
    )
    add_json_option(parser)
    parser.set_defaults(handler=examine)


def examine(args: argparse.Namespace) -> int:
    """Examine the host, and the named files of weights."""
    # Weights first, so that a mistyped path is refused at once.
    weights = {path: denormals_in(path) for path in args.params}
    system = fingerprint()
    if args.threads is not None and not args.peaks:
        raise PeaksError("--threads is the number of threads for --peaks: add --peaks, or leave --threads out")
    # Before the noise is examined, which the measured threads would be part of.
    peaks = _peaks(args, system)
    found = findings()
    if args.json:
        noise = [{**document(it), "cure": it.cure or None} for it in found]
        files = [_weights_document(path, counts) for path, counts in weights.items()]
        documents = [peaks_document(it) for it in peaks]
        write_json({"system": _system_document(system), "peaks": documents, "noise": noise, "weights": files})
    else:
        show_parts(_host_parts(system, peaks, found))
        noisy = [it.source for it in found if it.verdict is NoiseVerdict.NOISY]
        narrate(f"noisy: {', '.join(noisy)}" if noisy else "no disturbance of this host was found")
        for path, counts in weights.items():
            _show_weights(path, counts)
    return Status.DONE


def peaks_document(peaks: Peaks) -> dict[str, Any]:
    """Return the peaks at a number of threads as a JSON document."""
    return {
        "threads": peaks.threads,
        "gflops": dict(peaks.arithmetic),
        "gigabytes_per_second": dict(peaks.bandwidth),
        "when": peaks.when,
    }


def _peaks(args: argparse.Namespace, system: System) -> tuple[Peaks, ...]:
    """Return the stored peaks of this host, after they were measured if that was asked for."""
    if not args.peaks and not args.data.store.exists():
        return ()
    if args.peaks:
        threads = system.cores if args.threads is None else args.threads
        keep_peaks(args.data.store, system, threads, host_queue(), args.data.path, narrate_waiting)
    with ResultsDatabase(args.data.store) as store:
        return tuple(it for it in store.peaks() if it.system == system.id)


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


def _host_parts(system: System, peaks: Sequence[Peaks], found: Sequence[Finding]) -> Iterator[Part]:
    facts = ", ".join(f"{name.replace('_', ' ')} {str(value).lower()}" for name, value in system.facts)
    yield Sentence(f"{system.name}, {system.memory_bytes / GIBIBYTE:.1f} GiB", "strong")
    yield Sentence(f"known as {system.id}; {facts}")
    for it in peaks:
        yield Sentence(f"at most {speeds(it)}, with {counted(it.threads, 'thread')}")
    yield BLANK_LINE
    for each in found:
        yield from finding_parts(each)


def _show_weights(path: Path, counts: Sequence[DenormalCount]) -> None:
    affected = [it for it in counts if it.denormals]
    total = sum(it.denormals for it in affected)
    values = sum(it.values for it in counts)
    if not affected:
        show_parts([Sentence(f"{path}: none of {counted(values, 'value')} is denormal")])
        return
    columns: tuple[Column[DenormalCount], ...] = (
        name_column("array", lambda it: it.array),
        Column("values", lambda it: it.values),
        Column("denormal", lambda it: it.denormals),
        Column("share", lambda it: percent(it.share, 2)),
    )
    denormal = f"{total} of {counted(values, 'value')} denormal"
    told = Sentence(f"{path}: {denormal}; kernels may take up to ten times as long")
    show_parts([told, Table(columns, affected)])
    narrate("cure: set what is smaller than 1e-30 to zero before the model is saved; results do not change")
