"""The contents of the store: its systems, and imports of files and galleries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.estimate.comparison import Prices, names_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.share.galleries import Imported, ImportedFile, ImportedPath
from dlbricks_tui.store.claims import Claim
from dlbricks_tui.store.importing import ImportReport
from dlbricks_tui.store.selections import OLDEST_FIRST, by_id, combinations, equal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlbricks_tui.store.database import ResultsDatabase
    from dlbricks_tui.store.records import Peaks, System
    from dlbricks_tui.store.selections import Combination


@dataclass(frozen=True, slots=True)
class KnownSystem:
    """A system with its price per hour, if known, the ways in which it has measured, and its peaks."""

    system: System
    dollars_per_hour: float | None
    ways: tuple[Combination, ...]
    is_host: bool = False
    peaks: tuple[Peaks, ...] = ()
    # The time of its newest result; empty without any.
    newest: str = ""
    # The number of results by their origin: `own`, `unsigned`, or `signed by` somebody.
    origins: Mapping[str, int] = field(default_factory=dict)

    @property
    def bricks(self) -> int:
        """The number of bricks in contexts that were measured there."""
        return sum(way.pairs for way in self.ways)

    @property
    def models(self) -> int:
        """The number of models that were measured there end to end."""
        return max((way.models for way in self.ways), default=0)


def known_systems(store: ResultsDatabase, prices: Prices, host: System | None = None) -> tuple[KnownSystem, ...]:
    """Return the systems of the store; a host comes first, also without results."""
    known = {**({} if host is None else {host.id: host}), **by_id(store.systems())}
    results, peaks = store.select(order=()), store.peaks()
    ways = combinations(results)
    origins = Counter(zip(results.values("system"), results.values("origin"), strict=True))
    newest = {it: found[-1].when for it in known if (found := store.select(equal(system=it), order=OLDEST_FIRST))}
    return tuple(
        KnownSystem(
            system,
            prices.of(names_of(system.id, known)),
            tuple(way for way in ways if way.system == system.id),
            host is not None and system.id == host.id,
            tuple(each for each in peaks if each.system == system.id),
            newest.get(system.id, ""),
            {origin: count for (of, origin), count in sorted(origins.items()) if of == system.id},
        )
        for system in known.values()
    )


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
