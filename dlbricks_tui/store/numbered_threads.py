"""Numbers of threads in place of the `threads-default` that earlier versions stored.

It stood for the number that the framework starts by itself, which follows from the processors of the system.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from dlbricks_tui.recorded_host import Processors
from dlbricks_tui.runtime.runtime import THREADS_OF_FRAMEWORK, numbered_identity
from dlbricks_tui.runtime.variant import stated_threads
from dlbricks_tui.store.records import Record, RuntimeRecord, System

AnyRecord = TypeVar("AnyRecord", bound=Record)


def numbered(records: Iterable[AnyRecord], systems: Iterable[System] = ()) -> Iterator[AnyRecord]:
    """Yield records with the numbers of threads of their systems, which come before them or are given.

    The description of a runtime becomes one for each number. Records of an unknown system stay as they are.
    """
    known = {it.id: it for it in systems}
    for record in records:
        if isinstance(record, System):
            known[record.id] = record
        if isinstance(record, RuntimeRecord) and THREADS_OF_FRAMEWORK in record.id:
            identities = dict.fromkeys(numbered_identity(record.id, processors_of(it)) for it in known.values())
            for identity in identities or (record.id,):
                threads = stated_threads(identity) or record.threads
                yield cast(AnyRecord, replace(record, id=identity, threads=threads))
        else:
            yield _with_numbers(record, known)


def processors_of(system: System | None) -> Processors | None:
    """Return the processors of a system, as far as they are known."""
    return None if system is None else Processors.of(system.cores, dict(system.facts))


def _with_numbers(record: AnyRecord, systems: Mapping[str, System]) -> AnyRecord:
    stated = {name: getattr(record, name, "") for name in ("runtime", "changed_runtime")}
    changed: dict[str, Any] = {
        name: numbered_identity(identity, processors_of(systems.get(cast(Any, record).system)))
        for name, identity in stated.items()
        if THREADS_OF_FRAMEWORK in identity
    }
    return replace(record, **changed) if changed else record
