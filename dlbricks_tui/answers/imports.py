"""Imports of files and galleries, and of the paper's measurements: their documents, and what happened in words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlbricks_tui.answers.opening import library
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.share.galleries import Imported, ImportedFile, ImportedPath, Trust, import_paths
from dlbricks_tui.share.signatures import signers_of
from dlbricks_tui.store.claims import Claim
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.dlbricks_2019.checkout import PublishedModels
from dlbricks_tui.store.dlbricks_2019.results import SystemReport, import_checkout
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.importing import ImportReport
from dlbricks_tui.wording.numbers import counted, in_ms, names_of

_MOST_NAMED = 20
_MOST_CLAIMED = 4


@dataclass(frozen=True, slots=True)
class ImportConflict:
    """A record with the id of a stored one and another content; it was stored under another id."""

    stored: str
    imported: str


@dataclass(frozen=True, slots=True)
class FileResult:
    """The import of one file; `refusal` says why all of it was refused, and `refused` lists lines of it."""

    path: Path
    # In the gallery, and in the origin of results.
    name: str
    signer: str | None
    new: int
    known: int
    conflicts: tuple[ImportConflict, ...]
    refused: tuple[str, ...]
    refusal: str | None


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The claim of one file, or of this store itself, whose `file` is null."""

    id: str
    file: str | None
    origin: str
    trimmed_mean_ms: float
    low_ms: float
    high_ms: float
    when: str


