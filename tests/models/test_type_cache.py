import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.type_cache import CachedTypes, cache_key, read_types, write_types

shapes = st.none() | st.lists(st.integers(0, 2**31), max_size=4).map(tuple)
types = st.builds(TensorType, shapes, st.sampled_from(["float32", "int8", "unknown"]))
answers = st.builds(
    CachedTypes,
    types=st.lists(st.lists(types, max_size=3).map(tuple), max_size=6).map(tuple),
    unknown=st.frozensets(st.integers(0, 5)),
    framework=st.text(),
)


@given(answers, st.none() | st.text(), st.lists(st.lists(st.integers(0, 9), max_size=3).map(tuple), max_size=4))
def test_written_types_are_read_back(found: CachedTypes, symbol: str | None, parts: list[tuple[int, ...]]) -> None:
    if symbol is not None:
        found = CachedTypes(found.types, found.unknown, found.framework, symbol, tuple(parts))
    with TemporaryDirectory() as folder:
        path = Path(folder, "types.json")
        write_types(path, "key", found)
        assert read_types(path, "key") == found
        assert read_types(path, "other key") is None


def test_a_missing_file_holds_no_types(tmp_path: Path) -> None:
    assert read_types(tmp_path / "absent.json", "key") is None
    assert read_types(tmp_path, "key") is None


def test_equal_types_are_written_once(tmp_path: Path) -> None:
    write_types(tmp_path / "types.json", "key", CachedTypes(((TensorType((1, 8)),),) * 1_000))
    document = json.loads((tmp_path / "types.json").read_text())
    assert document["types"] == [[[1, 8], "float32"]]


def test_a_cache_key_depends_on_everything_that_affects_the_answer() -> None:
    keys = {
        cache_key(b"a", {0: (1, 2)}),
        cache_key(b"b", {0: (1, 2)}),
        cache_key(b"a", {0: (1, 3)}),
        cache_key(b"a", {1: (1, 2)}),
        cache_key(b"a", {}),
        cache_key(b"a", {0: (1, 2)}, "fused"),
        cache_key(b"a", {0: (1, 2)}, "fused", "mxnet-1.9.1"),
    }
    assert len(keys) == 7


def test_the_order_of_given_shapes_does_not_matter() -> None:
    assert cache_key(b"a", {0: (1,), 1: (2,)}) == cache_key(b"a", {1: (2,), 0: (1,)})
