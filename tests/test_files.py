"""Files are read and written whole, data folders are found, and names are printed as one line."""

import errno
import os
import pwd
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from platformdirs.macos import MacOS

from dlbricks_tui.files import in_turn, replace_file, write_atomically, write_named
from dlbricks_tui.folders import EmptyDataFolderError, NoHomeFolderError, data_folder
from dlbricks_tui.printable import printable, printable_lines


def test_a_file_is_replaced_without_leftovers(tmp_path: Path) -> None:
    path = tmp_path / "made" / "on" / "the" / "way"
    write_atomically(path, "first, and longer")
    write_atomically(path, "zweite, größer")
    assert path.read_text(encoding="utf-8") == "zweite, größer"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_may_have_the_longest_name(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_atomically(path, "all")
    assert path.read_text() == "all"


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


def test_a_file_system_that_cannot_make_the_names_in_a_folder_durable_takes_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr("dlbricks_tui.files.os.fsync", fsync)
    write_atomically(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"


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


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks for the folders of Linux")


def test_the_command_line_overrides_the_environment() -> None:
    assert data_folder("/chosen", {"DLBRICKS_DATA_DIR": "/named"}).path == Path("/chosen")


@pytest.mark.parametrize(
    ("chosen", "variable", "named"), [("", "/named", "--data-dir"), (" ", "", "--data-dir"), (None, "", "DLBRICKS")]
)
def test_an_empty_name_is_refused_and_never_the_usual_folder(chosen: str | None, variable: str, named: str) -> None:
    with pytest.raises(EmptyDataFolderError, match=f"^{named}.* is empty"):
        data_folder(chosen, {"DLBRICKS_DATA_DIR": variable})


@linux
@pytest.mark.parametrize("data_home", [None, "", "relative"])
def test_linux_without_a_usable_xdg_folder_keeps_data_below_the_home_folder(
    data_home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    if data_home is None:
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_DATA_HOME", data_home)
    assert data_folder(None, {}).path == Path("/home/ada/.local/share/dlbricks")


def test_macos_keeps_data_in_application_support(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/Users/ada")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("platformdirs.PlatformDirs", MacOS)
    assert data_folder(None, {}).path == Path("/Users/ada/Library/Application Support/dlbricks")


def test_an_unexpanded_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert data_folder("~/bricks").path == Path("/home/ada/bricks")


def test_a_relative_folder_is_resolved_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = data_folder("bricks")
    monkeypatch.chdir("/")
    assert folder.path == tmp_path / "bricks"


def test_a_user_without_a_home_folder_has_to_name_the_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_user(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_such_user)
    with pytest.raises(NoHomeFolderError, match="~"):
        data_folder(None, {})
    assert data_folder("/named", {}).path == Path("/named")


def test_looking_up_a_folder_creates_nothing(tmp_path: Path) -> None:
    folder = data_folder(str(tmp_path / "bricks"))
    assert (folder.cache, folder.log) == (tmp_path / "bricks" / "cache", tmp_path / "bricks" / "log")
    assert not folder.path.exists()


def test_control_codes_are_spelled_out() -> None:
    assert printable("a\x1b]0;title\x07b\r\nc\x9b2J\u202e\x7f") == r"a\x1b]0;title\x07b\r\nc\x9b2J\u202e\x7f"


def test_line_breaks_can_be_kept() -> None:
    assert printable_lines("a\x1b\nb\r\n") == "a\\x1b\nb\\r\n"


@given(st.text())
def test_any_text_becomes_one_printable_line(text: str) -> None:
    assert printable(text).isprintable()
