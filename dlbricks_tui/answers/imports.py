"""Imports of files and galleries as plain values: the JSON documents of `dlbricks results import`."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.models.graph import Level
from dlbricks_tui.share.galleries import Imported, ImportedFile, ImportedPath
from dlbricks_tui.store.claims import Claim
from dlbricks_tui.store.importing import ImportReport


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
