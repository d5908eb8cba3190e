"""The manifest of a suite: what it is for, and its bricks under random ids."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import TRAITS, Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.errors import BrokenSuiteError
from dlbricks_tui.share.suites.seed import ID_DIGITS
from dlbricks_tui.untrusted_json import check_fields, parsed_document

MANIFEST = "suite.json"
FORMAT = "dlbricks-suite"
SCHEMA = 2
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

    `layers` is the number of the last layers in its file that belong to it; the others are its context. For ONNX it is
    1, and the file does not tell which layer. The weights of a `cold` brick are in no cache when it runs. `bytes` and
    `sha256` are of its file.
    """

    id: str
    format: Format
    layers: int
    cold: bool
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The id of a suite, how and by which frameworks it is to be run, and its bricks in the order of their ids.

    Layers are fused anew where a suite runs: another framework would make other bricks of them.
    """

    suite: str
    level: Level
    precision: Precision
    frameworks: tuple[str, ...]
    bricks: tuple[SuiteBrick, ...]

    def holds(self, form: Format) -> bool:
        """Return true if it has bricks of this format."""
        return any(brick.format is form for brick in self.bricks)

    def text(self) -> str:
        """Return the file's text, with one brick per line."""
        head = {
            "format": FORMAT,
            "schema": SCHEMA,
            "suite": self.suite,
            "level": self.level.value,
            "precision": self.precision.value,
            "frameworks": self.frameworks,
        }
        lines = [f"{json.dumps(name)}:{json.dumps(value)}" for name, value in head.items()]
        bricks = ",\n".join(json.dumps(asdict(brick), separators=(",", ":")) for brick in self.bricks)
        return "{\n" + ",\n".join(lines) + f',\n"bricks":[\n{bricks}\n]\n' + "}\n"


def is_id(value: object) -> bool:
    """Return True for an id of a suite or brick; an id is never a path."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def is_key(value: object) -> bool:
    """Return True for the key of a brick."""
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_manifest(content: bytes, where: str) -> Manifest:
    """Return the manifest in a file; `where` names the file in errors."""
    try:
        document = parsed_document(content, FORMAT, SCHEMA)
        check_fields(document, {"suite": str, "level": str, "precision": str, "frameworks": list, "bricks": list})
        if not is_id(document["suite"]) or document["level"] not in [level.value for level in Level]:
            raise ValueError("has a wrong id or level")
        if document["precision"] not in [precision.value for precision in Precision]:
            raise ValueError(f"is for the unknown precision {document['precision'][:20]!r}")
        frameworks = document["frameworks"]
        if not frameworks or not all(isinstance(name, str) and name in TRAITS for name in frameworks):
            raise ValueError("is for frameworks that this version does not know")
        bricks = document["bricks"]
        if not 1 <= len(bricks) <= MOST_BRICKS:
            raise ValueError(f"has {len(bricks):,} bricks; a suite has 1 to {MOST_BRICKS:,}")
        found = tuple(_brick(number, raw) for number, raw in enumerate(bricks))
        if any(one.id >= other.id for one, other in pairwise(found)):
            raise ValueError("has bricks that are not in the order of their ids, or two of one id")
        if {TRAITS[name].format for name in frameworks} != {brick.format for brick in found}:
            raise ValueError("has bricks of a format that none of its frameworks runs")
        level, precision = Level(document["level"]), Precision(document["precision"])
        return Manifest(document["suite"], level, precision, tuple(dict.fromkeys(frameworks)), found)
    except ValueError as error:
        raise BrokenSuiteError(f"{where} {error}") from None


def _brick(number: int, raw: Any) -> SuiteBrick:
    try:
        check_fields(raw, {"id": str, "format": str, "layers": int, "cold": bool, "bytes": int, "sha256": str})
    except ValueError as error:
        raise ValueError(f"has a brick {number} that {error}") from None
    if not is_id(raw["id"]):
        raise ValueError(f"has a brick {number} whose id {raw['id'][:40]!r} is not {ID_DIGITS} digits of 0-9 and a-f")
    if raw["format"] not in [form.value for form in Format]:
        raise ValueError(f"has a brick {number} of the unknown format {raw['format'][:20]!r}")
    if not _SHA256.fullmatch(raw["sha256"]):
        raise ValueError(f"has a brick {number} without a hash")
    if not 1 <= raw["layers"] <= _MOST_LAYERS or not 1 <= raw["bytes"] <= MOST_NETWORK_BYTES:
        raise ValueError(
            f"has a brick {number} of {raw['layers']} layers and {raw['bytes']} bytes, which is impossible"
        )
    return SuiteBrick(**{**raw, "format": Format(raw["format"])})
