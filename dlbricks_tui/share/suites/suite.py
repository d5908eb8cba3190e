"""A suite: its ids, its manifest and its folder, which is written whole or not at all.

Reading follows no link and opens nothing outside of the folder.
"""

import hashlib
import hmac
import json
import os
import random
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.errors import BrokenBrickError, BrokenSuiteError, ShareError
from dlbricks_tui.untrusted_json import check_fields, parsed_document

# The format of the layers in a suite.
SUITE_FORMAT = Format.MXNET


def refuse_other_formats(sources: Iterable[ModelSource]) -> None:
    """Raise ShareError for models that a suite cannot hold."""
    for source in sources:
        if source.format is not SUITE_FORMAT:
            raise ShareError(
                f"{source.name} is an {source.format.value} model; a suite can hold only {SUITE_FORMAT.value} models"
            )


def refuse_other_runtimes(runtime: Runtime) -> None:
    """Raise ShareError for a runtime that cannot run a suite."""
    form = runtime.traits.format
    if form is not SUITE_FORMAT:
        raise ShareError(
            f"runtime {runtime.name} runs {form.value} models, and a suite holds layers of {SUITE_FORMAT.value}; "
            "name another --runtime, or none"
        )


ID_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Seed:
    """A secret from which ids and random choices are derived; none of them reveals another."""

    secret: bytes

    def id_of(self, *what: str) -> str:
        """Return 32 random hexadecimal digits, always the same for the same words."""
        return self._digest("id", *what)[:ID_DIGITS]

    def chance(self, purpose: str) -> random.Random:
        """Return a generator of random choices."""
        return random.Random(int(self._digest("chance", purpose), 16))

    def _digest(self, *what: str) -> str:
        # With lengths: two different lists of texts give different messages.
        message = b"".join(b"%d:%b" % (len(text), text) for text in (part.encode() for part in what))
        return hmac.new(self.secret, message, hashlib.sha256).hexdigest()


def fresh_seed() -> Seed:
    return Seed(secrets.token_bytes(32))


def seed_of(text: str) -> Seed:
    """Return the seed that the user has chosen."""
    return Seed(hashlib.sha256(text.encode()).digest())


