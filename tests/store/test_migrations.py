import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.store.documents import TABLES, seal, to_document
from dlbricks_tui.store.exchange import export_file, import_file
from dlbricks_tui.store.migrations import SCHEMA, STEPS, Document, upgraded
from dlbricks_tui.store.queries import counts, records_of
from dlbricks_tui.store.records import Calibration, Measurement, Record
from dlbricks_tui.store.store import Store
from tests.store.samples import one_of_each

STORED = Path(__file__).parent / "stored"
SCHEMAS = sorted(int(folder.name.removeprefix("schema-")) for folder in STORED.iterdir())


def said_in(schema: int) -> list[Record]:
    """One record of each table, with what records of that schema could not say left empty."""
    records = one_of_each()
    if schema < 2:
        records = [replace(each, occurrence=()) if isinstance(each, Measurement) else each for each in records]
    if schema < 3:
        records = [replace(each, densities=()) if isinstance(each, Calibration) else each for each in records]
    return records


@pytest.fixture(params=SCHEMAS)
def schema(request: pytest.FixtureRequest) -> int:
    """Every schema that there ever was."""
    return int(request.param)


@pytest.fixture
def old_store(schema: int, tmp_path: Path) -> Path:
    """A store as a dlbricks of that schema left it: half of it compacted, half in the journal."""
    return Path(shutil.copytree(STORED / f"schema-{schema}", tmp_path / "store"))


def test_a_store_of_every_schema_there_was_is_kept() -> None:
    assert list(range(1, SCHEMA + 1)) == SCHEMAS
    assert sorted(STEPS) == SCHEMAS[:-1]


def test_every_old_store_says_what_it_said(old_store: Path, schema: int) -> None:
    with Store(old_store) as store:
        assert not store.damage
        for record in said_in(schema):
            assert records_of(store.generation, type(record)) == [record]


def test_compacting_brings_an_old_store_up_to_date(old_store: Path, schema: int) -> None:
    with Store(old_store) as store:
        content = store.compact().read_bytes()
        assert counts(store.generation) == dict.fromkeys(TABLES, 1)
    assert all(seal(to_document(record)).text in content for record in said_in(schema))


def test_an_old_store_and_its_own_export_know_each_other(old_store: Path, tmp_path: Path) -> None:
    with Store(old_store) as store, Store(tmp_path / "elsewhere") as elsewhere:
        export_file(store.generation, [], tmp_path / "file.json")
        assert import_file(elsewhere, tmp_path / "file.json").new == len(TABLES)
        report = import_file(store, tmp_path / "file.json")
        assert (report.new, report.known, report.conflicts) == (0, len(TABLES), [])


def test_a_document_goes_through_every_step_between_its_schema_and_ours() -> None:
    def renamed(document: Document) -> Document:
        return {"new": document["old"]}

    def doubled(document: Document) -> Document:
        return {"new": 2 * document["new"]}

    steps = {1: renamed, 2: doubled}
    assert upgraded({"schema": 1, "old": 5}, steps, schema=3) == {"schema": 3, "new": 10}
    assert upgraded({"schema": 2, "new": 5}, steps, schema=3) == {"schema": 3, "new": 10}
    assert upgraded({"schema": 3, "new": 5}, steps, schema=3) == {"schema": 3, "new": 5}
