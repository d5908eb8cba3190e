"""A suite as a folder: written whole or not at all, and read so that nothing outside of it is ever touched."""

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from dlbricks_tui.share.errors import BrokenBrickError, BrokenSuiteError, SuiteFileError
from dlbricks_tui.share.manifest import (
    MANIFEST,
    MOST_MANIFEST_BYTES,
    Manifest,
    SuiteBrick,
    read_manifest,
    sha256,
)

NETWORKS = "bricks"
_SUFFIX = "-symbol.json"
# The same for all files, as when each was written would tell in which order: the first second of 2000.
_WHEN = 946_684_800


class SuiteFolder:
    """A suite from elsewhere, whose manifest was found to be in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        content = _content(path, (), MANIFEST, MOST_MANIFEST_BYTES)
        self.manifest = read_manifest(content, str(path / MANIFEST))
        self.sha256 = sha256(content)

    def network(self, brick: SuiteBrick) -> bytes:
        """The symbol file of a brick, which is the one that the manifest speaks of."""
        name = network_name(brick)
        try:
            content = _content(self.path, (NETWORKS,), name, brick.bytes)
        except BrokenSuiteError as error:
            raise BrokenBrickError(str(error)) from None
        if len(content) != brick.bytes or sha256(content) != brick.sha256:
            raise BrokenBrickError(f"{name} is not the file that the manifest speaks of")
        return content


def network_name(brick: SuiteBrick) -> str:
    """What the file of a brick is called."""
    return f"{brick.id}{_SUFFIX}"


def write_suite(path: Path, manifest: Manifest, networks: Mapping[str, bytes]) -> None:
    """Writes a suite where nothing is yet; `networks` are by the ids of bricks."""
    draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}.new")
    try:
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise SuiteFileError(f"{path} exists already; name a folder that is to be made")
        (draft / NETWORKS).mkdir(parents=True)
        for brick in manifest.bricks:
            _write(draft / NETWORKS / network_name(brick), networks[brick.id])
        _write(draft / MANIFEST, manifest.text().encode())
        for folder in (draft / NETWORKS, draft):
            os.utime(folder, (_WHEN, _WHEN))
        draft.replace(path)
    except OSError as error:
        raise SuiteFileError(f"cannot write {path}: {error.strerror}; nothing was exported") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    os.utime(path, (_WHEN, _WHEN))


def _content(path: Path, within: tuple[str, ...], name: str, most_bytes: int) -> bytes:
    """A regular file of the folder, of no more than so many bytes; nothing in the folder may be a link."""
    where = path.joinpath(*within, name)
    handles: list[int] = []
    try:
        handles.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY))
        for part in within:
            handles.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handles[-1]))
        # A pipe would keep whoever opens it waiting.
        handles.append(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=handles[-1]))
        found = os.fstat(handles[-1])
        if not stat.S_ISREG(found.st_mode):
            raise BrokenSuiteError(f"{where} is not a regular file")
        if found.st_size > most_bytes:
            raise BrokenSuiteError(f"{where} holds {found.st_size:,} bytes, and {most_bytes:,} at most were expected")
        with os.fdopen(handles.pop(), "rb") as file:
            return file.read(most_bytes + 1)
    except FileNotFoundError:
        raise BrokenSuiteError(
            f"{where} is missing; give the folder that `dlbricks suite export` has written"
        ) from None
    except NotADirectoryError:
        raise BrokenSuiteError(f"{where}: what should be a folder is none, or a link") from None
    except OSError as error:
        # By ELOOP the system says that it is a link, which it does not follow.
        raise BrokenSuiteError(f"{where} cannot be read, or is a link: {error.strerror}") from None
    finally:
        for handle in handles:
            os.close(handle)
