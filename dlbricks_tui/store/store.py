"""The results store: records go in durably, come out by row, and are seen by every process that has it open."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from dlbricks_tui.store import journal
from dlbricks_tui.store.compaction import compact
from dlbricks_tui.store.documents import Sealed, deletion, seal, to_document, unseal
from dlbricks_tui.store.errors import DamagedResultError, StoreError
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.lock import StoreLock
from dlbricks_tui.store.records import Record

# A writer saves the index when a tenth of it is new: often enough for the next process to open quickly, seldom enough
# to cost nothing per result.
_SHARE_WORTH_SAVING = 0.1
_LEAST_WORTH_SAVING = 1000


class Change(NamedTuple):
    """How many records a change brought in and took out."""

    added: int
    deleted: int


class Store:
    """A store folder; nothing is made there before the first record is added. For one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = StoreLock(folder / "lock")
        self._generation = Generation.open(folder)

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the index behind for whoever opens the store next."""
        self._generation.save_index(_LEAST_WORTH_SAVING)
        self._generation.close()

    @property
    def generation(self) -> Generation:
        """What is stored, as far as it has been read; `refresh` reads on."""
        return self._generation

    @property
    def damage(self) -> Sequence[Damage]:
        """What cannot be read and was set aside."""
        return self._generation.damage

    def refresh(self) -> bool:
        """Reads what this and other processes have written since, and says whether that was anything."""
        if self._generation.superseded():
            # Not closed: who still holds rows of it may read them; the last one to let go closes it.
            self._generation = Generation.open(self.folder)
            return True
        return self._generation.catch_up()

    def add(self, *records: Record) -> int:
        """Stores records durably, leaves out those that are there already, and returns how many were new."""
        return self.change(add=[_sealed(record) for record in records]).added

    def delete(self, uuids: Iterable[str]) -> int:
        """Takes records out durably and returns how many were there."""
        return self.change(delete=uuids).deleted

    def restore(self, generation: Generation, rows: Iterable[int]) -> int:
        """Stores deleted records again, as they were, and returns how many; damaged ones are left out.

        A deletion only marks a record as gone. The generation that had it keeps its files open over a compaction.
        """
        found: list[Sealed] = []
        for row in rows:
            with suppress(DamagedResultError):
                found += [Sealed(unseal(text), text) for _, text in generation.texts([row])]
        return self.change(add=found).added

    def change(self, add: Iterable[Sealed] = (), delete: Iterable[str] = ()) -> Change:
        """Takes records out and documents that are known to hold records in, at once; an update does both to a uuid."""
        with self._lock:
            self.refresh()
            index = self._generation.index
            gone = {uuid for uuid in delete if index.row_of(uuid) is not None}
            new = {
                each.document["uuid"]: each
                for each in add
                if each.document["uuid"] in gone or index.row_of(each.document["uuid"]) is None
            }
            self._append([*(seal(deletion(uuid)) for uuid in sorted(gone)), *new.values()])
        return Change(len(new), len(gone))

    def compact(self) -> Path:
        """Writes everything into one file that plain TinyDB opens, and returns it."""
        with self._lock:
            self.refresh()
            path = compact(self._generation)
        self.refresh()
        self._generation.save_index()
        return path

    def _append(self, documents: Sequence[Sealed]) -> None:
        if not documents:
            return
        journal.append(self._generation.journal, [each.text for each in documents])
        self._generation.catch_up()
        self._generation.save_index(max(_LEAST_WORTH_SAVING, int(self._generation.index.rows * _SHARE_WORTH_SAVING)))


def _sealed(record: Record) -> Sealed:
    try:
        return seal(to_document(record))
    except ValueError as error:
        raise StoreError(f"a {type(record).__name__} cannot be stored, as JSON has no such number: {error}") from error
