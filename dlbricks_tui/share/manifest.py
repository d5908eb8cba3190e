"""What a suite says of itself: which bricks there are, and what their files hold."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from dlbricks_tui.bricks.coldness import Caches
from dlbricks_tui.models.graph import Level
from dlbricks_tui.share.documents import check_fields, parsed_document
from dlbricks_tui.share.errors import BrokenSuiteError
from dlbricks_tui.share.seed import ID_DIGITS

MANIFEST = "suite.json"
FORMAT = "dlbricks-suite"
SCHEMA = 3
# Ten times the bricks of the fifty models of the paper, and far more than any network file of a brick holds.
MOST_BRICKS = 50_000
MOST_NETWORK_BYTES = 4 * 2**20
MOST_MANIFEST_BYTES = 32 * 2**20
_MOST_LAYERS = 10_000
_ID = re.compile(rf"[0-9a-f]{{{ID_DIGITS}}}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SuiteBrick:
    """A brick under its random id: how many of the last layers in its file are its own, and size and hash of that.

    What the caches hold of it when it is measured is as they may hold it in its model.
    """

    id: str
    layers: int
    caches: Caches
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A suite: its id, the level of its bricks, and the bricks in the order of their ids."""

    suite: str
    level: Level
    bricks: tuple[SuiteBrick, ...]

    def text(self) -> str:
        """The file: one brick a line."""
        head = {"format": FORMAT, "schema": SCHEMA, "suite": self.suite, "level": self.level.value}
        lines = [f"{json.dumps(name)}:{json.dumps(value)}" for name, value in head.items()]
        bricks = ",\n".join(json.dumps(asdict(brick), separators=(",", ":")) for brick in self.bricks)
        return "{\n" + ",\n".join(lines) + f',\n"bricks":[\n{bricks}\n]\n' + "}\n"


def is_id(value: object) -> bool:
    """Whether it looks like an id of a suite or of a brick in it, which no path does."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def sha256(content: bytes) -> str:
    """The hash by which files are told apart."""
    return hashlib.sha256(content).hexdigest()


def read_manifest(content: bytes, where: str) -> Manifest:
    """The manifest in a file, or what is wrong with it; `where` names the file."""
    try:
        document = parsed_document(content, FORMAT, SCHEMA)
        check_fields(document, {"suite": str, "level": str, "bricks": list})
        if not is_id(document["suite"]) or document["level"] not in [level.value for level in Level]:
            raise ValueError("has a wrong id or level")
        bricks = document["bricks"]
        if not 1 <= len(bricks) <= MOST_BRICKS:
            raise ValueError(f"has {len(bricks):,} bricks; a suite has 1 to {MOST_BRICKS:,}")
        found = tuple(_brick(number, raw) for number, raw in enumerate(bricks))
        _refuse_disorder(found)
        return Manifest(document["suite"], Level(document["level"]), found)
    except ValueError as error:
        raise BrokenSuiteError(f"{where} {error}") from None


def _brick(number: int, raw: Any) -> SuiteBrick:
    try:
        check_fields(raw, {"id": str, "layers": int, "caches": str, "bytes": int, "sha256": str})
    except ValueError as error:
        raise ValueError(f"has a brick {number} that {error}") from None
    if not is_id(raw["id"]):
        raise ValueError(f"has a brick {number} whose id {raw['id'][:40]!r} is not {ID_DIGITS} digits of 0-9 and a-f")
    if not _SHA256.fullmatch(raw["sha256"]):
        raise ValueError(f"has a brick {number} without a hash")
    if not 1 <= raw["layers"] <= _MOST_LAYERS or not 1 <= raw["bytes"] <= MOST_NETWORK_BYTES:
        raise ValueError(f"has a brick {number} of {raw['layers']} layers and {raw['bytes']} bytes, which cannot be")
    if raw["caches"] not in [it.value for it in Caches]:
        raise ValueError(f"has a brick {number} of which caches hold {raw['caches'][:40]!r}, which nobody knows")
    return SuiteBrick(**{**raw, "caches": Caches(raw["caches"])})


def _refuse_disorder(bricks: Sequence[SuiteBrick]) -> None:
    ids = [brick.id for brick in bricks]
    if any(one >= other for one, other in pairwise(ids)):
        raise ValueError("has bricks that are not in the order of their ids, or two of one id")
