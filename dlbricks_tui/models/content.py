"""Reading model files: their bytes, and the pause of Python's collector meanwhile."""

import gc
import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, cast

from dlbricks_tui.files import NotRegularError, open_regular
from dlbricks_tui.models.errors import UnreadableModelError

# Five times the size of an unrolled network of 18,000 nodes. The limit protects the memory.
MOST_BYTES = 32 * 2**20
# Characters. Names occur in many places, and each copy takes memory.
LONGEST_NAME = 2**16
GZIP_MAGIC = b"\x1f\x8b"
# The largest model file has 2 GiB: protobuf allows no more.
_MOST_UNPACKED_BYTES = 2**31
_CHUNK = 2**20
# The characters by which a text is recognised, and named in a message.
_TOLD_OF_TEXT = 40
_LFS_POINTER = "version https://git-lfs"


def read_content(path: Path, most_bytes: int | None = None, what_it_is: str = "a symbol file") -> bytes:
    """Return the content of a model file, unpacked if it is gzipped. Refuse everything but a readable regular file."""
    most_bytes = most_bytes or MOST_BYTES
    with open_model_file(path) as file:
        source, packed = _unpacked(file)
        # A large file is refused unread: a sparse file could fill the memory.
        too_large = not packed and os.fstat(file.fileno()).st_size > most_bytes
        content = b"" if too_large else source.read(most_bytes + 1)
    if too_large or len(content) > most_bytes:
        held = "unpacks to" if packed else "holds"
        raise UnreadableModelError(f"{path} {held} more than {most_bytes // 2**20} MiB: not {what_it_is}")
    return content


def refuse_no_model(content: bytes | str, where: str) -> None:
    """Raise UnreadableModelError for an empty file, and for text: ONNX files are no text, and symbol files are JSON."""
    begin = content[:_TOLD_OF_TEXT]
    words = begin if isinstance(begin, str) else begin.decode("utf-8", errors="replace")
    words = words.removesuffix("\N{REPLACEMENT CHARACTER}").strip()
    if not content.strip():
        raise UnreadableModelError(f"{where}: the file is empty; download or export the model again")
    if words.startswith(_LFS_POINTER):
        raise UnreadableModelError(
            f"{where}: the file is a pointer of Git LFS, not the model: `git lfs pull` in its folder fetches the model"
        )
    told = " ".join(words.split())
    if told.isprintable() and "\N{REPLACEMENT CHARACTER}" not in told and not told.startswith(("{", "[")):
        more = "..." if len(content) > _TOLD_OF_TEXT else ""
        raise UnreadableModelError(f"{where}: it is text, not a model: it begins with '{told}{more}'")


def content_sha256(path: Path) -> str:
    """Return the SHA-256 of a model file, unpacked if it is gzipped, so that both forms of a file are the same model.

    Files that hold the weights of an ONNX model beside it do not count.
    """
    with open_model_file(path) as file:
        held = os.fstat(file.fileno())
    return _sha256(path.absolute(), held.st_mtime_ns, held.st_size)


# Of a large file it takes seconds, and a run with several runtimes asks for each of them.
@lru_cache(maxsize=1024)
def _sha256(path: Path, _modified_ns: int, _size: int) -> str:
    digest, unpacked_bytes = hashlib.sha256(), 0
    with open_model_file(path) as file:
        source, packed = _unpacked(file)
        while chunk := source.read(_CHUNK):
            unpacked_bytes += len(chunk)
            if unpacked_bytes > _MOST_UNPACKED_BYTES:
                held = "unpacks to" if packed else "holds"
                raise UnreadableModelError(f"{path} {held} more than 2 GiB: not a model file")
            digest.update(chunk)
    return digest.hexdigest()


def digest_of(path: Path, algorithm: str) -> str:
    """Return the digest of a file as it stands."""
    digest = hashlib.new(algorithm)
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _unpacked(file: IO[bytes]) -> tuple[IO[bytes], bool]:
    """Return a file as its content is read, and whether it is gzipped."""
    packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    file.seek(0)
    return (cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file), packed


@contextmanager
def open_model_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file; raise UnreadableModelError if that fails."""
    try:
        with open_regular(path) as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableModelError(f"{path} is broken gzip data: {error}") from None
    except NotRegularError as error:
        raise UnreadableModelError(f"{path} is {error.what}; give the path of a model file") from None
    except OSError as error:
        raise UnreadableModelError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        # The path contains a NUL byte.
        raise UnreadableModelError(f"{str(path)!r} is not a path: {error}") from None


@contextmanager
def without_cycle_search() -> Iterator[None]:
    """Pause Python's search for reference cycles, which takes as long as creating the objects of a large model.

    Models hold no cycles, so unused objects are freed all the same.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
