"""`dlbricks results import`: import exported files, galleries of them, and the measurements of the paper."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlbricks_tui.answers.documents import document
from dlbricks_tui.cli.output import narrate, narrate_some, write_json
from dlbricks_tui.cli.parser import Actions, Status, UsageError, add_action, add_repeatable, add_schema_option
from dlbricks_tui.cli.store import open_loader, open_store
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.wording.numbers import counted, in_ms, names_of

if TYPE_CHECKING:
    from dlbricks_tui.share.galleries import ImportedPath
    from dlbricks_tui.store.claims import Claim
    from dlbricks_tui.store.files import Damage
    from dlbricks_tui.store.published import SystemReport

_OWN, _PUBLISHED = "dlbricks", "dlbricks-2019"
_MOST_NAMED = 20
_MOST_CLAIMED = 4


def add_import(actions: Actions) -> None:
    """Add `import`."""
    about = "import exported results, or the published measurements of the paper"
    parser = add_action(actions, "import", about, run_import)
    parser.add_argument(
        "paths",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="a file of `results export`, a folder of such files, or a checkout (see --format)",
    )
    parser.add_argument("--require-signature", action="store_true", help="refuse files without a signature")
    about = "more trusted signers: an allowed_signers file of OpenSSH, or a public key of minisign"
    add_repeatable(parser, "--signers", "FILE", about, type=Path)
    about = "import signed files as unsigned, without verifying them"
    parser.add_argument("--ignore-signatures", action="store_true", help=about)
    add_schema_option(parser, "ImportResult", module="store_contents", many=True)
    parser.add_argument(
        "--format",
        choices=(_OWN, _PUBLISHED),
        default=_OWN,
        help=f"{_PUBLISHED}: each FILE is a checkout of github.com/rai-project/synthetic_benchmark, the measurements "
        f"of the DLBricks paper (default: {_OWN}, what `results export` writes)",
    )


def run_import(args: argparse.Namespace) -> int:
    """Import results, and say which were known, which could not be used and which cannot be read."""
    if args.require_signature and args.ignore_signatures:
        raise UsageError("--require-signature and --ignore-signatures exclude each other")
    documents, complete = _import_published(args.data, args.paths) if args.format == _PUBLISHED else _import_files(args)
    if args.json:
        write_json(documents)
    return Status.DONE if complete else Status.DONE_WITH_FAILURES


def _import_files(args: argparse.Namespace) -> tuple[Sequence[Any], bool]:
    """Import exported files and folders; return a document for each, and True if all of each could be read."""
    # Loaded here: the other format has no signatures.
    from dlbricks_tui.answers.store_contents import import_results
    from dlbricks_tui.share.galleries import Trust, import_paths
    from dlbricks_tui.share.signatures import signers_of

    trust = Trust(signers_of(args.data, args.signers), args.require_signature, args.ignore_signatures)
    with open_store(args.data) as store:
        done = import_paths(store, args.paths, trust)
    for path in done.paths:
        _tell_path(path)
    _tell_claims(done.claims)
    return document(import_results(done)), done.complete


def _import_published(data: DataFolder, checkouts: Sequence[Path]) -> tuple[Sequence[Any], bool]:
    """Import checkouts like `_import_files` imports files."""
    from dlbricks_tui.answers.opening import library
    from dlbricks_tui.store.published import PublishedModels, import_checkout

    documents: list[Any] = []
    broken = False
    with open_store(data) as store, open_loader(data) as loader:
        models = PublishedModels(library(data).samples(), loader.load)
        for checkout in checkouts:
            reports = []
            for report in import_checkout(store, checkout, models):
                _tell_system(report)
                reports.append(report)
            _tell_checkout(checkout, reports)
            documents.append(_document(checkout, reports))
            broken |= any(report.broken for report in reports)
    return documents, not broken


def _tell_path(path: ImportedPath) -> None:
    """Narrate the outcome for a file, or for all files of a folder."""
    reports = [it.report for it in path.files]
    signers = sorted({it.signer for it in path.files if it.signer})
    signed = f", signed by {names_of(signers, _MOST_NAMED)}" if signers else ""
    among = f" in {counted(sum(not it.refusal for it in path.files), 'file')}" if path.is_folder else ""
    among += f", {counted(path.ignored, 'other file')} left out" if path.ignored else ""
    new, known = sum(it.new for it in reports), sum(it.known for it in reports)
    narrate(f"{path.path}: {counted(new, 'new record')}, {known} known before{among}{signed}")
    lines = [f"{it.refusal}; it was not imported" for it in path.files if it.refusal]
    for file in path.files:
        named = file.name if path.is_folder else "the file"
        lines += [
            f"{it.stored} differs in {named}, whose record is kept beside it as {it.imported}"
            for it in file.report.conflicts
        ]
        folder = file.name[: -len(file.path.name)] if path.is_folder else ""
        lines += [f"{folder}{it}" for it in _refusals(file.report.refused)]
    for line in lines[:_MOST_NAMED]:
        narrate(line)
    if len(lines) > _MOST_NAMED:
        narrate(f"and {len(lines) - _MOST_NAMED} more; --json lists all refused files, conflicts and damaged lines")


def _refusals(refused: Sequence[Damage]) -> Iterator[str]:
    """Yield a line for each reason, with the first place and the number of others."""
    alike: dict[str, list[Damage]] = {}
    for it in refused:
        alike.setdefault(it.reason, []).append(it)
    for first, *others in alike.values():
        beside = f", nor were {counted(len(others), 'other')} like it" if others else ""
        yield f"{first} and was not imported{beside}"


def _tell_claims(claims: Sequence[Claim]) -> None:
    """Narrate the claims that contradict each other, the one that counts first."""
    if claims:
        narrate(
            f"claims about {counted(len(claims), 'result')} contradict each other; estimates use the first of each:"
        )
    for claim in claims[:_MOST_NAMED]:
        it = claim.subject
        name = f"{it.name or it.brick or it.model} {it.context}".strip()
        batch = f", batch {it.batch_size}" if it.batch_size > 1 else ""
        said = ", ".join(
            f"{in_ms(each.result.trimmed_mean_ms)} {f'in {each.file} ' if each.file else ''}({each.result.origin})"
            for each in claim.claimed[:_MOST_CLAIMED]
        )
        others = len(claim.claimed) - _MOST_CLAIMED
        narrate(
            f"{name} on {it.system} by {it.runtime}{batch}: {said}" + (f", and {others} more" if others > 0 else "")
        )
    if len(claims) > _MOST_NAMED:
        narrate(f"and {len(claims) - _MOST_NAMED} more, which --json lists")


def _tell_system(report: SystemReport) -> None:
    narrate(
        f"{report.system}: {counted(report.new, 'result')} new, {report.known} known; "
        f"{counted(len(report.by_layers), 'model')} by layers, {len(report.end_to_end)} end to end"
    )
    whole_only = sorted(report.end_to_end - report.by_layers)
    if whole_only:
        narrate(f"{report.system}: only end-to-end results of {', '.join(whole_only[:_MOST_NAMED])}")
    if report.unmatched:
        narrate(f"{report.system}: {counted(len(report.unmatched), 'row')} could not be used")
    narrate_some([str(row) for row in report.unmatched], "rows")
    narrate_some([f"{file}; it was skipped" for file in report.broken], "broken files")


def _tell_checkout(checkout: Path, reports: Sequence[SystemReport]) -> None:
    outside = sorted({name for report in reports for name in report.outside})
    if outside:
        rows = sum(report.outside.total() for report in reports)
        narrate(
            f"left out: {counted(rows, 'row')} of {counted(len(outside), 'model')} that Table 1 does not have: "
            f"{names_of(outside, _MOST_NAMED)}"
        )
    new, known = sum(report.new for report in reports), sum(report.known for report in reports)
    narrate(f"{checkout}: {counted(new, 'result')} new, {known} known, on {counted(len(reports), 'system')}")


def _document(checkout: Path, reports: Sequence[SystemReport]) -> dict[str, Any]:
    return {
        "path": checkout.absolute(),
        "new": sum(report.new for report in reports),
        "known": sum(report.known for report in reports),
        "systems": [
            {
                "system": report.system,
                "new": report.new,
                "known": report.known,
                "by_layers": sorted(report.by_layers),
                "end_to_end": sorted(report.end_to_end),
                "unmatched": report.unmatched,
                "outside_table1": dict(sorted(report.outside.items())),
                "broken": report.broken,
            }
            for report in reports
        ],
    }
