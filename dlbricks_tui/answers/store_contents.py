"""The contents of the store: its systems, and imports of files and galleries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.answers.documents import taken
from dlbricks_tui.estimate.comparison import Candidate, Prices, candidates, names_of, read_prices
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import Finding, NoiseVerdict, findings
from dlbricks_tui.models.graph import Level
from dlbricks_tui.share.galleries import Imported, ImportedFile
from dlbricks_tui.store.claims import Claim
from dlbricks_tui.store.importing import ImportReport
from dlbricks_tui.store.selections import OLDEST_FIRST, Combination, by_id, combinations, equal

if TYPE_CHECKING:
    from dlbricks_tui.answers.scope import EstimateOptions
    from dlbricks_tui.answers.session import WorkbenchSession
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.store.database import ResultsDatabase
    from dlbricks_tui.store.records import Peaks, RuntimeRecord, System


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


class Systems(NamedTuple):
    """This host and the systems of the store, and the runtimes by id."""

    known: tuple[KnownSystem, ...]
    runtimes: Mapping[str, RuntimeRecord]


def list_systems(session: WorkbenchSession) -> Systems:
    """Return the systems of the store after this host."""
    host, prices = fingerprint(), read_prices(session.data.path)
    with session.store.held() as store:
        store.refresh()
        return Systems(known_systems(store, prices, host), by_id(store.runtimes()))


def rank_systems(source: ModelSource, options: EstimateOptions, data: DataFolder) -> tuple[Candidate, ...]:
    """Return the answers of a model on every system, the fastest first."""
    from dlbricks_tui.answers.session import own_estimator

    prices = read_prices(data.path)
    with own_estimator(options, data) as estimator:
        known = by_id(estimator.store.systems())
        found = estimator.on_systems([source], list(known))
    return candidates(found[source.name], known, prices)


def examine_host() -> list[Finding]:
    """Return the sources of noise on this host, the worst first."""
    worst_first = (NoiseVerdict.NOISY, NoiseVerdict.UNKNOWN, NoiseVerdict.QUIET)
    return sorted(findings(), key=lambda it: worst_first.index(it.verdict))


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
    found: list[ImportResult] = []
    for it in done.paths:
        reports = [file.report for file in it.files]
        found.append(
            ImportResult(
                path=it.path.absolute(),
                new=sum(each.new for each in reports),
                known=sum(each.known for each in reports),
                **_doubts(reports),
                files=tuple(map(_of_file, it.files)),
                ignored=it.ignored,
                claims=claims,
            )
        )
    return tuple(found)


def _of_file(file: ImportedFile) -> FileResult:
    how = {"path": file.path.absolute(), "signer": file.signer or None, "refusal": file.refusal or None}
    return taken(FileResult, file, file.report, **how, **_doubts([file.report]))


def _doubts(reports: Sequence[ImportReport]) -> dict[str, Any]:
    """Return the conflicts of files, and the lines of them that were refused."""
    conflicts = (ImportConflict(each.stored, each.imported) for it in reports for each in it.conflicts)
    return {"conflicts": tuple(conflicts), "refused": tuple(str(each) for it in reports for each in it.refused)}


def _contradiction(claim: Claim) -> ContradictionResult:
    claimed = tuple(taken(ClaimResult, each.result, file=each.file or None) for each in claim.claimed)
    return taken(ContradictionResult, claim.subject, claim, claimed=claimed)
