"""The results of hosts: checked, and stored durably before anyone hears of them.

A host that returns something impossible is not trusted any more. This finds faults and stops no attacker, as
docs/how-it-works/fleet.md says.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from dlbricks_tui import __version__
from dlbricks_tui.fleet.messages import HostReport, Message, message_in
from dlbricks_tui.fleet.request import FleetError, MessageError
from dlbricks_tui.host.fingerprint import KEPT_FACTS
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.models.graph import Level
from dlbricks_tui.printable import printable
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import stated_python
from dlbricks_tui.share.results_file import checked_record
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import TABLES, BrokenDocumentError
from dlbricks_tui.store.records import (
    BrickForm,
    Fact,
    Facts,
    Failure,
    Measurement,
    Peaks,
    Provenance,
    Record,
    Statistics,
    System,
    utc_now,
)
from dlbricks_tui.store.statistics import mean_statistics

# The records that hosts return.
Returned = Measurement | Failure | Peaks
_MOST_FACTS, _MOST_RUNTIMES = 64, 100
# The newest result of a brick counts, so clocks must not differ much.
_CLOCK_TOLERANCE = timedelta(minutes=10)
# A brick has a record for each of its places in the networks. A host tells its progress a few times a second at most.
_BYTES, _BYTES_PER_BRICK, _BYTES_PER_SECOND, _BYTES_OF_A_MESSAGE = 16 << 20, 8 << 20, 400_000.0, 20_000


class ImpossibleError(FleetError):
    """A host returned something that no honest host returns; the message completes "it returned ..."."""


def check_report(report: HostReport) -> System:
    """Return the system that a host reports; raise ImpossibleError if the report cannot be true."""
    try:
        system = checked_record(System, report.system)
        if datetime.fromisoformat(report.clock).tzinfo is None:
            raise ValueError("has a clock without a time zone")
    except (ValueError, BrokenDocumentError) as error:
        raise ImpossibleError(f"a report that {printable(str(error)[:300])}") from None
    if len(report.runtimes) > _MOST_RUNTIMES:
        raise ImpossibleError(f"a report of {len(report.runtimes):,} runtimes")
    if not system.id or not system.cores or not system.memory_bytes or len(system.facts) > _MOST_FACTS:
        raise ImpossibleError("a report of an impossible system")
    return system


def reason_against(report: HostReport, parts: Iterable[RunRequest]) -> str:
    """Return why a host cannot take part, in a line; empty if it can."""
    cure = "`dlbricks fleet doctor --install` sets it up"
    if report.dlbricks != __version__:
        return f"has dlbricks {_short(report.dlbricks)}, and this is {__version__}: {cure}"
    for part in parts:
        there, runtime = report.methods.get(part.method.value), part.runtime
        if there != part.method.id:
            return f"measures by the method {_short(there or 'none')}, and this dlbricks by {part.method.id}: {cure}"
        if runtime_there(runtime, report) is None:
            having = [it.partition(" ")[0] for it in report.runtimes if it.startswith(f"{runtime.framework}-")]
            known = ", ".join(dict.fromkeys(map(_short, having))) or "none"
            return f"lacks {runtime.traits.title} {runtime.version} (it has {known}): {cure}"
    ahead = datetime.fromisoformat(report.clock) - datetime.now(timezone.utc)
    if abs(ahead) > _CLOCK_TOLERANCE:
        return f"has a clock that is {abs(ahead).total_seconds() / 60:.0f} minutes off: set it, for example by NTP"
    return ""


def runtime_there(requested: Runtime, report: HostReport) -> Runtime | None:
    """Return a runtime as a host has it, with the Python there; None if the host lacks its framework or version."""
    found = next((it for it in report.runtimes if it.startswith(f"{requested.framework}-{requested.version} ")), None)
    return None if found is None else replace(requested, python_version=stated_python(found))


def check_result(document: Mapping[str, Any], conditions: Conditions, levels: Mapping[str, Level]) -> Returned:
    """Return the record in a document of a host; raise ImpossibleError if the host cannot have measured it.

    `levels` are those of the bricks that it was given, by their keys.
    """
    kind = TABLES.get(str(document.get("table")))
    if kind not in (Measurement, Failure, Peaks):
        raise ImpossibleError(f"a record of the kind {_short(str(document.get('table')))!r}")
    try:
        record: Record = checked_record(kind, document)
    except (ValueError, BrokenDocumentError) as error:
        raise ImpossibleError(f"a record that {printable(str(error)[:300])}") from None
    match record:
        case Peaks() if record.system != conditions.system:
            raise ImpossibleError(f"peaks of {_short(record.system)!r}, which is another system")
        case Measurement() | Failure():
            for name, what in (("system", "host"), ("runtime", "runtime"), ("protocol", "method")):
                if (value := getattr(record, name)) != getattr(conditions, name):
                    raise ImpossibleError(f"a result of another {what}, {_short(value)!r}")
            level = levels.get(record.brick)
            if level is None:
                raise ImpossibleError(f"a result of brick {_short(record.brick)!r}, which it was not given")
            if record.level is not level:
                raise ImpossibleError(f"a result of brick {_short(record.brick)!r} at another level")
    return record  # type: ignore[return-value]


def _short(text: str) -> str:
    return printable(text[:40])


class MessageMeter:
    """Counts what a host sends; more than an honest host sends about its bricks is refused."""

    def __init__(self, clock: Callable[[], float]) -> None:
        # Those of all its tasks.
        self.bricks = 0
        self._clock = clock
        self._began = clock()
        self._bytes = 0

    def count(self, text: str) -> None:
        """Count a message; raise ImpossibleError if that is one too many."""
        # Small ones cost time, too.
        self._bytes += max(len(text), _BYTES_OF_A_MESSAGE)
        seconds = self._clock() - self._began
        if self._bytes > _BYTES + _BYTES_PER_BRICK * self.bricks + _BYTES_PER_SECOND * seconds:
            raise ImpossibleError(f"{self._bytes / 1e6:,.0f} MB about {self.bricks} bricks within {seconds:.0f} s")


def read_messages(meter: MessageMeter, texts: Iterable[str], *kinds: type[Message]) -> Sequence[Message]:
    """Return messages that a host has sent; raise ImpossibleError for texts of other kinds, and for too many."""
    found = []
    for text in texts:
        meter.count(text)
        try:
            found.append(message_in(text, *kinds))
        except MessageError as error:
            what = "report" if HostReport in kinds else "message"
            raise ImpossibleError(f"a {what} that {printable(str(error)[:200])}") from None
    return found


def run_of(fleet: str, host: str) -> str:
    """Return the id under which the store keeps the results of a host in a fleet run."""
    return f"{fleet}@{host}"


def is_of(fleet: str, run: str) -> bool:
    """Return True if a result of this run comes from a host of a fleet run."""
    return run.startswith(run_of(fleet, ""))


class FleetResults:
    """Stores what the hosts of one fleet run return, each record once."""

    def __init__(self, store: ResultsDatabase, fleet: str, models: Facts) -> None:
        self._store = store
        self._fleet = fleet
        # The SHA-256 of the files of the models, by the keys of the models.
        self._models = models

    def describe(self, host: str, report: HostReport, system: System, ways: Iterable[tuple[Runtime, str]]) -> None:
        """Store the system and the runtimes of a host, and where its results come from, by each runtime and method."""
        described = dict(system.facts)
        facts: list[tuple[str, Fact]] = [("cpu", system.cpu)]
        facts += [(name, described[name]) for name in KEPT_FACTS if name in described]
        records: list[Record] = [system]
        for runtime, protocol in ways:
            records.append(runtime_record(runtime, system))
            own = (runtime.framework, runtime.version)
            packages = (("dlbricks", report.dlbricks), ("python", report.python), own)
            run, models = run_of(self._fleet, host), self._models
            known = self._store.provenance_of(run, runtime.identity)
            found = Provenance(
                when=utc_now(),
                run=run,
                system=system.id,
                runtime=runtime.identity,
                protocol=protocol,
                packages=packages,
                host=tuple(facts),
                models=models,
            )
            if known is None or replace(known, when=found.when, uuid=found.uuid) != found:
                records.append(found)
        self._store.add(*records)

    def keep(
        self, host: str, records: Sequence[Returned], jobs: Mapping[JobKey, Job]
    ) -> tuple[Mapping[JobKey, Statistics], Mapping[JobKey, str]]:
        """Store the records of a message durably, and return the bricks with results, and the failed ones.

        A result of a brick in another context than any in the models is kept and tells nothing new. Raise
        ImpossibleError if a result has the UUID of one of another system.
        """
        forms = {job.key.brick: job.canonical for job in jobs.values()}
        generation = self._store.generation
        kept: list[Record] = []
        measured: dict[JobKey, list[Statistics]] = {}
        failed: dict[JobKey, str] = {}
        for record in records:
            if isinstance(record, Peaks):
                kept.append(record)
                continue
            key, record = JobKey(record.brick, record.context), replace(record, run=run_of(self._fleet, host))
            if isinstance(record, Failure):
                failed[key] = f"{record.reason}: {record.message}" if record.message else record.reason
            else:
                row = generation.index.row_of_uuid(record.uuid)
                # As it was sent: a host's clock may be ahead.
                known = None if row is None else generation.stored_record(row)
                if known is not None and not (
                    isinstance(known, Measurement) and replace(known, run=record.run) == record
                ):
                    raise ImpossibleError("a result with the identity of another one")
                kept.append(BrickForm(key=record.brick, canonical=forms[record.brick]))
                if record.good:
                    measured.setdefault(key, []).append(record.statistics)
            kept.append(record)
        self._store.add(*kept)
        return (
            {key: mean_statistics(found) for key, found in measured.items() if key in jobs},
            {key: reason for key, reason in failed.items() if key in jobs and key not in measured},
        )
