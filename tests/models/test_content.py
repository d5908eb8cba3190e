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


@pytest.mark.parametrize("content", [b'{"nodes": []}', b""])
def test_a_plain_file_is_read_as_it_is_through_a_link_too(content: bytes, model: Path, tmp_path: Path) -> None:
    model.write_bytes(content)
    (tmp_path / "link.json").symlink_to(model)
    assert read_content(model) == read_content(tmp_path / "link.json") == content


def test_a_gzipped_file_is_unpacked_under_any_name(model: Path) -> None:
    model.write_bytes(gzip.compress(b"[]") + gzip.compress(b"{}"))
    assert read_content(model) == b"[]{}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent.json", "{path} cannot be read: No such file or directory"),
        ("", "{path} is a directory; give the path of a model file"),
        ("loop", os.strerror(errno.ELOOP)),
        ("pipe", "{path} is not a regular file"),
        ("/dev/zero", "/dev/zero is not a regular file"),
        ("net\0.json", "not a path"),
        ("n" * 5_000, os.strerror(errno.ENAMETOOLONG)),
    ],
)
def test_what_is_no_file_is_refused_without_waiting_and_has_no_digest(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / name
    assert said.format(path=path) in refusal(path)
    with pytest.raises(UnreadableModelError):
        content_sha256(path)


def test_an_unreadable_file_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(path: Path, *_: int) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    # The superuser, who may run these tests, can read everything.
    monkeypatch.setattr(os, "open", forbid)
    assert refusal(model) == f"{model} cannot be read: Permission denied"


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
    model.write_bytes(b'{"nodes": [1]}')
    assert content_sha256(model) == hashlib.sha256(b'{"nodes": [1]}').hexdigest()


def test_a_file_that_unpacks_without_end_has_no_digest(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_MOST_UNPACKED_BYTES", 1000)
    model.write_bytes(gzip.compress(bytes(5000)))
    with pytest.raises(UnreadableModelError, match="unpacks to more than 2 GiB: not a model file"):
        content_sha256(model)
