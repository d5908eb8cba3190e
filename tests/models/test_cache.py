import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.models import cache as cache_module
from dlbricks_tui.models.cache import Cache, CachedTypes, ReadModel, answer_key, cache_key, types_in
from dlbricks_tui.models.errors import MissingShapeError
from dlbricks_tui.models.graph import LayerGraph, TensorType
from tests.bricks.graphs import chain, graphs

KEY = cache_key("a fact", content=b"a file")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@given(graph=graphs())
def test_a_written_graph_is_read_back(graph: LayerGraph, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = Cache(tmp_path_factory.mktemp("cache"))
    cache.write(KEY, ReadModel(graph, {"weights.bin": 7}))
    assert cache.read(KEY) == ReadModel(graph, {"weights.bin": 7})


def test_an_error_is_read_back_with_its_facts(cache: Cache) -> None:
    cache.write(KEY, MissingShapeError("no shape", {"data": (1, 3)}))
    found = cache.read(KEY)
    assert (str(found), found.examples) == ("no shape", {"data": (1, 3)})


def test_keys_differ_by_each_fact_by_the_content_and_by_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {KEY, cache_key("another", content=b"a file"), cache_key("a fact", content=b"another"), cache_key("a fact")}
    monkeypatch.setattr(cache_module, "_code_digest", lambda: "other code")
    assert len(keys | {cache_key("a fact", content=b"a file")}) == 5


def test_the_digest_of_the_code_follows_the_modules_that_make_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest: Callable[[], str] = cache_module._code_digest.__wrapped__
    monkeypatch.setattr(cache_module, "_PACKAGE", tmp_path)
    for name in ("models/a.py", "bricks/b.py", "runtime/traits.py", "runtime/variant.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    found = {digest()}
    for name in ("models/a.py", "bricks/b.py", "runtime/traits.py", "runtime/variant.py"):
        (tmp_path / name).write_text("2")
        found.add(digest())
    assert len(found) == 5


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_an_entry_with_a_flipped_bit_is_not_used(
    place: int, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    Cache(folder).write(KEY, ReadModel(chain("conv", "relu")))
    (path,) = entries(folder)
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= 1 << bit
    path.write_bytes(content)
    assert Cache(folder).read(KEY) is None


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self._folder),)


def test_a_foreign_entry_runs_no_code(cache: Cache, tmp_path: Path) -> None:
    cache.write(KEY, Harmful(tmp_path / "harm"))
    assert cache.read(KEY) is None
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("name", ["cache_key", "Path", "os.mkdir", "sys", "nothing"])
def test_an_entry_may_name_nothing_but_classes_of_its_rooms(name: str) -> None:
    with pytest.raises((pickle.UnpicklingError, AttributeError)):
        cache_module._Unpickler(io.BytesIO()).find_class(cache_module.__name__, name)


def test_a_full_disk_leaves_no_part_of_an_entry(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    cache.write(KEY, ReadModel(chain("conv")))
    assert entries(tmp_path) == []


def test_entries_used_longest_ago_make_room(tmp_path: Path) -> None:
    keys = [cache_key(number) for number in range(8)]
    for number, key in enumerate(keys):
        Cache(tmp_path).write(key, ReadModel(chain("conv")))
        os.utime(tmp_path / "models" / key, (number, number))
    # Reading an old entry notes its use.
    assert Cache(tmp_path).read(keys[0]) is not None
    size = (tmp_path / "models" / keys[0]).stat().st_size
    Cache(tmp_path, most_bytes=8 * size).write(cache_key("new"), ReadModel(chain("conv")))
    left = {path.name for path in entries(tmp_path)}
    assert left == {keys[0], *keys[4:], cache_key("new")}


def test_drafts_of_killed_writers_and_answers_of_frameworks_count_too(tmp_path: Path) -> None:
    for name in ("models/entry.1234.new", "inferred/a.json", "fused/b.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(bytes(10_000))
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / "other").write_bytes(bytes(10_000))
    Cache(tmp_path, most_bytes=5_000).write(KEY, ReadModel(chain("conv")))
    assert [path.name for path in entries(tmp_path)] == [KEY, "other"]


def test_processes_that_write_one_entry_and_are_killed_leave_it_whole(tmp_path: Path) -> None:
    program = dedent(
        f"""
        from pathlib import Path
        from dlbricks_tui.models.cache import Cache, ReadModel
        from tests.bricks.graphs import chain
        cache, content = Cache(Path({str(tmp_path)!r})), ReadModel(chain(*["conv"] * 200))
        print("ready", flush=True)
        while True:
            cache.write({KEY!r}, content)
        """
    )
    expected = ReadModel(chain(*["conv"] * 200))
    Cache(tmp_path).write(KEY, expected)
    writers = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(2)]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    for _ in range(10):
        assert Cache(tmp_path).read(KEY) == expected
    for writer in writers:
        writer.kill()
        writer.communicate()
    assert Cache(tmp_path).read(KEY) == expected


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
        cache = Cache(Path(folder))
        cache.write_types("fused", "key", found)
        assert cache.read_types("fused", "key") == found
        assert cache.read_types("inferred", "key") is None
        assert types_in(Path(folder, "fused", "key.json"), "other key") is None


def test_equal_types_are_written_once(tmp_path: Path) -> None:
    Cache(tmp_path).write_types("fused", "key", CachedTypes(((TensorType((1, 8)),),) * 1_000))
    document = json.loads((tmp_path / "fused" / "key.json").read_text())
    assert document["types"] == [[[1, 8], "float32"]]


def test_a_cache_key_depends_on_everything_that_affects_the_answer() -> None:
    keys = {
        answer_key(b"a", {0: (1, 2)}),
        answer_key(b"b", {0: (1, 2)}),
        answer_key(b"a", {0: (1, 3)}),
        answer_key(b"a", {1: (1, 2)}),
        answer_key(b"a", {}),
        answer_key(b"a", {0: (1, 2)}, "fused"),
        answer_key(b"a", {0: (1, 2)}, "fused", "mxnet-1.9.1"),
    }
    assert len(keys) == 7
