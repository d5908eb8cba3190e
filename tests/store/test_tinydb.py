"""The store is a TinyDB database: TinyDB's calls give TinyDB's answers, its tables take any documents."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

import plotext
import pytest
import tinydb
from hypothesis import example, given
from hypothesis import strategies as st
from tinydb import Query, where
from tinydb.queries import QueryInstance
from tinydb.storages import MemoryStorage
from tinydb.table import Document

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.database import ResultsDatabase, open_results
from dlbricks_tui.store.documents import EXCHANGED, TABLE_OF, TABLES, StoreError, fields_of
from dlbricks_tui.store.exchange import export_all
from dlbricks_tui.store.files import HEAD
from dlbricks_tui.store.records import Measurement, Record, System
from dlbricks_tui.store.verification import verify
from tests.store.samples import (
    brick,
    counts,
    end_to_end,
    form,
    former_calibration,
    measurement,
    one_of_each,
    run,
    runtime,
    system,
)

texts = st.sampled_from(["", "a", "b", "ab", "two\nlines"])
numbers = st.integers(-2, 2) | st.sampled_from([0.5, 1.0, -0.0, True, 1 << 60])
anything = st.none() | texts | numbers | st.lists(numbers, max_size=2) | st.dictionaries(texts, numbers, max_size=2)
documents = st.fixed_dictionaries(
    {},
    optional={
        "number": numbers,
        "text": texts,
        "thing": anything,
        "deep": st.fixed_dictionaries({}, optional={"number": numbers}),
    },
)
ids = st.integers(-1, 9)
numbered = st.builds(Document, documents, ids)


def at(path: str) -> Query:
    """Return the query for a field, or for a field of a field."""
    query = Query()
    for name in path.split("."):
        query = query[name]
    return query


def has_length(value: object, length: int) -> bool:
    return len(str(value)) == length


def leaves(of_numbers: Iterable[str], of_texts: Iterable[str], values: st.SearchStrategy[Any]) -> Any:
    """Return queries with one test each."""
    number_fields, text_fields = st.sampled_from(list(of_numbers)), st.sampled_from(list(of_texts))
    fields = number_fields | text_fields
    return st.one_of(
        st.builds(lambda field, value: at(field) == value, fields, values),
        st.builds(lambda field, value: at(field) != value, fields, values),
        st.builds(lambda field, value: at(field) < value, number_fields, numbers),
        st.builds(lambda field, value: at(field) >= value, number_fields, numbers),
        st.builds(lambda field, value: at(field) <= value, text_fields, texts),
        st.builds(lambda field, value: at(field) > value, text_fields, texts),
        st.builds(lambda field, items: at(field).one_of(items), fields, st.lists(values, max_size=3)),
        st.builds(lambda field: at(field).exists(), fields),
        st.builds(lambda field: at(field).matches("a"), text_fields),
        st.builds(lambda field: at(field).test(cast(Any, has_length), 1), fields),
        st.builds(lambda field: at(field).map(str) == "1", fields),
        st.just(Query().noop()),
    )


def combined(leaf: Any) -> st.SearchStrategy[QueryInstance]:
    """Return queries of any structure."""
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(lambda one, other: one & other, inner, inner),
            st.builds(lambda one, other: one | other, inner, inner),
            st.builds(lambda one: ~one, inner),
        ),
        max_leaves=4,
    )


queries = combined(leaves(["number", "deep.number"], ["text"], anything))
changes = documents | st.just(lambda document: document.setdefault("deep", {}).update(changed=len(document)))


class Call(NamedTuple):
    """A method of a database or of one of its tables, and its arguments."""

    table: str | None
    method: str
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed

    def __repr__(self) -> str:
        return f"{self.table or 'database'}.{self.method}{self.arguments}{self.options}"


tables = st.sampled_from(["_default", "one"])


def call(method: str, *arguments: st.SearchStrategy[Any], **options: st.SearchStrategy[Any]) -> Any:
    return st.builds(Call, tables, st.just(method), st.tuples(*arguments), st.fixed_dictionaries(options))


calls = st.one_of(
    call("insert", documents),
    call("insert", numbered),
    call("insert_multiple", st.lists(documents | numbered, max_size=3)),
    call("update", changes),
    call("update", changes, queries),
    call("update", changes, doc_ids=st.lists(ids, max_size=3)),
    call("update_multiple", st.lists(st.tuples(changes, queries), max_size=2)),
    call("upsert", documents, queries),
    call("upsert", numbered),
    call("remove", queries),
    call("remove", doc_ids=st.lists(ids, max_size=3, unique=True)),
    call("truncate"),
    call("search", queries),
    call("get", queries),
    call("get", doc_id=ids),
    call("get", doc_ids=st.lists(ids, max_size=3)),
    call("contains", queries),
    call("contains", doc_id=ids),
    call("count", queries),
    call("all"),
    call("__len__"),
    st.just(Call(None, "tables")),
    st.just(Call(None, "drop_tables")),
    st.builds(lambda table: Call(None, "drop_table", (table,)), tables),
    st.just(Call(None, "reopen")),
    st.just(Call(None, "compact")),
)


def outcome(database: tinydb.TinyDB, asked: Call) -> Any:
    """Return the answer of a call, or the error that it raises."""
    target = database if asked.table is None else database.table(asked.table)
    try:
        return plainly(getattr(target, asked.method)(*copied(asked.arguments), **copied(asked.options)))
    except (ValueError, KeyError, RuntimeError) as error:
        return type(error)


def takes_a_used_number(database: tinydb.TinyDB, asked: Call) -> bool:
    """Return whether TinyDB gives a document the number of another one, as it does where `insert_multiple` gave it."""
    if asked.method not in ("insert", "upsert", "insert_multiple"):
        return False
    given = asked.arguments[0] if asked.method == "insert_multiple" else asked.arguments[:1]
    table = database.table(asked.table or database.default_table_name)
    if (first := table._next_id) is None:
        return False
    used = {it.doc_id for it in (*table, *given) if isinstance(it, Document)}
    return not used.isdisjoint(range(first, first + sum(not isinstance(it, Document) for it in given)))


def copied(given: Any) -> Any:
    """Return the arguments of a call with documents of their own, as TinyDB changes them in memory."""
    if isinstance(given, Document):
        return Document(copied(dict(given)), given.doc_id)
    if type(given) is dict:
        return {name: copied(each) for name, each in given.items()}
    return type(given)(map(copied, given)) if type(given) in (list, tuple) else given


def plainly(answer: Any) -> Any:
    if isinstance(answer, list):
        return [plainly(each) for each in answer]
    return (answer.doc_id, dict(answer)) if isinstance(answer, Document) else answer


@given(st.lists(calls, min_size=1, max_size=12))
# A change inside a document is read by the next database.
@example(
    [
        Call("one", "insert", ({"deep": {"number": 1}},)),
        Call("one", "update", (lambda document: document["deep"].update(number=2),)),
        Call(None, "reopen"),
    ]
)
# The number after -1 is 0.
@example([Call(None, "insert", (Document({}, -1),)), Call(None, "insert", ({},))])
# The second document without a number would replace the one that has the number 2.
@example([Call(None, "insert", ({},)), Call(None, "insert_multiple", ([Document({}, 2), {}],))])
def test_any_sequence_of_calls_gives_the_answers_of_tinydb(asked: list[Call]) -> None:
    memory = MemoryStorage()  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = ResultsDatabase(Path(folder)), tinydb.TinyDB(storage=lambda: memory)
        for each in [*asked, Call("_default", "all"), Call("one", "all"), Call(None, "tables")]:
            if each.method == "reopen":
                ours.close()
                ours, theirs = ResultsDatabase(Path(folder)), tinydb.TinyDB(storage=lambda: memory)
            elif each.method == "compact":
                ours.compact()
            else:
                if takes_a_used_number(theirs, each):
                    # We take the next free one.
                    break
                expected = outcome(theirs, each)
                assert outcome(ours, each) == expected, each
        ours.close()


RECORDS: tuple[Record, ...] = (
    form(0),
    form(1, "Pooling"),
    system(),
    system("c5.large"),
    runtime(),
    run(models=("a", "b")),
    *(measurement(float(number), brick=brick(number % 2), context="ab"[number % 2]) for number in range(1, 5)),
    measurement(1.5, flags=("drift",), batch_size=2, level=Level.WRITTEN, kernel_variant="a", run=""),
    end_to_end(30.0, name="a"),
)
FIELDS = ("brick", "context", "system", "run", "level", "id", "name", "key", "uuid", "kernel_variant", "when")


def known_values() -> list[Any]:
    documents = [fields_of(record) for record in RECORDS]
    return [value for each in documents for value in each.values() if isinstance(value, str | int | float)]


record_queries = combined(
    leaves(
        ["batch_size", "statistics.median_ms", "statistics.count", "cores"],
        FIELDS,
        st.sampled_from(known_values()) | anything,
    )
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[tinydb.TinyDB, tinydb.TinyDB]:
    """The same records in our database and in TinyDB's own."""
    ours, theirs = ResultsDatabase(tmp_path_factory.mktemp("store")), tinydb.TinyDB(storage=MemoryStorage)
    for record in RECORDS:
        document = fields_of(record)
        assert ours.table(TABLE_OF[type(record)]).insert(document) == theirs.table(TABLE_OF[type(record)]).insert(
            document
        )
    # A changed document has a new line, and keeps its place.
    for database in (ours, theirs):
        database.table("measurements").update({"context": "changed"}, doc_ids=[2])
    return ours, theirs


