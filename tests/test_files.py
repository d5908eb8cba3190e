import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest

from dlbricks_tui.files import in_turn, replace_file, write_atomically, write_named


def test_a_file_is_replaced_without_leftovers(tmp_path: Path) -> None:
    path = tmp_path / "made" / "on" / "the" / "way"
    write_atomically(path, "first, and longer")
    write_atomically(path, "zweite, größer")
    assert path.read_text(encoding="utf-8") == "zweite, größer"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("precious")

    def write(file: BinaryIO) -> None:
        file.write(b"half")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        replace_file(path, write)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def test_writers_that_hold_the_lock_lose_no_changes(tmp_path: Path) -> None:
    path = tmp_path / "made" / "file"

    def count_on(_: int) -> None:
        with in_turn(path):
            write_atomically(path, str(int(path.read_text()) + 1 if path.exists() else 1))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count_on, range(32)))
    assert path.read_text() == "32"


def test_concurrent_writers_each_write_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = [str(number) * 50_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_atomically(path, text), texts))
    assert path.read_text() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "none" / "file", lambda file: file.write(b""))


def test_a_pipe_that_the_user_names_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        write_named(pipe, lambda file: file.write(b"content"))
        assert read.result() == b"content"
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_pipe_or_a_loop_of_links_in_the_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    pipe, loop = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path in (pipe, loop):
        write_atomically(path, "content")
        assert path.read_text() == "content"
        assert not path.is_symlink()


def test_a_pipe_in_the_place_of_a_lock_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file.lock")
    with pytest.raises(OSError, match="not a regular file"), in_turn(tmp_path / "file"):
        pass


def test_a_link_still_points_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink() and target.read_text() == "new"


@pytest.mark.parametrize("name", [".", "/", "folder", "loop"])
def test_a_folder_or_a_link_in_a_circle_is_no_file_to_replace(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    with suppress(OSError):
        replace_file(Path(name), lambda file: file.write(b"text"))
        assert name == "loop"
    assert sorted(tmp_path.iterdir()) == before
