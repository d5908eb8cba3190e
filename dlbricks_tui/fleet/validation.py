"""Checks of everything that a host returns, before any of it is stored or shown.

A host is believed about what only it can know: latencies and failures of the bricks that it was asked for. Everything
else, such as its system, the keys and the conditions, has to agree with what the driver knows already.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from dlbricks_tui import __version__
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.messages import Document, HostReport
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.documents import BrokenDocumentError, to_record
from dlbricks_tui.store.records import (
    ANY_CONTEXT,
    BrickForm,
    Calibration,
    Failure,
    Measurement,
    Provenance,
    Record,
    System,
)
from dlbricks_tui.store.records import Runtime as RuntimeRecord
from dlbricks_tui.store.verification import check_plausible

_LONGEST_TEXT = 1000
# The clock of a host decides which of two results is newer.
MOST_SECONDS_APART = 300.0


class DistrustError(FleetError):
    """A host returned something that cannot be true; the message completes "it ..."."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A brick that hosts are asked for: its form, the level of its layers, and its label."""

    canonical: str = field(repr=False)
    level: Level
    label: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What the results of a host have to agree with."""

    system: System
    # The identities of its runtimes, and the id of the method by which each is to measure.
    protocols: Mapping[str, str]
    # The bricks by key.
    bricks: Mapping[str, Wanted]

    def checked(self, document: Document) -> Record:
        """Return the record in a document; raise DistrustError if it is none, or not one that was asked for."""
        record = _plausible(document)
        if isinstance(record, System):
            if record != self.system:
                raise DistrustError("describes another system than the one that it reported")
            return record
        if isinstance(record, BrickForm):
            wanted = self._brick(record.key)
            if record.canonical != wanted.canonical:
                raise DistrustError("describes a brick in another form than it has")
            return record
        if isinstance(record, RuntimeRecord):
            if record.id not in self.protocols:
                raise DistrustError(f"describes a runtime that was not asked for, {_shown(record.id)}")
            return record
        if not isinstance(record, Measurement | Failure | Calibration | Provenance):
            raise DistrustError(f"returned a {type(record).__name__}, which was not asked for")
        self._check_way(record)
        if isinstance(record, Measurement | Failure):
            wanted = self._brick(record.brick)
            if record.level is not wanted.level:
                raise DistrustError(f"returned a result at level {record.level.value}, which was not asked for")
            if record.protocol == Method.INSIDE.id and record.context != ANY_CONTEXT:
                raise DistrustError("returned a result in a context, which was not asked for")
        return record

    def _check_way(self, record: Measurement | Failure | Calibration | Provenance) -> None:
        if record.system != self.system.id:
            raise DistrustError(f"returned a result of another system, {_shown(record.system)}")
        protocol = self.protocols.get(record.runtime)
        if protocol is None:
            raise DistrustError(f"returned a result of another runtime, {_shown(record.runtime)}")
        # Bricks that no carrier holds are timed alone.
        if record.protocol not in (protocol, Method.ALONE.id):
            raise DistrustError(f"returned a result of another method, {_shown(record.protocol)}")

    def _brick(self, key: str) -> Wanted:
        found = self.bricks.get(key)
        if found is None:
            raise DistrustError(f"returned a result of a brick that it was not asked for, {_shown(key)}")
        return found


def checked_system(report: HostReport) -> System:
    """Return the system of a host; raise DistrustError if its description is none."""
    record = _plausible(report.system)
    if not isinstance(record, System) or not record.id:
        raise DistrustError("reported something else than a system")
    return record


def runtime_there(home: Runtime, report: HostReport) -> str:
    """Return the identity that a runtime has on a host; raise FleetError if the host lacks its framework or version."""
    same = [it for it in report.runtimes if it.framework == home.framework]
    found = next((it for it in same if it.version == home.version), None)
    if found is None:
        has = f"it has {', '.join(_shown(it.version) for it in same)}" if same else "it has none"
        raise FleetError(
            f"{home.traits.title} {home.version} is needed, as here, and {has}: "
            "`dlbricks fleet doctor --hosts FILE --install` installs it"
        )
    # An identity begins with the framework and the version of Python; the settings are those of the request.
    return " ".join([*found.identity.split(" ")[:2], *home.identity.split(" ")[2:]])


def check_versions(report: HostReport, methods: Sequence[Method]) -> None:
    """Raise FleetError if results of a host could not be used here."""
    if report.dlbricks != __version__:
        raise FleetError(
            f"it has dlbricks {_shown(report.dlbricks)}, and {__version__} is needed, as here: "
            "`dlbricks fleet doctor --hosts FILE --install` installs it"
        )
    for method in methods:
        if report.methods.get(method.value) != method.id:
            raise FleetError(
                f"its method {method.value} is another one than here, although the versions are equal: "
                "`dlbricks fleet doctor --hosts FILE --install` installs this one"
            )


def seconds_apart(report: HostReport) -> float:
    """Return by how much the clock of a host is ahead of ours; raise FleetError if it is far off."""
    try:
        there = datetime.fromisoformat(report.clock)
        apart = (there - datetime.now(timezone.utc)).total_seconds()
    except (ValueError, TypeError) as error:
        raise DistrustError(f"reported {_shown(report.clock)} as its time") from error
    if not math.isfinite(apart) or abs(apart) > MOST_SECONDS_APART:
        way = "ahead" if apart > 0 else "behind"
        raise FleetError(f"its clock is {abs(apart):.0f} s {way}: set it, for example with `timedatectl set-ntp true`")
    return apart


def at_home(record: Record, fleet: str) -> Record:
    """Return a record with the id of the fleet run, under which a user finds and deletes all of its results."""
    return replace(record, run=fleet) if isinstance(record, Measurement | Failure | Calibration | Provenance) else record


def _plausible(document: Document) -> Record:
    try:
        record = to_record(document)
        check_plausible(record)
    except (BrokenDocumentError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise DistrustError(f"returned a record that {_shown(str(error))}") from error
    if any(len(text) > _LONGEST_TEXT for text in _texts(document) if not isinstance(record, BrickForm)):
        raise DistrustError(f"returned a {type(record).__name__} with a very long text")
    return record


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield str(name)
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _shown(text: str) -> str:
    return printable(text[:120])
