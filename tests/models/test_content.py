import errno
import gzip
import hashlib
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from dlbricks_tui.models import content
from dlbricks_tui.models.content import content_sha256, read_content
from dlbricks_tui.models.errors import UnreadableModelError


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net-symbol.json"
    path.write_bytes(b'{"nodes": []}')
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UnreadableModelError) as caught:
        read_content(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_plain_file_is_read_as_it_is(model: Path) -> None:
    assert read_content(model) == b'{"nodes": []}'


def test_a_gzipped_file_is_unpacked_under_any_name(model: Path) -> None:
    model.write_bytes(gzip.compress(b"[]") + gzip.compress(b"{}"))
    assert read_content(model) == b"[]{}"


def test_an_empty_file_is_read_and_left_to_the_parser(model: Path) -> None:
    model.write_bytes(b"")
    assert read_content(model) == b""


def test_a_link_to_a_file_is_followed(model: Path, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(model)
    assert read_content(tmp_path / "link.json") == b'{"nodes": []}'


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "absent.json") == f"{tmp_path}/absent.json cannot be read: No such file or directory"


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path} is a directory; give the path of a model file"


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")
    assert os.strerror(errno.ELOOP) in refusal(tmp_path / "one")


def test_a_pipe_without_a_writer_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").startswith(f"{tmp_path}/pipe is not a regular file")


def test_a_device_is_refused() -> None:
    assert refusal(Path("/dev/zero")).startswith("/dev/zero is not a regular file")


def test_an_unreadable_file_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(path: Path, *_: int) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    # The superuser, who may run these tests, can read everything.
    monkeypatch.setattr(os, "open", forbid)
    assert refusal(model) == f"{model} cannot be read: Permission denied"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_a_file_without_permissions_is_refused(model: Path) -> None:
    model.chmod(0)
    assert refusal(model) == f"{model} cannot be read: Permission denied"


def test_a_path_with_a_nul_byte_is_refused() -> None:
    assert "not a path" in refusal(Path("net\0.json"))


def test_a_path_that_is_too_long_is_refused() -> None:
    assert os.strerror(errno.ENAMETOOLONG) in refusal(Path("n" * 5_000))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda packed: packed[:-9],
        lambda packed: packed[:12],
        lambda packed: packed[:2],
        lambda packed: packed[:-1] + bytes([packed[-1] ^ 1]),
        lambda packed: packed[:10] + b"\xff" * 20,
        lambda packed: packed[:2] + b"\x09" + packed[3:],
    ],
    ids=["cut", "cut early", "only its mark", "wrong length", "wrong data", "unknown method"],
)
def test_broken_gzip_data_is_refused(model: Path, spoil: Callable[[bytes], bytes]) -> None:
    model.write_bytes(spoil(gzip.compress(b'{"nodes": []}')))
    assert refusal(model).startswith(f"{model} is broken gzip data: ")


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model.write_bytes(gzip.compress(bytes(2**24)))
    monkeypatch.setattr(content, "MOST_BYTES", 2**16)
    tracemalloc.start()
    try:
        assert "unpacks to more than 0 MiB: not a symbol file" in refusal(model)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_a_large_file_is_refused_before_it_is_read(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with model.open("wb") as file:
        # A sparse file.
        file.truncate(2**40)
    monkeypatch.setattr(content, "MOST_BYTES", 2**16)
    assert "holds more than 0 MiB: not a symbol file" in refusal(model)


def test_the_digest_is_that_of_the_unpacked_file(model: Path, tmp_path: Path) -> None:
    packed = tmp_path / "net-symbol.json.gz"
    packed.write_bytes(gzip.compress(model.read_bytes()))
    assert content_sha256(packed) == content_sha256(model) == hashlib.sha256(b'{"nodes": []}').hexdigest()


def test_a_changed_file_has_another_digest(model: Path) -> None:
    before = content_sha256(model)
    model.write_bytes(b'{"nodes": [1]}')
    assert content_sha256(model) == hashlib.sha256(b'{"nodes": [1]}').hexdigest() != before


def test_a_file_without_content_to_read_has_no_digest(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json.gz"
    broken.write_bytes(gzip.compress(b"{}")[:-4])
    for path in (tmp_path, tmp_path / "none", broken):
        with pytest.raises(UnreadableModelError):
            content_sha256(path)


def test_a_file_that_unpacks_without_end_has_no_digest(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_MOST_UNPACKED_BYTES", 1000)
    model.write_bytes(gzip.compress(bytes(5000)))
    with pytest.raises(UnreadableModelError, match="unpacks to more than 2 GiB: not a model file"):
        content_sha256(model)
