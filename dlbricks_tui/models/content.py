"""The bytes of a model file, whatever it turns out to be."""

import gzip
import stat
import zlib
from pathlib import Path

from dlbricks_tui.models.errors import UnreadableModelError

# Ten times an unrolled network of 18,000 nodes; a file that unpacks to more is refused before it fills the memory.
MOST_BYTES = 64 * 2**20
GZIP_MAGIC = b"\x1f\x8b"


def read_content(path: Path, most_bytes: int | None = None, what_it_is: str = "a symbol file") -> bytes:
    """The content of a model file, unpacked where it is gzipped; anything but a readable regular file is refused."""
    most_bytes = most_bytes or MOST_BYTES
    try:
        # Asked before it is opened: opening a pipe would wait for somebody to write to it.
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            what = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
            raise UnreadableModelError(f"{path} is {what}; give the path of a model file")
        with path.open("rb") as file:
            packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            file.seek(0)
            with gzip.GzipFile(fileobj=file) if packed else file as source:
                content = source.read(most_bytes + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableModelError(f"{path} is broken gzip data: {error}") from None
    except OSError as error:
        raise UnreadableModelError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        # A path with a NUL byte in it.
        raise UnreadableModelError(f"{str(path)!r} is no path: {error}") from None
    if len(content) > most_bytes:
        held = "unpacks to" if packed else "holds"
        raise UnreadableModelError(f"{path} {held} more than {most_bytes // 2**20} MiB: not {what_it_is}")
    return content
