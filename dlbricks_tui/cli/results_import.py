"""`dlbricks results import`: import exported files, and the measurements of the paper."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlbricks_tui.cli.output import narrate, narrate_some, write_json
from dlbricks_tui.cli.parser import Actions, Status, add_action
from dlbricks_tui.cli.store import open_loader, open_store
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.store.importing import ImportReport, import_file
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from dlbricks_tui.store.dlbricks_2019.importing import SystemReport

_OWN, _PUBLISHED = "dlbricks", "dlbricks-2019"
_MOST_NAMED = 20


def add_import(actions: Actions) -> None:
    """Add `import`."""
    about = "import exported results, or the published measurements of the paper"
    parser = add_action(actions, "import", about, import_results)
    parser.add_argument(
        "paths", metavar="FILE", type=Path, nargs="+", help="a file of `results export`, or a checkout (see --format)"
    )
    parser.add_argument(
        "--format",
        choices=(_OWN, _PUBLISHED),
        default=_OWN,
        help=f"{_PUBLISHED}: each FILE is a checkout of github.com/rai-project/synthetic_benchmark, the measurements "
        f"of the DLBricks paper (default: {_OWN}, what `results export` writes)",
    )


def import_results(args: argparse.Namespace) -> int:
    """Import results, and say which were known, which could not be used and which cannot be read."""
    import_all = _import_published if args.format == _PUBLISHED else _import_files
    documents, complete = import_all(args.data, args.paths)
    if args.json:
        write_json(documents)
    return Status.DONE if complete else Status.DONE_WITH_FAILURES


def _import_files(data: DataFolder, files: Sequence[Path]) -> tuple[list[Any], bool]:
    """Import exported files; return a document for each, and True if all of each could be read."""
    documents: list[Any] = []
    refused = False
    with open_store(data) as store:
        for file in files:
            report = import_file(store, file)
            _tell_file(file, report)
            documents.append(
                {
                    "path": file.absolute(),
                    "new": report.new,
                    "known": report.known,
                    "conflicts": [{"stored": each.stored, "imported": each.imported} for each in report.conflicts],
                    "refused": [str(each) for each in report.refused],
                }
            )
            refused |= bool(report.refused)
    return documents, not refused


def _import_published(data: DataFolder, checkouts: Sequence[Path]) -> tuple[list[Any], bool]:
    """Import checkouts like `_import_files` imports files."""
    from dlbricks_tui.answers.opening import library
    from dlbricks_tui.store.dlbricks_2019.importing import import_checkout
    from dlbricks_tui.store.dlbricks_2019.models import PublishedModels

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


def _tell_file(file: Path, report: ImportReport) -> None:
    narrate(f"{file}: {counted(report.new, 'new record')}, {report.known} known before")
    for conflict in report.conflicts[:_MOST_NAMED]:
        narrate(f"{conflict.stored} differs in the file, whose record is kept beside it as {conflict.imported}")
    for damage in report.refused[:_MOST_NAMED]:
        narrate(f"{damage} and was not imported")
    untold = len(report.conflicts[_MOST_NAMED:]) + len(report.refused[_MOST_NAMED:])
    if untold:
        narrate(f"and {untold} more; --json lists all conflicts and damaged lines")


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
