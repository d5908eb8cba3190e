from pathlib import Path

import pytest
import tinydb
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.store.documents import BrokenDocumentError
from dlbricks_tui.store.errors import OtherVersionError
from dlbricks_tui.store.journal import JournalStorage
from dlbricks_tui.store.middlewares import ChecksumMiddleware, SchemaMiddleware, with_checksum, without_checksum
from tests.store.samples import line_of_record, measurement

LINE = line_of_record(measurement())


@given(st.integers(0, len(LINE) - 1), st.integers(0, 7))
def test_any_flipped_bit_is_detected(position: int, bit: int) -> None:
    damaged = bytearray(LINE)
    damaged[position] ^= 1 << bit
    with pytest.raises(BrokenDocumentError, match="checksum"):
        without_checksum(bytes(damaged))


@given(st.binary(max_size=20).map(lambda rest: b"{" + rest))
def test_a_line_survives_its_checksum(line: bytes) -> None:
    assert without_checksum(with_checksum(line)) == line


def older(folder: Path) -> tinydb.TinyDB:
    return tinydb.TinyDB(folder, storage=SchemaMiddleware(ChecksumMiddleware(JournalStorage)))


def newer(folder: Path) -> tinydb.TinyDB:
    def rename_age(line: bytes) -> bytes:
        return line.replace(b'"age"', b'"years"')

    return tinydb.TinyDB(folder, storage=SchemaMiddleware(ChecksumMiddleware(JournalStorage), 2, {1: rename_age}))


def test_documents_of_an_older_schema_are_migrated_as_they_are_read(tmp_path: Path) -> None:
    with older(tmp_path) as database:
        database.insert({"age": 7})
    with newer(tmp_path) as database:
        assert database.all() == [{"years": 7}]
        database.insert({"years": 8})
        # A compaction writes all lines in the newer schema.
        database.storage.compact()
        assert database.all() == [{"years": 7}, {"years": 8}]
    assert b'"age"' not in (tmp_path / "results-1.json").read_bytes()
    with pytest.raises(OtherVersionError, match="newer dlbricks"):
        older(tmp_path).all()


def test_a_schema_without_a_migration_is_damage(tmp_path: Path) -> None:
    with older(tmp_path) as database:
        database.insert({"age": 7})
    storage = SchemaMiddleware(ChecksumMiddleware(JournalStorage), 2)
    with tinydb.TinyDB(tmp_path, storage=storage) as database:
        assert database.all() == []
    assert [each.reason for each in storage.generation.damage] == ["has the unknown schema 1"] * 2
