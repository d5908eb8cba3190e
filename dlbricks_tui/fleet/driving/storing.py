"""Results of hosts in the local store: durable before anyone hears of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dlbricks_tui.fleet.driving.validation import ImpossibleError, Returned
from dlbricks_tui.fleet.messages import HostReport
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import (
    BrickForm,
    Fact,
    Facts,
    Failure,
    Measurement,
    Provenance,
    Record,
    Runtime,
    Statistics,
    System,
    utc_now,
)
from dlbricks_tui.store.statistics import mean_statistics

# The facts about a system that are kept with its results, as they may change from one result to the next.
_KEPT_FACTS = ("kernel", "governor", "turbo", "os", "container")


@dataclass(frozen=True, slots=True)
class Stored:
    """The news of a message of a host: bricks with new results, by their statistics, and failed bricks."""

    measured: Mapping[JobKey, Statistics] = field(default_factory=dict)
    failed: Mapping[JobKey, str] = field(default_factory=dict)


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

    def describe(self, host: str, report: HostReport, system: System, ways: Iterable[tuple[str, str]]) -> None:
        """Store the system of a host, and where its results come from, by each runtime and method."""
        described = dict(system.facts)
        facts: list[tuple[str, Fact]] = [("cpu", system.cpu)]
        facts += [(name, described[name]) for name in _KEPT_FACTS if name in described]
        frameworks = {it.framework: it.version for it in report.runtimes}
        records: list[Record] = [system]
        for runtime, protocol in ways:
            framework = runtime.partition("-")[0]
            packages = (("dlbricks", report.dlbricks), ("python", report.python), (framework, frameworks[framework]))
            run, models = run_of(self._fleet, host), self._models
            known = self._store.provenance_of(run, runtime)
            found = Provenance(
                when=utc_now(),
                run=run,
                system=system.id,
                runtime=runtime,
                protocol=protocol,
                packages=packages,
                host=tuple(facts),
                models=models,
            )
            if known is None or replace(known, when=found.when, uuid=found.uuid) != found:
                records.append(found)
        self._store.add(*records)

    def keep(self, host: str, records: Sequence[Returned], jobs: Mapping[JobKey, Job]) -> Stored:
        """Store the records of a message durably, and return which bricks they are about.

        A result of a brick in another context than any in the models is kept and tells nothing new.
        """
        forms = {job.key.brick: job.canonical for job in jobs.values()}
        kept: list[Record] = []
        measured: dict[JobKey, list[Statistics]] = {}
        failed: dict[JobKey, str] = {}
        for record in records:
            match record:
                case Measurement():
                    kept.append(BrickForm(key=record.brick, canonical=forms[record.brick]))
                    kept.append(replace(record, run=run_of(self._fleet, host)))
                    if record.good:
                        measured.setdefault(JobKey(record.brick, record.context), []).append(record.statistics)
                case Failure():
                    kept.append(replace(record, run=run_of(self._fleet, host)))
                    reason = f"{record.reason}: {record.message}" if record.message else record.reason
                    failed[JobKey(record.brick, record.context)] = reason
                case Provenance():
                    kept.append(replace(record, run=run_of(self._fleet, host), models=self._models))
                case Runtime():
                    kept.append(record)
                case _:
                    # The report has described the system, and the bricks are known here.
                    continue
        self._refuse_stolen(records)
        self._store.add(*kept)
        return Stored(
            {key: mean_statistics(found) for key, found in measured.items() if key in jobs},
            {key: reason for key, reason in failed.items() if key in jobs and key not in measured},
        )

    def _refuse_stolen(self, records: Sequence[Returned]) -> None:
        """Raise ImpossibleError if a result has the UUID of one of another system."""
        for record in records:
            if isinstance(record, Measurement):
                row = self._store.generation.index.row_of_uuid(record.uuid)
                known = None if row is None else self._store.generation.record(row)
                if known is not None and not _is_same(known, record):
                    raise ImpossibleError("a result with the identity of another one")


def _is_same(known: Record, record: Measurement) -> bool:
    return isinstance(known, Measurement) and replace(known, run=record.run) == record