MANIFEST = "suite.json"
FORMAT = "dlbricks-suite"
SCHEMA = 1
# Ten times the bricks of the paper's fifty models, and far more than any network file of a brick.
MOST_BRICKS = 50_000
MOST_NETWORK_BYTES = 4 * 2**20
MOST_MANIFEST_BYTES = 32 * 2**20
_MOST_LAYERS = 10_000
_ID = re.compile(rf"[0-9a-f]{{{ID_DIGITS}}}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SuiteBrick:
    """A brick under its random id.

    `layers` is the number of the last layers in its file that belong to it; the others are its context. A `cold`
    brick is timed with its weights in no cache. `bytes` and `sha256` are of its file.
    """

    id: str
    layers: int
    cold: bool
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The id of a suite, the level of its bricks, and the bricks in the order of their ids."""

    suite: str
    level: Level
    bricks: tuple[SuiteBrick, ...]

    def text(self) -> str:
        """Return the file's text, with one brick per line."""
        head = {"format": FORMAT, "schema": SCHEMA, "suite": self.suite, "level": self.level.value}
        lines = [f"{json.dumps(name)}:{json.dumps(value)}" for name, value in head.items()]
        bricks = ",\n".join(json.dumps(asdict(brick), separators=(",", ":")) for brick in self.bricks)
        return "{\n" + ",\n".join(lines) + f',\n"bricks":[\n{bricks}\n]\n' + "}\n"


def is_id(value: object) -> bool:
    """Return True for an id of a suite or brick; an id is never a path."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_manifest(content: bytes, where: str) -> Manifest:
    """Return the manifest in a file; `where` names the file in errors."""
    try:
        document = parsed_document(content, FORMAT, SCHEMA)
        check_fields(document, {"suite": str, "level": str, "bricks": list})
        if not is_id(document["suite"]) or document["level"] not in [level.value for level in Level]:
            raise ValueError("has a wrong id or level")
        bricks = document["bricks"]
        if not 1 <= len(bricks) <= MOST_BRICKS:
            raise ValueError(f"has {len(bricks):,} bricks; a suite has 1 to {MOST_BRICKS:,}")
        found = tuple(_brick(number, raw) for number, raw in enumerate(bricks))
        if any(one.id >= other.id for one, other in pairwise(found)):
            raise ValueError("has bricks that are not in the order of their ids, or two of one id")
        return Manifest(document["suite"], Level(document["level"]), found)
    except ValueError as error:
        raise BrokenSuiteError(f"{where} {error}") from None


def _brick(number: int, raw: Any) -> SuiteBrick:
    try:
        check_fields(raw, {"id": str, "layers": int, "cold": bool, "bytes": int, "sha256": str})
    except ValueError as error:
        raise ValueError(f"has a brick {number} that {error}") from None
    if not is_id(raw["id"]):
        raise ValueError(f"has a brick {number} whose id {raw['id'][:40]!r} is not {ID_DIGITS} digits of 0-9 and a-f")
    if not _SHA256.fullmatch(raw["sha256"]):
        raise ValueError(f"has a brick {number} without a hash")
    if not 1 <= raw["layers"] <= _MOST_LAYERS or not 1 <= raw["bytes"] <= MOST_NETWORK_BYTES:
        raise ValueError(
            f"has a brick {number} of {raw['layers']} layers and {raw['bytes']} bytes, which is impossible"
        )
    return SuiteBrick(**raw)


NETWORKS = "bricks"
_SUFFIX = "-symbol.json"
# The time of all files, because their own would reveal an order: the first second of 2000.
_WHEN = 946_684_800


class SuiteFolder:
    """The folder of a suite, with a checked manifest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        content = _content(path, (), MANIFEST, MOST_MANIFEST_BYTES)
        self.manifest = read_manifest(content, str(path / MANIFEST))
        self.sha256 = sha256(content)

    def network(self, brick: SuiteBrick) -> bytes:
        """Return the symbol file of a brick, checked against the manifest."""
        name = network_name(brick)
        try:
            content = _content(self.path, (NETWORKS,), name, brick.bytes)
        except BrokenSuiteError as error:
            raise BrokenBrickError(str(error)) from None
        if len(content) != brick.bytes or sha256(content) != brick.sha256:
            raise BrokenBrickError(f"{name} is not the file that the manifest describes")
        return content


def network_name(brick: SuiteBrick) -> str:
    return f"{brick.id}{_SUFFIX}"


def write_suite(path: Path, manifest: Manifest, networks: Mapping[str, bytes]) -> None:
    """Write a suite into a new or empty folder; `networks` are by brick id."""
    draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}.new")
    try:
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise ShareError(f"{path} exists already; name a new folder")
        (draft / NETWORKS).mkdir(parents=True)
        for brick in manifest.bricks:
            _write(draft / NETWORKS / network_name(brick), networks[brick.id])
        _write(draft / MANIFEST, manifest.text().encode())
        for folder in (draft / NETWORKS, draft):
            os.utime(folder, (_WHEN, _WHEN))
        draft.replace(path)
    except OSError as error:
        raise ShareError(f"cannot write {path}: {error.strerror}; nothing was exported") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    os.utime(path, (_WHEN, _WHEN))


def _content(path: Path, within: tuple[str, ...], name: str, most_bytes: int) -> bytes:
    """Return the content of a regular file in the folder; refuse links and larger files."""
    where = path.joinpath(*within, name)
    handles: list[int] = []
    try:
        handles.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY))
        for part in within:
            handles.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handles[-1]))
        # Opening a pipe would block.
        handles.append(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=handles[-1]))
        found = os.fstat(handles[-1])
        if not stat.S_ISREG(found.st_mode):
            raise BrokenSuiteError(f"{where} is not a regular file")
        if found.st_size > most_bytes:
            raise BrokenSuiteError(f"{where} holds {found.st_size:,} bytes, and at most {most_bytes:,} are allowed")
        with os.fdopen(handles.pop(), "rb") as file:
            return file.read(most_bytes + 1)
    except FileNotFoundError:
        raise BrokenSuiteError(f"{where} is missing; give the folder that `dlbricks suite export` wrote") from None
    except NotADirectoryError:
        raise BrokenSuiteError(f"{where}: this is not a folder, or it is a link") from None
    except OSError as error:
        # ELOOP: it is a link, which is not followed.
        raise BrokenSuiteError(f"{where} cannot be read, or is a link: {error.strerror}") from None
    finally:
        for handle in handles:
            os.close(handle)
