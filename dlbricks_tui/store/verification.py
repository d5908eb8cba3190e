"""Check everything that a store holds: that it can be read, and that each record could come from a measurement.

A checksum says that a record arrived as it was written. It does not say that the record is possible: a file may be
forged, or written by a program with a bug.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path

from dlbricks_tui.store.columns import values_of
from dlbricks_tui.store.documents import SAMPLES, TABLE_OF, TABLES, BrokenDocumentError, DamagedResultError, fields_of
from dlbricks_tui.store.files import Damage, layout_of
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import EPOCH
from dlbricks_tui.store.journal import JournalStorage
from dlbricks_tui.store.records import (
    BrickForm,
    DatedRecord,
    Import,
    LoadTest,
    Measurement,
    Peaks,
    Proof,
    Provenance,
    Record,
    Run,
    RuntimeRecord,
    Statistics,
    System,
    Timed,
    latest_date,
)
from dlbricks_tui.store.statistics import quantile, trimmed_mean, unpack_latencies


def _another_machine(said: System, known: System) -> str:
    """Return what differs from the machine that is known by the same id: `96 cores instead of 4`; empty for the same.

    Other parts of a description may change.
    """
    found = [f"{said.cores} cores instead of {known.cores}"] if said.cores != known.cores else []
    for name, attribute, letters in (("processor", "cpu", 40), ("instance type", "instance_type", 20)):
        one, other = getattr(said, attribute), getattr(known, attribute)
        found += [f"{name} {one[:letters]!r} instead of {other[:letters]!r}"] if one != other else []
    return ", ".join(found)


@dataclass(slots=True)
class References:
    """The described bricks, systems and runtimes, to which results may refer."""

    bricks: set[str] = field(default_factory=set)
    systems: set[str] = field(default_factory=set)
    runtimes: set[str] = field(default_factory=set)
    # The known systems by their ids, and those that a file describes as other machines.
    machines: dict[str, System] = field(default_factory=dict)
    disputed: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, generation: Generation, here: System | None = None) -> "References":
        """Return those that a store describes; `here` is the system of this host, if it is to be defended."""
        index = generation.index
        known = {} if here is None else {here.id: here}
        for row in index.rows_of("systems").tolist():
            # The store reports damaged records.
            with suppress(DamagedResultError):
                if isinstance(record := generation.record(row), System):
                    known.setdefault(record.id, record)
        return cls(
            set(values_of(index, "brick", index.rows_of("bricks"))),
            set(values_of(index, "system", index.rows_of("systems"))),
            set(values_of(index, "runtime", index.rows_of("runtimes"))),
            known,
        )

    def take(self, record: Record) -> None:
        """Add the brick, system or runtime that a record describes."""
        if isinstance(record, BrickForm):
            self.bricks.add(record.key)
        elif isinstance(record, System):
            self.systems.add(record.id)
            self.machines.setdefault(record.id, record)
        elif isinstance(record, RuntimeRecord):
            self.runtimes.add(record.id)

    def check(self, record: Record) -> None:
        """Raise BrokenDocumentError if a record refers to something without a description."""
        if isinstance(record, Measurement) and record.brick not in self.bricks:
            raise BrokenDocumentError(f"is of brick {record.brick[:40]!r}, which is described nowhere")
        if isinstance(record, System) and (differing := _another_machine(record, self.machines.get(record.id, record))):
            self.disputed.add(record.id)
            raise BrokenDocumentError(f"describes system {record.id[:40]!r} with {differing}")
        if not isinstance(record, BrickForm | RuntimeRecord | System | Import) and record.system in self.disputed:
            raise BrokenDocumentError(
                f"is of system {record.system[:40]!r}, which the file describes as another machine"
            )
        # A run may have been on another system than its results in an export.
        if isinstance(record, BrickForm | System | RuntimeRecord | Run | Import):
            return
        if record.system not in self.systems:
            raise BrokenDocumentError(f"is of system {record.system[:40]!r}, which is described nowhere")
        if not isinstance(record, Peaks) and record.runtime not in self.runtimes:
            raise BrokenDocumentError(f"is of runtime {record.runtime[:40]!r}, which is described nowhere")


_MOST_SAMPLES = 100_000
_LONGEST_SAMPLE_MS = 1e7
_NS_PER_MS = 1e6
# The latencies of a query: one for each of its samples at most. Offline, a query may have any number of samples.
_SAMPLES_PER_QUERY: Mapping[str, Sequence[int]] = {"single": (1,), "multi": (1, 8), "server": (1,), "offline": ()}
# Requests that are counted at the beginning and the end of a test change its requests per second by no more.
_MOST_THROUGHPUT_DEVIATION = 2.0
_MOST_FACTS = 64
_SHA_256 = re.compile("[0-9a-f]{64}")
_LONGEST_TEXT = 100_000
_LARGEST_NUMBER = 1 << 53
_LARGEST_COUNT = (1 << 31) - 1
# Builds of NumPy add in different orders.
_TOLERANCE = 1e-6


def check_plausible(record: Record, longest_text: int = _LONGEST_TEXT) -> None:
    """Raise BrokenDocumentError, whose message completes "it ...", if the record cannot come from a measurement."""
    if not isinstance(record, BrickForm):
        for name in _FIELDS_OF[type(record)]:
            _check_value(getattr(record, name), longest_text)
        if any(getattr(record, name) < 0 for name in _COUNTS.get(type(record), ())):
            raise BrokenDocumentError("has a count below zero")
    if isinstance(record, DatedRecord):
        check_date(record.when)
    match record:
        case Run():
            try:
                check_date(record.started)
            except (TypeError, ValueError) as error:
                raise BrokenDocumentError("has no time at which it started") from error
        case Timed():
            check_samples(record)
        case Proof():
            _check_proof(record)
        case LoadTest():
            _check_load_test(record)
        case Provenance():
            _check_provenance(record)


def check_date(when: str) -> None:
    """Raise BrokenDocumentError if a record is from the future, or older than any clock tells."""
    moment = datetime.fromisoformat(when)
    if moment > latest_date():
        raise BrokenDocumentError(f"is from the future: {when[:40]}")
    if moment < EPOCH:
        raise BrokenDocumentError(f"is from before 1970: {when[:40]}")


def check_samples(record: Timed) -> None:
    """Raise BrokenDocumentError unless the samples are latencies and the statistics are those of the samples."""
    samples = record.samples_ms
    _check_latencies(samples)
    # Older results of bricks inside of networks do not state their warm-up.
    warm_up = dict(record.noise).get("warm_up", max(0, len(samples) - record.statistics.count))
    if type(warm_up) is not int or not 0 <= warm_up < len(samples) or len(record.noise) > _MOST_FACTS:
        raise BrokenDocumentError(f"has a warm-up of {str(warm_up)[:20]} samples")
    _check_statistics(samples[warm_up:], record.statistics)
    if not 0 <= record.batch_size <= _LARGEST_COUNT:
        raise BrokenDocumentError("has an impossible batch size")


def _check_proof(proof: Proof) -> None:
    samples, changed = proof.samples_ms, proof.changed_samples_ms
    for taken, stated in ((samples, proof.before), (changed, proof.after)):
        _check_latencies(taken)
        _check_statistics(taken, stated)
    if len(samples) != len(changed) or not all((*samples, *changed)):
        raise BrokenDocumentError("has samples that are not of the same rounds")
    if not (1 <= proof.batch_size <= _LARGEST_COUNT and 1 <= proof.changed_batch_size <= _LARGEST_COUNT):
        raise BrokenDocumentError("has an impossible batch size")
    items = proof.batch_size / proof.changed_batch_size
    ratios = (items * after / before for before, after in zip(samples, changed, strict=True))
    gain = 1 - math.exp(trimmed_mean(list(map(math.log, ratios))))
    if not math.isclose(proof.gain, gain, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
        raise BrokenDocumentError("has a gain that does not follow from its samples")
    if not proof.gain_low <= proof.gain <= proof.gain_high:
        raise BrokenDocumentError("has a gain that is outside of its interval")


def _check_load_test(test: LoadTest) -> None:
    if test.kind not in _SAMPLES_PER_QUERY:
        raise BrokenDocumentError(f"is of the unknown scenario {test.kind[:40]!r}")
    if not 0 < test.percentile < 100:
        raise BrokenDocumentError(f"has the percentile {test.percentile:g}")
    given = (test.seconds, *(it for it in (test.bound_ms, test.rate) if it is not None))
    if not all(it > 0 for it in given) or not all(
        0 <= it <= _LONGEST_SAMPLE_MS for it in (test.passing_ms, test.wake_up_ms)
    ):
        raise BrokenDocumentError("has an impossible bound, rate or time")
    if test.kind != "server" and (test.rate is not None or test.sought):
        raise BrokenDocumentError(f"has a rate, which a scenario of kind {test.kind} does not have")
    if test.kind == "server" and test.rate is None:
        raise BrokenDocumentError("is of a server without a rate")
    if test.valid and test.reasons:
        raise BrokenDocumentError("is valid and has reasons against it")
    counts = (test.batch_size, test.instances, test.queries)
    if not all(1 <= it <= _LARGEST_COUNT for it in counts):
        raise BrokenDocumentError("has an impossible batch size, or number of instances or queries")
    _check_request_latencies(test)


def _check_request_latencies(test: LoadTest) -> None:
    """Raise BrokenDocumentError unless the latencies of a load test have the number and the speed that it states."""
    latencies_ns = unpack_latencies(test.latencies)
    samples, rest = divmod(len(latencies_ns), test.queries)
    if not samples or rest or (test.kind != "offline" and samples not in _SAMPLES_PER_QUERY[test.kind]):
        raise BrokenDocumentError(f"has {len(latencies_ns):,} latencies of {test.queries:,} queries")
    if not 0 <= min(latencies_ns) <= max(latencies_ns) <= _LONGEST_SAMPLE_MS * _NS_PER_MS:
        raise BrokenDocumentError("has an impossible latency")
    most = len(latencies_ns) * max(_SAMPLES_PER_QUERY[test.kind], default=1) / test.seconds
    least = test.queries / test.seconds
    if not least / _MOST_THROUGHPUT_DEVIATION <= test.per_second <= most * _MOST_THROUGHPUT_DEVIATION:
        raise BrokenDocumentError("has requests per second that do not follow from its queries")
    if test.kind == "server" and test.valid and test.bound_ms is not None:
        slower = sum(it > test.bound_ms * _NS_PER_MS for it in latencies_ns) / len(latencies_ns)
        if slower > 1 - test.percentile / 100 + _TOLERANCE:
            raise BrokenDocumentError("is valid with too many requests over the bound")


def _check_provenance(provenance: Provenance) -> None:
    if not provenance.run:
        raise BrokenDocumentError("is of no run")
    if max(len(provenance.packages), len(provenance.host)) > _MOST_FACTS:
        raise BrokenDocumentError(f"has more than {_MOST_FACTS} packages, or facts about the host")
    for name, version in provenance.packages:
        if not isinstance(version, str):
            raise BrokenDocumentError(f"has a version of {name[:40]!r} that is no text")
    for model, digest in provenance.models:
        if not isinstance(digest, str) or not _SHA_256.fullmatch(digest):
            raise BrokenDocumentError(f"has no SHA-256 of model {model[:40]!r}")


def _check_latencies(samples: Sequence[float]) -> None:
    if not 1 <= len(samples) <= _MOST_SAMPLES:
        raise BrokenDocumentError(f"has {len(samples):,} samples")
    if not all(0 <= sample <= _LONGEST_SAMPLE_MS for sample in samples):
        raise BrokenDocumentError("has an impossible sample")


def _check_statistics(samples: Sequence[float], stated: Statistics) -> None:
    """Raise BrokenDocumentError unless the statistics are those of the samples."""
    steady = sorted(samples)
    figures = {
        "trimmed mean": (stated.trimmed_mean_ms, trimmed_mean(steady)),
        "median": (stated.median_ms, quantile(steady, 0.5)),
        "minimum": (stated.minimum_ms, steady[0]),
        "spread": (stated.spread_ms, quantile(steady, 0.75) - quantile(steady, 0.25)),
        "count": (stated.count, len(steady)),
    }
    for figure, (said, found) in figures.items():
        if not math.isclose(said, found, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            raise BrokenDocumentError(f"has a {figure} that does not follow from its samples")
    # The interval comes from random resamples: only its bounds are certain.
    if not steady[0] - _TOLERANCE <= stated.low_ms <= stated.high_ms <= steady[-1] + _TOLERANCE:
        raise BrokenDocumentError("has an interval that is not among its samples")


_COUNTS: Mapping[type[Record], Sequence[str]] = {
    System: ("cores", "memory_bytes"),
    RuntimeRecord: ("threads",),
    Peaks: ("threads",),
    Run: ("granularity", "measured", "reused", "failed"),
}
# Samples are long, and are checked apart with their statistics.
_FIELDS_OF = {kind: [it.name for it in fields(kind) if it.name not in SAMPLES] for kind in TABLE_OF}


def _check_value(value: object, longest_text: int) -> None:
    if isinstance(value, str):
        if len(value) > longest_text:
            raise BrokenDocumentError(f"has a text of {len(value):,} letters")
    elif isinstance(value, int | float):
        if not abs(value) <= _LARGEST_NUMBER:
            raise BrokenDocumentError("has an impossibly large number")
    elif isinstance(value, tuple):
        for each in value:
            _check_value(each, longest_text)


@dataclass(frozen=True, slots=True)
class Implausible:
    """A stored record that cannot come from a measurement."""

    table: str
    uuid: str
    reason: str

    def __str__(self) -> str:
        return f"{self.table.replace('_', ' ')}: {self.uuid} {self.reason}"


@dataclass(frozen=True, slots=True)
class Verification:
    """The contents of the store's files, and the damage in them."""

    # Bytes by name.
    files: Mapping[str, int]
    # Readable records by table.
    records: Mapping[str, int]
    damage: tuple[Damage, ...]
    # Records that can be read and are impossible.
    implausible: tuple[Implausible, ...]
    # Those of them that are dated in the future.
    future: int
    # Records from the generation before, whose copies in this one are damaged.
    recovered: int
    # The length of an incomplete last line.
    unfinished_bytes: int


def verify(folder: Path) -> Verification:
    """Read each record of a store, and build the saved index again."""
    generation = Generation(folder, layout_of(folder), JournalStorage(folder).decode, trust_saved_index=False)
    references, implausible = References.of(generation), list[Implausible]()
    for row in generation.index.rows_of(*TABLES).tolist():
        # Damaged lines were already added to the damage of the generation.
        with suppress(DamagedResultError):
            record = generation.stored_record(row)
            try:
                check_plausible(record)
                references.check(record)
            except BrokenDocumentError as error:
                implausible.append(Implausible(TABLE_OF[type(record)], fields_of(record)["uuid"], str(error)))
    future = len(generation.index.dated_after(latest_date()))
    generation.save_index()
    return Verification(
        generation.sizes,
        {table: len(generation.index.rows_of(table)) for table in TABLES},
        tuple(generation.damage),
        tuple(implausible),
        future,
        generation.recovered,
        generation.unfinished_bytes,
    )
