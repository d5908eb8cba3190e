from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dlbricks_tui.store import journal
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.files import layout_of
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import COLUMN_TYPES, INDEX_NAME, Index
from dlbricks_tui.store.journal import JournalStorage
from tests.store.samples import brick, form, measurement, one_of_each

MANY = [measurement(brick=brick(number % 50)) for number in range(60)]


def same(one: Index, other: Index) -> bool:
    return (
        all((one.column(name) == other.column(name)).all() for name in COLUMN_TYPES)
        and all(one.vocabularies[name].texts == other.vocabularies[name].texts for name in one.vocabularies)
        and one.name_of_brick == other.name_of_brick
        and list(one.rows_of_brick(brick(7))) == list(other.rows_of_brick(brick(7)))
    )


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A store whose index is saved."""
    with ResultsDatabase(tmp_path) as store:
        store.add(*one_of_each(), *MANY)
        # Stores as small as this one have none.
        assert not (tmp_path / INDEX_NAME).exists()
        store.generation.save_index()
    return tmp_path


def built_anew(folder: Path) -> Index:
    decode = JournalStorage(folder).decode
    return Generation(folder, layout_of(folder), decode, trust_saved_index=False).index


def test_a_saved_index_equals_a_rebuilt_one_and_is_completed_by_later_lines(filled: Path) -> None:
    with ResultsDatabase(filled) as store:
        assert same(store.generation.index, built_anew(filled))
        store.add(form(3), measurement(brick=brick(7)))
        store.delete([MANY[0].uuid, MANY[7].uuid])
    with ResultsDatabase(filled) as store:
        assert same(store.generation.index, built_anew(filled))
        assert len(store.select()) == 61


def test_the_index_is_saved_once_enough_lines_are_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_LEAST_WORTH_SAVING", 7)
    saved = tmp_path / INDEX_NAME
    with ResultsDatabase(tmp_path) as store:
        store.add(*MANY[:5])
        assert not saved.exists()
        store.add(MANY[5])
        assert saved.exists()
        before = saved.read_bytes()
        store.add(*MANY[6:10])
        assert saved.read_bytes() == before
    assert saved.read_bytes() == before


@pytest.mark.parametrize(("change", "results"), [("flipped", 61), ("truncated", 14), ("compacted", 61)])
def test_a_saved_index_is_ignored_after_the_file_was_changed(filled: Path, change: str, results: int) -> None:
    file = filled / "journal-0.jsonl"
    content = bytearray(file.read_bytes())
    if change == "compacted":
        with ResultsDatabase(filled) as store:
            store.compact()
        file.unlink()
        file = filled / "results-1.json"
        content = bytearray(file.read_bytes())
    if change == "truncated":
        content = bytearray(b"".join(content.splitlines(keepends=True)[:25]))
    else:
        content[content.rindex(b'"samples_ms"')] ^= 1
    file.write_bytes(content)
    with ResultsDatabase(filled) as store:
        assert len(store.select()) == results
        assert len(store.damage) == (change != "truncated")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(st.data())
def test_a_damaged_index_is_never_used(filled: Path, data: st.DataObject) -> None:
    path = filled / INDEX_NAME
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    with ResultsDatabase(filled) as store:
        assert len(store.select()) == 62
        assert store.generation.record(68) == MANY[-4]
    path.write_bytes(content)


def test_adding_a_row_keeps_existing_views_of_columns() -> None:
    index = Index()
    before = index.column("length")
    for number in range(2000):
        form = {"uuid": f"{number:032x}", "key": f"{number}", "canonical": ""}
        index.put("bricks", number, form, 0, number, 1)
    assert not len(before)
    assert (index.column("offset") == np.arange(2000)).all()
    assert list(index.rows_of_brick("1999")) == [1999]
    assert list(index.rows_of_brick("")) == []
