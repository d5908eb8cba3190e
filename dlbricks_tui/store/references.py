"""The bricks, systems and runtimes that results refer to."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dlbricks_tui.store.columns import values_of
from dlbricks_tui.store.documents import BrokenDocumentError
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.records import BrickForm, Import, Measurement, Peaks, Record, Run, RuntimeRecord, System


class Machine(NamedTuple):
    """The parts of a system's description that its id stands for."""

    cpu: str
    cores: int
    instance_type: str

    def beside(self, known: "Machine") -> str:
        """Return what differs from the machine that is known by the same id: `96 cores instead of 4`."""
        parts = (
            (self.cores, known.cores, f"{self.cores} cores instead of {known.cores}"),
            (self.cpu, known.cpu, f"processor {self.cpu[:40]!r} instead of {known.cpu[:40]!r}"),
            (
                self.instance_type,
                known.instance_type,
                f"instance type {self.instance_type[:20]!r} instead of {known.instance_type[:20]!r}",
            ),
        )
        return ", ".join(words for said, was, words in parts if said != was)


def machine_of(system: System) -> Machine:
    """Return the machine that a record describes."""
    return Machine(system.cpu, system.cores, system.instance_type)


@dataclass(slots=True)
class References:
    """The described bricks, systems and runtimes, to which results may refer."""

    bricks: set[str] = field(default_factory=set)
    systems: set[str] = field(default_factory=set)
    runtimes: set[str] = field(default_factory=set)
    # The machines of known systems, by the ids of the systems, and the systems that a file describes as others.
    machines: dict[str, Machine] = field(default_factory=dict)
    disputed: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, generation: Generation, here: System | None = None) -> "References":
        """Return those that a store describes; `here` is the system of this host, if it is to be defended."""
        index = generation.index
        known = {} if here is None else {here.id: machine_of(here)}
        for row in index.rows_of("systems").tolist():
            # The store reports damaged records.
            with suppress(DamagedResultError):
                if isinstance(record := generation.record(row), System):
                    known.setdefault(record.id, machine_of(record))
        return cls(
            set(values_of(index, "brick", index.rows_of("bricks"))),
            set(values_of(index, "system", index.rows_of("systems"))),
            set(values_of(index, "runtime", index.rows_of("runtimes"))),
            known,
        )

    def without_disputes(self) -> "References":
        """Return the same for the next file."""
        return replace(self, disputed=set())

    def take(self, record: Record) -> None:
        """Add the brick, system or runtime that a record describes."""
        if isinstance(record, BrickForm):
            self.bricks.add(record.key)
        elif isinstance(record, System):
            self.systems.add(record.id)
            self.machines.setdefault(record.id, machine_of(record))
        elif isinstance(record, RuntimeRecord):
            self.runtimes.add(record.id)

    def check(self, record: Record) -> None:
        """Raise BrokenDocumentError if a record refers to something without a description."""
        if isinstance(record, Measurement) and record.brick not in self.bricks:
            raise BrokenDocumentError(f"is of brick {record.brick[:40]!r}, which is described nowhere")
        if isinstance(record, System) and self.machines.get(record.id, machine_of(record)) != machine_of(record):
            self.disputed.add(record.id)
            differing = machine_of(record).beside(self.machines[record.id])
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
