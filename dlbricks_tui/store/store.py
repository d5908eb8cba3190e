"""The results store: records are added durably, read by row, and seen by every process that has the store open."""

import fcntl
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from dlbricks_tui.atomic_write import DRAFT_SUFFIX, replace_file
from dlbricks_tui.store.documents import TABLES, Sealed, deletion, seal, to_document, unseal
from dlbricks_tui.store.errors import DamagedResultError, StoreBusyError, StoreError, cannot_write
from dlbricks_tui.store.files import Damage, append, base_name, journal_name, layout_of, write_tinydb_file
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.records import Record

# Longer than compacting a million results takes: a process that still holds the lock hangs.
PATIENCE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 0.02


class StoreLock:
    """An exclusive lock for writers, on a file that is never replaced. It ends with the process that holds it."""

    def __init__(self, path: Path, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._path = path
        self._patience_seconds = patience_seconds
        self._file: int | None = None

    def __enter__(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise cannot_write(self._path, error) from error
        try:
            self._wait_for(file)
            _name_holder(file)
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _wait_for(self, file: int) -> None:
        give_up = time.monotonic() + self._patience_seconds
        pause_seconds = 0.0002
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > give_up:
                    holder = os.pread(file, 32, 0).decode("ascii", "replace").strip() or "unknown"
                    raise StoreBusyError(
                        f"process {holder} has kept {self._path} locked for more than {self._patience_seconds:.0f} s; "
                        "end it if it hangs, then try again"
                    ) from None
                time.sleep(pause_seconds)
                pause_seconds = min(pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
            except OSError as error:
                raise cannot_write(self._path, error) from error


def _name_holder(file: int) -> None:
    # Padded, so that a shorter number overwrites a longer one.
    try:
        os.pwrite(file, f"{os.getpid():<31}\n".encode(), 0)
    except OSError:
        return


def compact(generation: Generation) -> Path:
    """Write a new generation and return its file; the caller holds the store's lock.

    The file gets its name once it is complete and on the disk. Until then the files before it are in use.
    """
    folder, number = generation.folder, generation.layout.newest
    path = folder / base_name(number + 1)
    for row in _all_rows(generation):
        # A row that can no longer be read is added to the damage.
        with suppress(DamagedResultError):
            generation.document(row)
    rows = _all_rows(generation)
    aside = [b"%s\n%s\n" % (str(each).encode(), generation.damaged_bytes(each)) for each in generation.damage]
    try:
        if aside:
            replace_file(folder / f"set-aside-{number}.txt", lambda file: file.writelines(aside))
        replace_file(path, lambda file: write_tinydb_file(file, generation.texts(rows), len(rows)))
    except OSError as error:
        raise cannot_write(path, error) from error
    _clear_away(folder, number)
    return path


def _all_rows(generation: Generation) -> list[int]:
    return [row for table in TABLES for row in generation.index.rows_of(table).tolist()]


def _clear_away(folder: Path, kept: int) -> None:
    layout = layout_of(folder)
    names = [base_name(number) for number in layout.bases if number < kept]
    names += [journal_name(number) for number in layout.journals if number < kept]
    # Drafts of writers that were killed.
    names += [draft.name for draft in folder.glob(f"*{DRAFT_SUFFIX}")]
    for name in names:
        with suppress(OSError):
            (folder / name).unlink()


# A writer saves the index when a tenth of it is new: the next process opens quickly, and a result costs next to
# nothing.
_SHARE_WORTH_SAVING = 0.1
_LEAST_WORTH_SAVING = 1000


class Change(NamedTuple):
    """The numbers of records that a change added and deleted."""

    added: int
    deleted: int


class Store:
    """A store folder, which is created with the first record. Use it from one thread at a time."""

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
        """Save the index and close the files."""
        self._generation.save_index(_LEAST_WORTH_SAVING)
        self._generation.close()

    @property
    def generation(self) -> Generation:
        """The records read so far; `refresh` reads new ones."""
        return self._generation

    @property
    def damage(self) -> Sequence[Damage]:
        """The lines that cannot be read and were set aside."""
        return self._generation.damage

    def refresh(self) -> bool:
        """Read the records that this and other processes have written since, and return True if there were any."""
        if self._generation.superseded():
            # Not closed: callers may still read its rows. The garbage collector closes it.
            self._generation = Generation.open(self.folder)
            return True
        return self._generation.catch_up()

    def add(self, *records: Record) -> int:
        """Store records durably, skip known ones, and return the number of new ones."""
        return self.change(add=[_sealed(record) for record in records]).added

    def delete(self, uuids: Iterable[str]) -> int:
        """Delete records durably and return how many there were."""
        return self.change(delete=uuids).deleted

    def restore(self, generation: Generation, rows: Iterable[int]) -> int:
        """Store deleted records again and return how many; damaged ones are left out.

        A deletion only marks a record. Its generation keeps its files open, even over a compaction.
        """
        found: list[Sealed] = []
        for row in rows:
            with suppress(DamagedResultError):
                found += [Sealed(unseal(text), text) for _, text in generation.texts([row])]
        return self.change(add=found).added

    def change(self, add: Iterable[Sealed] = (), delete: Iterable[str] = ()) -> Change:
        """Delete records and add checked documents in one step; an update does both to a uuid."""
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
        """Write everything into one file that plain TinyDB opens, and return its path."""
        with self._lock:
            self.refresh()
            path = compact(self._generation)
        self.refresh()
        self._generation.save_index()
        return path

    def _append(self, documents: Sequence[Sealed]) -> None:
        if not documents:
            return
        append(self._generation.journal, [each.text for each in documents])
        self._generation.catch_up()
        self._generation.save_index(max(_LEAST_WORTH_SAVING, int(self._generation.index.rows * _SHARE_WORTH_SAVING)))


def _sealed(record: Record) -> Sealed:
    try:
        return seal(to_document(record))
    except ValueError as error:
        raise StoreError(f"a {type(record).__name__} cannot be stored, as JSON has no such number: {error}") from error
