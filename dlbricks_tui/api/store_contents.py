"""The contents of the store: its systems, and imports of files and galleries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.api.doctor import peaks_document, system_document
from dlbricks_tui.api.documents import attributes_of, taken
from dlbricks_tui.api.estimating import Estimator, open_estimator
from dlbricks_tui.api.opening import library
from dlbricks_tui.estimate.comparison import (
    PRICES_FILE,
    Candidate,
    against_quickest,
    candidates,
    cheapest,
    price_of,
    quickest,
    read_prices,
)
from dlbricks_tui.estimate.system_estimate import find_system
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import Finding, NoiseVerdict, findings
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.share.galleries import Imported, ImportedFile, ImportedPath, Trust, import_paths
from dlbricks_tui.share.signatures import signers_of
from dlbricks_tui.store.claims import Claim
from dlbricks_tui.store.exchange import ImportReport
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.index import OWN
from dlbricks_tui.store.published import PublishedModels, SystemReport, import_checkout
from dlbricks_tui.store.selections import OLDEST_FIRST, Combination, by_id, combinations, equal
from dlbricks_tui.wording.numbers import counted, in_ms
from dlbricks_tui.wording.numbers import names_of as listed_names

if TYPE_CHECKING:
    from dlbricks_tui.api.scope import EstimateOptions
    from dlbricks_tui.api.session import WorkbenchSession
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
    # The number of models that were measured there end to end.
    models: int = 0

    @property
    def bricks(self) -> int:
        """The number of bricks in contexts that were measured there."""
        return sum(way.pairs for way in self.ways)

    @property
    def imported(self) -> list[str]:
        """The numbers of results that were imported, each with its origin."""
        return [f"{count:,} {origin}" for origin, count in self.origins.items() if origin != OWN]


class Systems(NamedTuple):
    """This host and the systems of the store, and the runtimes by id."""

    known: tuple[KnownSystem, ...]
    runtimes: Mapping[str, RuntimeRecord]


def list_systems(session: WorkbenchSession) -> Systems:
    """Return the systems of the store after this host."""
    host = fingerprint()
    with session.store.held(refresh=True) as store:
        return Systems(known_systems(store, session.data, host), by_id(store.runtimes()))


def rank_systems(source: ModelSource, options: EstimateOptions, data: DataFolder) -> Sequence[Candidate]:
    """Return the answers of a model on every system, the fastest first."""
    with open_estimator(options, data) as estimator:
        return ranked_systems(estimator, [source], ()).get(source.name, ())


def examine_host() -> list[Finding]:
    """Return the sources of noise on this host, the worst first."""
    worst_first = (NoiseVerdict.NOISY, NoiseVerdict.UNKNOWN, NoiseVerdict.QUIET)
    return sorted(findings(), key=lambda it: worst_first.index(it.verdict))


def known_systems(store: ResultsDatabase, data: DataFolder, host: System | None = None) -> tuple[KnownSystem, ...]:
    """Return the systems of the store; a host comes first, also without results."""
    prices = read_prices(data.path)
    known = {**({} if host is None else {host.id: host}), **by_id(store.systems())}
    results, peaks = store.select(order=()), store.peaks()
    ways = combinations(results)
    counted_ones = store.results(order=())
    origins = Counter(zip(counted_ones.values("system"), counted_ones.values("origin"), strict=True))
    timed = store.select(equal(of="model"), order=())
    # A model has other keys in other formats and batch sizes.
    models = Counter(system for system, _ in set(zip(timed.values("system"), timed.values("name"), strict=True)))
    newest = {it: found[-1].when for it in known if (found := store.select(equal(system=it), order=OLDEST_FIRST))}
    return tuple(
        KnownSystem(
            system,
            price_of(prices, system.id, system),
            tuple(way for way in ways if way.system == system.id),
            host is not None and system.id == host.id,
            tuple(each for each in peaks if each.system == system.id),
            newest.get(system.id, ""),
            {origin: count for (of, origin), count in sorted(origins.items()) if of == system.id},
            models[system.id],
        )
        for system in known.values()
    )


def prices_file(data: DataFolder) -> Path:
    """Return the file of prices that the user may change."""
    return data.path / PRICES_FILE


def ranked_systems(
    estimator: Estimator, sources: Sequence[ModelSource], names: Sequence[str]
) -> dict[str, list[Candidate]]:
    """Return the systems of these names, or all, ranked for each model that has results, by its name."""
    known = by_id(estimator.store.systems())
    wanted = [find_system(name, known) for name in names] or list(known)
    prices = read_prices(estimator.data.path)
    estimates = estimator.on_systems(sources, wanted)
    return {name: list(found) for name, held in estimates.items() if (found := candidates(held, known, prices))}


def known_system_document(known: KnownSystem) -> dict[str, Any]:
    """Return a system and the numbers of its results as a JSON document."""
    return {
        **system_document(known.system),
        "dollars_per_hour": known.dollars_per_hour,
        "peaks": [peaks_document(it) for it in known.peaks],
        "results": [
            {**attributes_of(it, "runtime", "level", "protocol"), "bricks": it.pairs, "models": it.models}
            for it in known.ways
        ],
        "origins": known.origins,
    }


def candidate_documents(found: Sequence[Candidate]) -> Iterator[dict[str, Any]]:
    """Yield the systems of one model as JSON documents."""
    best, thrifty = quickest(found), cheapest(found)
    for it, change in zip(found, against_quickest(found), strict=True):
        one, way, composed = it.estimate, it.estimate.way, it.estimate.estimate.composed
        # Of the latency above it: measured, or else estimated.
        interval = one.figure.latency[1:] if one.figure is not None else composed.latency[1:] if composed else None
        yield {
            "model": one.estimate.model,
            **attributes_of(way, "system", "runtime", "level"),
            "granularity": one.estimate.cutting.granularity,
            "latency_ms": it.latency_ms,
            "interval_ms": interval,
            "complete": it.complete,
            "predicted_share": one.estimate.predicted_share,
            "measured_ms": one.end_to_end.value_ms if one.end_to_end else None,
            **attributes_of(it, "dollars_per_hour", "dollars_per_million"),
            "quickest": it is best,
            # Against the quickest; null for that itself, and for a sum of some layers.
            "verdict": None if change is None else change.verdict.value,
            "reason": "" if change is None else change.reason,
            "cheapest": it is thrifty,
        }


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


_MOST_NAMED = 20
_MOST_CLAIMED = 4


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
    signed = f", signed by {listed_names(signers, _MOST_NAMED)}" if signers else ""
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
            named = listed_names(outside, _MOST_NAMED)
            models = f"{counted(len(outside), 'model')} that Table 1 does not have: {named}"
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
                    **attributes_of(report, "system", "new", "known"),
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
