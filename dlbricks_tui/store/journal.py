"""The storage of the database, which loses nothing that it acknowledged: a journal, durable and under a lock.

TinyDB's own storage rewrites the whole file at each change, in place and without a lock. This one has the finer
operations of a table with an index: it appends changes, and reads one document at its place.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dlbricks_tui.files import DRAFT_SUFFIX, replace_file
from dlbricks_tui.store.documents import SCHEMA, TABLES, StoreBusyError, StoreError, cannot_write
from dlbricks_tui.store.files import (
    HEAD,
    MIGRATIONS,
    JournalEntry,
    Migration,
    append,
    base_name,
    head_of,
    journal_name,
    layout_of,
    line_of,
    sealed,
    unsealed,
    write_tinydb_file,
)
from dlbricks_tui.store.generation import Generation

# Longer than compacting a million results takes: a process that still holds the lock hangs.
PATIENCE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 0.02


@contextmanager
def writing_alone(path: Path, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Hold the exclusive lock for writers, on a file that is never replaced. It ends with the process that holds it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        _lock(file, path, patience_seconds)
        # Padded, so that a shorter number overwrites a longer one.
        with suppress(OSError):
            os.pwrite(file, f"{os.getpid():<31}\n".encode(), 0)
        yield
    finally:
        os.close(file)


def _lock(file: int, path: Path, patience_seconds: float) -> None:
    give_up = time.monotonic() + patience_seconds
    pause_seconds = 0.0002
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                holder = os.pread(file, 32, 0).decode("ascii", "replace").strip() or "unknown"
                raise StoreBusyError(
                    f"process {holder} has kept {path} locked for more than {patience_seconds:.0f} s; "
                    "end it if it hangs, then try again"
                ) from None
            time.sleep(pause_seconds)
            pause_seconds = min(pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
        except OSError as error:
            raise cannot_write(path, error) from error


# A writer saves the index when a tenth of it is new: the next process opens quickly, and a result costs next to
# nothing.
_SHARE_WORTH_SAVING = 0.1
_LEAST_WORTH_SAVING = 1000


class JournalStorage:
    """A store folder, which is created with the first document. Use it from one thread at a time."""

    def __init__(
        self, folder: Path, schema: int = SCHEMA, migrations: Mapping[int, Migration] = MIGRATIONS, **_: Any
    ) -> None:
        self.folder = Path(folder)
        self._schema = schema
        self._migrations = migrations
        self._is_locked = False
        self._generation: Generation | None = None

    def encode(self, entry: JournalEntry) -> bytes:
        """Return an entry as a line of the journal."""
        try:
            return sealed(line_of(entry), self._schema)
        except ValueError as error:
            what = f"a document of the table {entry.table} cannot be stored"
            raise StoreError(f"{what}, as JSON has no such value: {error}") from error

    def decode(self, line: bytes) -> bytes:
        """Return a line of the journal without its checksum and schema, migrated to the schema of the storage."""
        cure = f"move the folder {self.folder} away, or choose another data folder with --data-dir"
        return unsealed(line, self.folder, cure, self._schema, self._migrations)

    @property
    def generation(self) -> Generation:
        """The documents read so far; `refresh` reads new ones."""
        if self._generation is None:
            self._generation = Generation.open(self.folder, self.decode)
        return self._generation

    def refresh(self) -> bool:
        """Read the changes that this and other processes have made since, and return True if there were any."""
        if self._generation is None or self._generation.superseded():
            # Not closed: callers may still read its rows. The garbage collector closes it.
            known, self._generation = self._generation, Generation.open(self.folder, self.decode)
            return known is not None
        return self._generation.catch_up()

    @contextmanager
    def locked(self) -> Iterator[Generation]:
        """Hold the lock for writers, and return all documents; may be nested."""
        if self._is_locked:
            yield self.generation
            return
        with writing_alone(self.folder / "lock"):
            self._is_locked = True
            try:
                self.refresh()
                yield self.generation
            finally:
                self._is_locked = False

    def append(self, entries: Iterable[JournalEntry]) -> None:
        """Make changes durably; raise an error and change nothing if that is impossible. The caller holds the lock."""
        if lines := [self.encode(entry) for entry in entries]:
            append(self.generation.journal, lines, self.encode(head_of()))
            self.generation.catch_up()
            worth = max(_LEAST_WORTH_SAVING, int(self.generation.index.rows * _SHARE_WORTH_SAVING))
            self.generation.save_index(worth)

    def compact(self) -> Path:
        """Write all documents into one file that plain TinyDB opens, and return its path.

        The file gets its name once it is complete and on the disk. Until then the files before it are in use.
        """
        with self.locked() as generation:
            path = self._write_generation(generation)
        self.refresh()
        self.generation.save_index()
        return path

    def close(self) -> None:
        """Save the index, close the files and free the memory."""
        if self._generation is not None:
            self._generation.save_index(_LEAST_WORTH_SAVING)
            self._generation.close()
            self._generation = None

    def _write_generation(self, generation: Generation, *, read_anew: bool = False) -> Path:
        number = generation.layout.newest
        path = self.folder / base_name(number + 1)
        tables = [*TABLES, *sorted(generation.index.tables - TABLES.keys())]
        rows = {table: generation.readable(generation.index.rows_of(table).tolist()) for table in tables}
        if generation.damage and not read_anew:
            # The saved index may be older than the damage, and the files that go now may have what is damaged here.
            whole = Generation(self.folder, generation.layout, self.decode, trust_saved_index=False)
            return self._write_generation(whole, read_anew=True)
        empty = [table for table in generation.index.tables if not rows[table]]
        head = head_of(documents=sum(map(len, rows.values())), empty_tables=sorted(empty))
        aside = [b"%s\n%s\n" % (str(each).encode(), generation.damaged_bytes(each)) for each in generation.damage]

        def documents() -> Iterator[tuple[str, int, bytes]]:
            yield HEAD, 1, self.encode(head)
            for table in tables:
                for row in rows[table]:
                    identity = int(generation.index.value("id", row))
                    yield table, identity, sealed(generation.line(row), self._schema)

        try:
            if aside:
                replace_file(self.folder / f"set-aside-{number}.txt", lambda file: file.writelines(aside))
            replace_file(path, lambda file: write_tinydb_file(file, documents()))
        except OSError as error:
            raise cannot_write(path, error) from error
        layout = layout_of(self.folder)
        names = [base_name(older) for older in layout.bases if older < number]
        names += [journal_name(older) for older in layout.journals if older < number]
        # Drafts of writers that were killed.
        names += [draft.name for draft in self.folder.glob(f"*{DRAFT_SUFFIX}")]
        for name in names:
            with suppress(OSError):
                (self.folder / name).unlink()
        return path
