"""The cache on disk of read models and answers; `test_loading.py` has what is kept in it, and copies."""

import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.models import cache as cache_module
from dlbricks_tui.models.cache import Cache, GraphAnswer, ReadModel, answer_key, cache_key, types_in
from dlbricks_tui.models.errors import MissingShapeError
from dlbricks_tui.models.graph import LayerGraph, TensorType
from tests.bricks.graphs import chain, graphs

KEY = cache_key("a fact", content=b"a file")
CONV = ReadModel(chain("conv"))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@given(graph=graphs())
def test_graphs_and_errors_are_read_back(graph: LayerGraph, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = Cache(tmp_path_factory.mktemp("cache"))
    cache.write(KEY, ReadModel(graph, {"weights.bin": 7}))
    assert cache.read(KEY) == ReadModel(graph, {"weights.bin": 7})
    cache.write(KEY, MissingShapeError("no shape", {"data": (1, 3)}, tried=True))
    found = cache.read(KEY)
    assert (str(found), found.examples, found.tried) == ("no shape", {"data": (1, 3)}, True)


def test_keys_differ_by_each_fact_by_the_content_and_by_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {KEY, cache_key("another", content=b"a file"), cache_key("a fact", content=b"another"), cache_key("a fact")}
    monkeypatch.setattr(cache_module, "_code_digest", lambda: "other code")
    assert len(keys | {cache_key("a fact", content=b"a file")}) == 5
    # Answers of frameworks do not depend on the code.
    contents = {answer_key(content, {0: (1, 2)}) for content in (b"a", b"b")}
    shapes = {answer_key(b"a", shapes) for shapes in ({0: (1, 2)}, {0: (1, 3)}, {1: (1, 2)}, {})}
    facts = {answer_key(b"a", {0: (1, 2)}, *more) for more in ((), ("fused",), ("fused", "mxnet-1.9.1"))}
    assert len(contents | shapes | facts) == 7


def test_the_digest_of_the_code_follows_the_modules_that_make_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest: Callable[[], str] = cache_module._code_digest.__wrapped__
    monkeypatch.setattr(cache_module, "_PACKAGE", tmp_path)
    found = set()
    for text in "12":
        for name in ("models/a.py", "bricks/b.py", "runtime/traits.py", "runtime/variant.py"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
            if (tmp_path / "runtime" / "variant.py").exists():
                found.add(digest())
    assert len(found) == 5


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_an_entry_with_a_flipped_bit_is_not_used(
    place: int, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    Cache(folder).write(KEY, CONV)
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
    def full(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    cache.write(KEY, CONV)
    assert entries(tmp_path) == []


def test_entries_used_longest_ago_make_room(tmp_path: Path) -> None:
    keys = [cache_key(number) for number in range(8)]
    for number, key in enumerate(keys):
        Cache(tmp_path).write(key, CONV)
        os.utime(tmp_path / "models" / key, (number, number))
    # Reading an old entry notes its use.
    assert Cache(tmp_path).read(keys[0]) is not None
    size = (tmp_path / "models" / keys[0]).stat().st_size
    Cache(tmp_path, most_bytes=8 * size).write(cache_key("new"), CONV)
    assert {path.name for path in entries(tmp_path)} == {keys[0], *keys[4:], cache_key("new")}
    # Drafts of killed writers and answers of frameworks count, too.
    for name in ("models/entry.1234.new", "inferred/a.json", "fused/b.json", "others/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(10_000))
        os.utime(tmp_path / name, (0, 0))
    Cache(tmp_path, most_bytes=8 * size).write(cache_key("new"), CONV)
    assert not {path.name for path in entries(tmp_path)} & {"entry.1234.new", "a.json", "b.json"}
    assert (tmp_path / "others" / "c").exists()


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
    GraphAnswer,
    types=st.lists(st.lists(types, max_size=3).map(tuple), max_size=6).map(tuple),
    unknown=st.frozensets(st.integers(0, 5)),
    framework=st.text(),
)


@given(answers, st.none() | st.text(), st.lists(st.lists(st.integers(0, 9), max_size=3).map(tuple), max_size=4))
def test_written_types_are_read_back(found: GraphAnswer, symbol: str | None, parts: list[tuple[int, ...]]) -> None:
    if symbol is not None:
        found = replace(found, symbol=symbol, parts=tuple(parts))
    with TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        cache.write_types("fused", "key", found)
        assert cache.read_types("fused", "key") == found
        assert cache.read_types("inferred", "key") is None
        assert types_in(Path(folder, "fused", "key.json"), "other key") is None


def test_equal_types_are_written_once(tmp_path: Path) -> None:
    Cache(tmp_path).write_types("fused", "key", GraphAnswer(((TensorType((1, 8)),),) * 1_000))
    document = json.loads((tmp_path / "fused" / "key.json").read_text())
    assert document["types"] == [[[1, 8], "float32"]]