@dataclass(frozen=True, slots=True)
class ContradictionResult:
    """A latency that several sources claim differently; the first claim counts in estimates."""

    name: str
    brick: str
    context: str
    model: str
    system: str
    runtime: str
    level: Level
    protocol: str
    batch_size: int
    # The highest latency divided by the lowest.
    ratio: float
    p_value: float | None
    claimed: tuple[ClaimResult, ...]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The import of a file or a folder; `ignored` counts the files of a folder that are no results."""

    path: Path
    new: int
    known: int
    conflicts: tuple[ImportConflict, ...]
    refused: tuple[str, ...]
    files: tuple[FileResult, ...]
    ignored: int
    # Those of all paths of the command.
    claims: tuple[ContradictionResult, ...]


def import_results(done: Imported) -> tuple[ImportResult, ...]:
    """Return the import of each path."""
    claims = tuple(map(_contradiction, done.claims))
    return tuple(_of_path(path, claims) for path in done.paths)


def _of_path(path: ImportedPath, claims: tuple[ContradictionResult, ...]) -> ImportResult:
    reports = [it.report for it in path.files]
    return ImportResult(
        path.path.absolute(),
        sum(it.new for it in reports),
        sum(it.known for it in reports),
        _conflicts(reports),
        tuple(str(each) for it in reports for each in it.refused),
        tuple(map(_of_file, path.files)),
        path.ignored,
        claims,
    )


def _of_file(file: ImportedFile) -> FileResult:
    report = file.report
    return FileResult(
        file.path.absolute(),
        file.name,
        file.signer or None,
        report.new,
        report.known,
        _conflicts([report]),
        tuple(map(str, report.refused)),
        file.refusal or None,
    )


def _conflicts(reports: Iterable[ImportReport]) -> tuple[ImportConflict, ...]:
    return tuple(ImportConflict(each.stored, each.imported) for it in reports for each in it.conflicts)


def _contradiction(claim: Claim) -> ContradictionResult:
    it = claim.subject
    claimed = tuple(
        ClaimResult(
            each.result.id,
            each.file or None,
            each.result.origin,
            each.result.trimmed_mean_ms,
            each.result.low_ms,
            each.result.high_ms,
            each.result.when,
        )
        for each in claim.claimed
    )
    about = (it.name, it.brick, it.context, it.model, it.system, it.runtime, it.level, it.protocol, it.batch_size)
    return ContradictionResult(*about, claim.ratio, claim.p_value, claimed)


def imported(
    store: ResultsDatabase,
    paths: Sequence[Path],
    data: DataFolder,
    *,
    signers: Sequence[Path] = (),
    require_signature: bool = False,
    ignore_signatures: bool = False,
) -> Imported:
    """Import exported files and folders."""
    return import_paths(store, paths, Trust(signers_of(data, signers), require_signature, ignore_signatures))


def import_lines(done: Imported) -> Iterator[str]:
    """Yield the outcome for each file or folder, and the claims that contradict each other."""
    for path in done.paths:
        yield from _path_lines(path)
    yield from _claim_lines(done.claims)


def _path_lines(path: ImportedPath) -> Iterator[str]:
    reports = [it.report for it in path.files]
    signers = sorted({it.signer for it in path.files if it.signer})
    signed = f", signed by {names_of(signers, _MOST_NAMED)}" if signers else ""
    among = f" in {counted(sum(not it.refusal for it in path.files), 'file')}" if path.is_folder else ""
    among += f", {counted(path.ignored, 'other file')} left out" if path.ignored else ""
    new, known = sum(it.new for it in reports), sum(it.known for it in reports)
    yield f"{path.path}: {counted(new, 'new record')}, {known} known before{among}{signed}"
    lines = [f"{it.refusal}; it was not imported" for it in path.files if it.refusal]
    for file in path.files:
        named = file.name if path.is_folder else "the file"
        lines += [
            f"{it.stored} differs in {named}, whose record is kept beside it as {it.imported}"
            for it in file.report.conflicts
        ]
        folder = file.name[: -len(file.path.name)] if path.is_folder else ""
        lines += [f"{folder}{it}" for it in _refusals(file.report.refused)]
    yield from lines[:_MOST_NAMED]
    if len(lines) > _MOST_NAMED:
        yield f"and {len(lines) - _MOST_NAMED} more; --json lists all refused files, conflicts and damaged lines"


def _refusals(refused: Sequence[Damage]) -> Iterator[str]:
    """Yield a line for each reason, with the first place and the number of others."""
    alike: dict[str, list[Damage]] = {}
    for it in refused:
        alike.setdefault(it.reason, []).append(it)
    for first, *others in alike.values():
        beside = f", nor were {counted(len(others), 'other')} like it" if others else ""
        yield f"{first} and was not imported{beside}"


def _claim_lines(claims: Sequence[Claim]) -> Iterator[str]:
    """Yield the claims that contradict each other, the one that counts first."""
    if claims:
        yield f"claims about {counted(len(claims), 'result')} contradict each other; estimates use the first of each:"
    for claim in claims[:_MOST_NAMED]:
        it = claim.subject
        name = f"{it.name or it.brick or it.model} {it.context}".strip()
        batch = f", batch {it.batch_size}" if it.batch_size > 1 else ""
        said = ", ".join(
            f"{in_ms(each.result.trimmed_mean_ms)} {f'in {each.file} ' if each.file else ''}({each.result.origin})"
            for each in claim.claimed[:_MOST_CLAIMED]
        )
        others = len(claim.claimed) - _MOST_CLAIMED
        more = f", and {others} more" if others > 0 else ""
        yield f"{name} on {it.system} by {it.runtime}{batch}: {said}{more}"
    if len(claims) > _MOST_NAMED:
        yield f"and {len(claims) - _MOST_NAMED} more, which --json lists"


@dataclass(frozen=True, slots=True)
class ImportedCheckout:
    """The import of a checkout of the paper's measurements."""

    path: Path
    reports: tuple[SystemReport, ...]

    @property
    def is_broken(self) -> bool:
        """True if some files could not be read."""
        return any(report.broken for report in self.reports)

    @property
    def lines(self) -> Iterator[str]:
        """The outcome of all systems together."""
        outside = sorted({name for report in self.reports for name in report.outside})
        if outside:
            rows = sum(report.outside.total() for report in self.reports)
            models = f"{counted(len(outside), 'model')} that Table 1 does not have: {names_of(outside, _MOST_NAMED)}"
            yield f"left out: {counted(rows, 'row')} of {models}"
        new, known = sum(report.new for report in self.reports), sum(report.known for report in self.reports)
        yield f"{self.path}: {counted(new, 'result')} new, {known} known, on {counted(len(self.reports), 'system')}"

    def document(self) -> dict[str, Any]:
        """Return it as a JSON document."""
        return {
            "path": self.path.absolute(),
            "new": sum(report.new for report in self.reports),
            "known": sum(report.known for report in self.reports),
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
                for report in self.reports
            ],
        }


def checkout_reports(
    store: ResultsDatabase, checkout: Path, data: DataFolder, loader: Loader
) -> Iterator[SystemReport]:
    """Import a checkout of the paper's measurements, and yield each system of it."""
    return import_checkout(store, checkout, PublishedModels(library(data).samples(), loader.load))


def system_lines(report: SystemReport) -> Iterator[str]:
    """Yield what was imported of a system."""
    yield (
        f"{report.system}: {counted(report.new, 'result')} new, {report.known} known; "
        f"{counted(len(report.by_layers), 'model')} by layers, {len(report.end_to_end)} end to end"
    )
    if whole_only := sorted(report.end_to_end - report.by_layers):
        yield f"{report.system}: only end-to-end results of {', '.join(whole_only[:_MOST_NAMED])}"
    if report.unmatched:
        yield f"{report.system}: {counted(len(report.unmatched), 'row')} could not be used"
