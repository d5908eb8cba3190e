"""The files of the store at a moment, opened together with their index."""

import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dlbricks_tui.files import open_regular
from dlbricks_tui.store.documents import (
    BrokenDocumentError,
    DamagedResultError,
    Document,
    cannot_read,
    record_of,
    written_before_0_2,
)
from dlbricks_tui.store.files import (
    END,
    FORMAT,
    HEAD,
    Damage,
    EntryKind,
    JournalEntry,
    Layout,
    Line,
    complete_lines,
    document_on,
    entry_on,
    layout_of,
    record_on,
)
from dlbricks_tui.store.index import UUID_BYTES, Index, IndexedPart, load_index, save_index, to_iso
from dlbricks_tui.store.records import DatedRecord, Record

# Indexing this many lines takes 20 ms. Fewer are not worth a file.
_WORTH_SAVING = 1000
_ATTEMPTS = 10
_OTHER_FOLDER = "choose another data folder with --data-dir"


@dataclass(slots=True)
class _Part:
    """A file, its descriptor (None if it does not exist), and how much of it was read."""

    path: Path
    file: int | None = None
    covered: int = 0
    lines: int = 0
    documents: int = 0
    # The number of documents in the head of a TinyDB file.
    promised: int | None = None

    def open(self) -> None:
        try:
            with open_regular(self.path) as file:
                self.file = os.dup(file.fileno())
        except FileNotFoundError:
            # A journal without records yet, or a file that a compaction has just deleted.
            self.file = None
        except OSError as error:
            raise cannot_read(self.path, error) from error

    @property
    def size(self) -> int:
        return 0 if self.file is None else os.fstat(self.file).st_size

    @property
    def modified_ns(self) -> int:
        return 0 if self.file is None else os.fstat(self.file).st_mtime_ns

    @property
    def is_replaced(self) -> bool:
        """True if the file is no longer in its place, such as when the user has moved the folder away."""
        try:
            return self.file is not None and not os.path.samestat(os.fstat(self.file), self.path.stat())
        except OSError:
            return True