@given(query=record_queries, table=st.sampled_from(sorted({TABLE_OF[type(record)] for record in RECORDS})))
# Only one part tells where its matches are.
@example(query=(where("brick") == brick(1)) | (where("context") == "a"), table="measurements")
def test_any_query_on_records_gives_the_answers_of_tinydb(
    both: tuple[tinydb.TinyDB, tinydb.TinyDB], query: QueryInstance, table: str
) -> None:
    asked: list[Callable[[Any], Any]] = [
        lambda it: plainly(it.search(query)),
        lambda it: it.count(query),
        lambda it: plainly(it.get(query)),
        lambda it: it.contains(query),
    ]
    ours, theirs = (database.table(table) for database in both)
    for each in asked:
        assert each(ours) == each(theirs)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A store with a record of every kind, part compacted and part in the journal."""
    with ResultsDatabase(tmp_path) as store:
        store.add(*one_of_each())
        store.compact()
        store.add(measurement(brick=brick(1)), measurement(brick=brick(2)))
    return tmp_path


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


def test_a_changed_definition_gets_another_uuid_and_what_is_no_record_is_refused(filled: Path) -> None:
    with ResultsDatabase(filled) as database:
        database.table("systems").update({"cores": 64})
        with pytest.raises(StoreError, match="of table measurements is not a record of dlbricks: it lacks 'when'"):
            database.table("measurements").insert({"note": "mine"})
        with pytest.raises(StoreError, match="which another document has"):
            database.table("measurements").insert_multiple([fields_of(measurement(uuid="a" * 32))] * 2)
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


def test_two_writers_never_take_one_number_and_a_reader_creates_no_folder(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path / "none") as database:
        assert database.tables() == set()
    assert not (tmp_path / "none").exists()
    with ResultsDatabase(tmp_path) as one, ResultsDatabase(tmp_path) as other:
        assert [it.insert({"by": name}) for it, name in ((one, "one"), (other, "other"), (one, "one"))] == [1, 2, 3]
        assert one.all() == other.all() == [{"by": "one"}, {"by": "other"}, {"by": "one"}]
