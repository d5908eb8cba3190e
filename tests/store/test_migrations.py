import shutil
from pathlib import Path

import pytest

from dlbricks_tui.store.documents import TABLES, seal, to_document
from dlbricks_tui.store.migrations import SCHEMA, STEPS, Document, upgraded
from dlbricks_tui.store.queries import counts, records_of
from dlbricks_tui.store.store import Store
from tests.store.samples import one_of_each

STORED = Path(__file__).parent / "stored"
SCHEMAS = sorted(int(folder.name.removeprefix("schema-")) for folder in STORED.iterdir())


@pytest.fixture(params=SCHEMAS)
def old_store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store as a dlbricks of that schema left it: half of it compacted, half in the journal."""
    return Path(shutil.copytree(STORED / f"schema-{request.param}", tmp_path / "store"))


def test_a_store_of_every_schema_there_was_is_kept() -> None:
    assert list(range(1, SCHEMA + 1)) == SCHEMAS
    assert sorted(STEPS) == SCHEMAS[:-1]


def test_every_old_store_says_what_it_said(old_store: Path) -> None:
    with Store(old_store) as store:
        assert not store.damage
        for record in one_of_each():
            assert records_of(store.generation, type(record)) == [record]


def test_compacting_brings_an_old_store_up_to_date(old_store: Path) -> None:
    with Store(old_store) as store:
        content = store.compact().read_bytes()
        assert counts(store.generation) == dict.fromkeys(TABLES, 1)
    assert all(seal(to_document(record)).text in content for record in one_of_each())


def test_a_document_goes_through_every_step_between_its_schema_and_ours() -> None:
    def renamed(document: Document) -> Document:
        return {"new": document["old"]}

    def doubled(document: Document) -> Document:
        return {"new": 2 * document["new"]}

    steps = {1: renamed, 2: doubled}
    assert upgraded({"schema": 1, "old": 5}, steps, schema=3) == {"schema": 3, "new": 10}
    assert upgraded({"schema": 2, "new": 5}, steps, schema=3) == {"schema": 3, "new": 10}
    assert upgraded({"schema": 3, "new": 5}, steps, schema=3) == {"schema": 3, "new": 5}