class Generation:
    """Open files and their index; its documents stay readable after a compaction has replaced the files.

    `decode` gives each line as it was without its checksum and schema.
    """

    def __init__(
        self, folder: Path, layout: Layout, decode: Callable[[bytes], bytes], trust_saved_index: bool = True
    ) -> None:
        self.folder = folder
        self.layout = layout
        self._decode = decode
        self.index = Index()
        self.damage: list[Damage] = []
        self._parts: list[_Part] = []
        # Lines that are not in the saved index.
        self._unsaved = 0
        self.close = weakref.finalize(self, _close_all, self._parts)
        if not (trust_saved_index and self._load()):
            self._build()
        self.catch_up()
        self.save_index(_WORTH_SAVING)

    @classmethod
    def open(cls, folder: Path, decode: Callable[[bytes], bytes]) -> "Generation":
        """Open the files that are in use now."""
        for _ in range(_ATTEMPTS):
            generation = cls(folder, layout_of(folder), decode)
            if not generation.superseded():
                break
        return generation

    @property
    def journal(self) -> Path:
        """The file that takes new records."""
        return self._parts[-1].path

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each file in bytes."""
        return {part.path.name: part.size for part in self._parts if part.file is not None}

    @property
    def covered(self) -> dict[str, int]:
        """The number of bytes read of each file."""
        return {part.path.name: part.covered for part in self._parts if part.file is not None}

    @property
    def unfinished_bytes(self) -> int:
        """The bytes of an incomplete last line, which a writer is writing or has not finished."""
        return self._parts[-1].size - self._parts[-1].covered

    @property
    def recovered(self) -> int:
        """The number of records read from the generation before, because their lines in this one are damaged."""
        older = [number for number, part in enumerate(self._parts) if part.path.name not in self.layout.files]
        return sum(int((self.index.column("part")[self.index.column("alive")] == number).sum()) for number in older)

    def superseded(self) -> bool:
        """True if other files have replaced these."""
        return layout_of(self.folder).files != self.layout.files or any(
            part.size < part.covered or part.is_replaced for part in self._parts
        )

    def catch_up(self) -> bool:
        """Index the lines appended since, and return True if there were any."""
        part = self._parts[-1]
        if part.file is None:
            part.open()
        known = part.lines
        if part.size > part.covered:
            self._read(part)
        self._unsaved += part.lines - known
        return part.lines > known

    def document(self, row: int) -> Document:
        """Return the document of a row; raise DamagedResultError if it can no longer be read."""
        return self.entry(row).document or {}

    def entry(self, row: int) -> JournalEntry:
        """Return the document of a row with its table and number."""
        try:
            return entry_on(self.line(row))
        except BrokenDocumentError as error:
            raise self._set_aside(row, error) from error

    def key(self, row: int) -> tuple[str, int]:
        """Return the table of a row, and the number of its document."""
        code = self.index.value("table", row)
        table = next(name for name, known in self.index.known_tables.items() if known.code == code)
        return table, int(self.index.value("id", row))

    def line(self, row: int) -> bytes:
        """Return the line of a row without its checksum and schema."""
        file = self._part_of(row).file
        offset, length = int(self.index.value("offset", row)), int(self.index.value("length", row))
        try:
            return self._decode(b"" if file is None else os.pread(file, length, offset))
        except BrokenDocumentError as error:
            raise self._set_aside(row, error) from error

    def record(self, row: int) -> Record:
        """Return the record of a row; its date is that of the index, which is not in the future."""
        record, when = self.stored_record(row), self.index.column("when")[row]
        if isinstance(record, DatedRecord) and when != self.index.stored("when")[row]:
            return replace(record, when=to_iso(int(when)))
        return record

    def stored_record(self, row: int) -> Record:
        """Return the record of a row as it was stored."""
        entry = self.entry(row)
        try:
            return record_of(entry.table, entry.document or {})
        except BrokenDocumentError as error:
            raise self._set_aside(row, error) from error

    def readable(self, rows: Iterable[int]) -> list[int]:
        """Return the rows whose lines can be read; the others are added to the damage."""
        found = []
        for row in rows:
            with suppress(DamagedResultError):
                self.line(row)
                found.append(row)
        return found

    def damaged_bytes(self, damage: Damage) -> bytes:
        """Return the bytes of a damaged part."""
        files = [part.file for part in self._parts if part.path.name == damage.file and part.file is not None]
        return b"".join(os.pread(file, damage.length, damage.offset) for file in files)

    def save_index(self, worth_saving: int = 1) -> None:
        """Save the index if it has at least `worth_saving` more lines than the saved one.

        Not in the middle of an import: it would not say of the lines that follow that they are imported.
        """
        if self._unsaved >= worth_saving and not self.index.announced:
            coverage = [IndexedPart(it.path.name, it.covered, it.lines, it.size, it.modified_ns) for it in self._parts]
            save_index(self.folder, self.index, coverage, self.damage)
            self._unsaved = 0

    def _load(self) -> bool:
        saved = load_index(self.folder)
        if saved is None:
            return False
        index, covered, damage = saved
        names = [each.file for each in covered]
        if tuple(name for name in names if name in self.layout.files) != self.layout.files:
            return False
        self._open(names)
        for part, coverage in zip(self._parts, covered, strict=True):
            grown = part is self._parts[-1] and part.size > coverage.size
            if not grown and (part.size, part.modified_ns) != (coverage.size, coverage.modified_ns):
                return False
            part.covered, part.lines = coverage.covered, coverage.lines
        self.index, self.damage = index, damage
        return self._has_its_last_row()

    def _has_its_last_row(self) -> bool:
        """Return whether the last document of the index is in its place: a longer journal may be another one."""
        row = self.index.rows - 1
        if row < 0:
            return True
        try:
            _, uuid = record_on(self.line(row))
        except DamagedResultError:
            return False
        # Documents of other programs have none.
        return bool(bytes.fromhex(uuid).ljust(UUID_BYTES, b"\0") == self.index.value("uuid", row).tobytes())

    def _build(self) -> None:
        self._read_all(self.layout.files)
        base_is_damaged = any(each.file == self._parts[0].path.name for each in self.damage)
        if base_is_damaged and self.layout.bases and self.layout.files_before:
            # The files before it have all documents that it should have; its own replace them.
            self._read_all((*self.layout.files_before, *self.layout.files))
        self._unsaved = sum(part.lines for part in self._parts)

    def _read_all(self, names: Sequence[str]) -> None:
        self.index, self.damage = Index(), []
        if lost := self.layout.missing:
            self.damage.append(Damage(lost, 0, 0, 0, "is missing"))
        self._open(names)
        for part in self._parts:
            self._read(part)

    def _open(self, names: Iterable[str]) -> None:
        _close_all(self._parts)
        self._parts.extend(_Part(self.folder / name) for name in names)
        for part in self._parts:
            part.open()

    def _read(self, part: _Part) -> None:
        if part.file is None:
            return
        number = self._parts.index(part)
        ended = False
        for line in complete_lines(part.file, part.covered, part.lines):
            try:
                self._take(line, number, part)
            except BrokenDocumentError as error:
                self.damage.append(Damage(part.path.name, line.number, line.offset, len(line.text), str(error)))
            part.covered, part.lines = line.end, line.number
            ended = line.text == END
        if part.path.suffix != ".json":
            return
        # It has what was imported before: records that are missing there were deleted.
        self.index.announced.clear()
        if not ended:
            there = f"{part.documents} of {part.promised}" if part.promised else str(part.documents)
            why = f"is cut off ({there} documents come before it)"
            self.damage.append(Damage(part.path.name, part.lines + 1, part.covered, part.size - part.covered, why))

    def _take(self, line: Line, number: int, part: _Part) -> None:
        found = document_on(line)
        if found is None:
            return
        entry = entry_on(self._decode(found.text))
        document = entry.document or {}
        if entry.table == HEAD:
            if document.get("format") != FORMAT:
                raise written_before_0_2(part.path, f"move the folder {self.folder} away, or {_OTHER_FOLDER}")
            part.promised = document.get("documents")
            for table in document.get("empty_tables", ()):
                self.index.clear(table)
            return
        try:
            if entry.action is EntryKind.PUT:
                self.index.put(entry.table, entry.doc_id, document, number, found.offset, len(found.text))
                part.documents += 1
            elif entry.action is EntryKind.REMOVE:
                self.index.remove(entry.table, entry.doc_id)
            elif entry.action is EntryKind.CLEAR:
                self.index.clear(entry.table)
            else:
                self.index.drop(entry.table)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BrokenDocumentError(f"is not a record of dlbricks: {error}") from error

    def _part_of(self, row: int) -> _Part:
        return self._parts[int(self.index.value("part", row))]

    def _set_aside(self, row: int, error: BrokenDocumentError) -> DamagedResultError:
        """Remove a row from the index whose bytes were damaged after it was indexed."""
        part, offset = self._part_of(row), int(self.index.value("offset", row))
        line = 0 if part.file is None else 1 + sum(each.end <= offset for each in complete_lines(part.file))
        damage = Damage(part.path.name, line, offset, int(self.index.value("length", row)), str(error))
        self.damage.append(damage)
        self.index.forget(row)
        return DamagedResultError(f"{damage} and is set aside; `dlbricks results verify` lists all damage")


def _close_all(parts: list[_Part]) -> None:
    for part in parts:
        if part.file is not None:
            with suppress(OSError):
                os.close(part.file)
    parts.clear()
