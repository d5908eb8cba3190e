from pathlib import Path

import plotext
import pytest
import tinydb

from dlbricks_tui.store.database import ResultsDatabase, open_results
from dlbricks_tui.store.documents import EXCHANGED, TABLES
from dlbricks_tui.store.entries import HEAD
from dlbricks_tui.store.errors import StoreError
from dlbricks_tui.store.exporting import export_all
from dlbricks_tui.store.records import Measurement, System
from dlbricks_tui.store.verification import verify
from tests.store.samples import brick, counts, form, former_calibration, measurement, one_of_each, system


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A store with a record of every kind, part compacted and part in the journal."""
    with ResultsDatabase(tmp_path) as store:
        store.add(*one_of_each())
        store.compact()
        store.add(measurement(brick=brick(1)), measurement(brick=brick(2)))
    return tmp_path


def test_tinydb_finds_stored_records(filled: Path, tmp_path: Path) -> None:
    with ResultsDatabase(filled) as database:
        assert database.tables() == set(TABLES)
        table = database.table("measurements")
        assert len(table) == 3
        assert [each["brick"] for each in table.search(tinydb.where("brick") == brick(2))] == [brick(2)]
        assert table.count(tinydb.where("statistics").trimmed_mean_ms < 2) == 3
    with ResultsDatabase(tmp_path / "empty") as database:
        assert database.tables() == set()


def test_a_change_by_tinydb_adds_a_line_to_the_journal(filled: Path) -> None:
    journal = filled / "journal-1.jsonl"
    before = journal.read_bytes()
    with ResultsDatabase(filled) as database:
        table = database.table("measurements")
        table.update({"flags": ["by hand"]}, tinydb.where("brick") == brick(1))
        assert [each["brick"] for each in table.search(tinydb.where("flags") == ["by hand"])] == [brick(1)]
    after = journal.read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == before.count(b"\n") + 1
    with ResultsDatabase(filled) as store:
        flagged = [each for each in store.records(Measurement) if each.flags == ("by hand",)]
        assert [each.brick for each in flagged] == [brick(1)]


def test_inserts_and_removals_by_tinydb_are_stored(filled: Path) -> None:
    with ResultsDatabase(filled) as database:
        table = database.table("measurements")
        copy = {name: value for name, value in table.all()[0].items() if name != "uuid"}
        number = table.insert({**copy, "context": "blocked"})
        inserted = table.get(doc_id=number)
        assert inserted is not None
        assert inserted["context"] == "blocked"
        table.remove(tinydb.where("brick") == brick(2))
        assert table.get(doc_id=number) == inserted
    with ResultsDatabase(filled) as store:
        assert sorted(each.context for each in store.records(Measurement)) == ["blocked", "plain", "plain"]


def test_a_changed_definition_gets_another_uuid_and_what_is_no_record_is_refused(filled: Path) -> None:
    with ResultsDatabase(filled) as database:
        database.table("systems").update({"cores": 64})
        with pytest.raises(StoreError, match="of table measurements is not a record of dlbricks: it lacks 'when'"):
            database.table("measurements").insert({"note": "mine"})
        assert len(database.table("measurements")) == 3
    with ResultsDatabase(filled) as store:
        assert store.records(System) == [system(cores=64)]


def test_other_tables_take_any_documents_and_survive_a_compaction(filled: Path) -> None:
    with ResultsDatabase(filled) as database:
        assert database.table("mine").insert_multiple([{"note": "one"}, {"note": ["two", {"deep": 2}]}]) == [1, 2]
        database.table("empty", persist_empty=True)
        database.compact()
        database.table("mine").remove(tinydb.where("note") == "one")
    with ResultsDatabase(filled) as database:
        assert database.tables() == {*TABLES, "mine", "empty"}
        assert database.table("mine").all() == [{"note": ["two", {"deep": 2}]}]
        assert database.table("mine").insert({}) == 3


def test_records_added_by_another_process_are_kept_unless_their_table_is_dropped(filled: Path) -> None:
    with ResultsDatabase(filled) as database:
        table = database.table("measurements")
        assert len(table) == 3
        with ResultsDatabase(filled) as other:
            other.add(measurement(brick=brick(3)))
        table.remove(tinydb.where("brick") == brick(2))
        assert {each["brick"] for each in table} == {brick(0), brick(1), brick(3)}
        database.drop_table("measurements")
        with ResultsDatabase(filled) as store:
            assert counts(store)["measurements"] == 0
            assert len(store.select()) == 1
        database.drop_tables()
    with ResultsDatabase(filled) as store:
        assert not any(counts(store).values())


def test_the_history_that_the_page_on_results_plots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "results.md").read_text()
    (code,) = (part for part in page.split("```python\n")[1:] if "history" in part)
    monkeypatch.setenv("DLBRICKS_DATA_DIR", str(tmp_path))
    with open_results() as results:
        results.add(form(), *(measurement(float(number), uuid=f"{number:032x}") for number in range(1, 4)))
    # Pictures of documents are drawn on the same figure.
    plotext.clear_figure()
    exec(code.partition("```")[0], {})
    assert "Convolution" in capsys.readouterr().out


def test_a_store_keeps_the_constants_of_an_earlier_version_and_hands_them_to_nobody(tmp_path: Path) -> None:
    document = former_calibration()
    table, _ = document.pop("table"), document.pop("schema")
    with ResultsDatabase(tmp_path / "store") as store:
        store.add(*one_of_each())
        store.table(table).insert(document)
    assert verify(tmp_path / "store").damage == ()
    with ResultsDatabase(tmp_path / "store") as store:
        store.compact()
        assert store.table(table).all() == [document]
        export_all(store, tmp_path / "export.json")
    with tinydb.TinyDB(tmp_path / "export.json", access_mode="r") as exported:
        assert exported.tables() == {HEAD, *EXCHANGED}
