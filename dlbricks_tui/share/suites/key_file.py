"""The owner's key to a suite, which says what its random ids stand for. It stays in the owner's data folder."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.regular_files import open_regular
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.suites.manifest import is_id
from dlbricks_tui.untrusted_json import check_fields, parsed_document

FORMAT = "dlbricks-suite-key"
SCHEMA = 2
_OWNER_ONLY = 0o600
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Meaning:
    """The brick and context that an id stands for, the brick's canonical form, and the framework that runs it."""

    brick: str
    context: str
    canonical: str
    framework: str


@dataclass(frozen=True, slots=True)
class SuiteKey:
    """The key to a suite, which is also identified by the hash of its manifest; the ids of decoys have no meaning."""

    suite: str
    manifest_sha256: str
    level: Level
    models: tuple[str, ...]
    meanings: Mapping[str, Meaning]
    decoys: frozenset[str]


def key_path(data: DataFolder, suite: str) -> Path:
    return data.path / "suites" / f"{suite}.key.json"


def write_key(path: Path, key: SuiteKey) -> None:
    """Write a key that only its owner can read."""
    document = {
        "format": FORMAT,
        "schema": SCHEMA,
        "suite": key.suite,
        "manifest_sha256": key.manifest_sha256,
        "level": key.level.value,
        "models": list(key.models),
        "meanings": {name: asdict(meaning) for name, meaning in key.meanings.items()},
        "decoys": sorted(key.decoys),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The mode is set before the content is written, and no other key is overwritten.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), _OWNER_ONLY)
            file.write(json.dumps(document) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise ShareError(
            f"{path} exists: the same suite was exported before; give another --seed, or remove that file"
        ) from None
    except OSError as error:
        raise ShareError(f"cannot write {path}: {error.strerror}; nothing was exported") from error


def read_key(path: Path) -> SuiteKey:
    try:
        with open_regular(path) as file:
            content = file.read(_MOST_BYTES)
    except FileNotFoundError:
        raise ShareError(
            f"there is no key {path}: results can be imported where the suite was exported, or with "
            "`dlbricks suite import --key FILE`"
        ) from None
    except OSError as error:
        raise ShareError(f"cannot read {path}: {error.strerror}") from error
    try:
        return _key(parsed_document(content, FORMAT, SCHEMA))
    except (ValueError, TypeError) as error:
        raise ShareError(f"{path} {error}") from None


def _key(document: Mapping[str, Any]) -> SuiteKey:
    check_fields(
        document,
        {"suite": str, "manifest_sha256": str, "level": str, "models": list, "meanings": dict, "decoys": list},
    )
    meanings = document["meanings"]
    for meaning in meanings.values():
        check_fields(meaning, {"brick": str, "context": str, "canonical": str, "framework": str})
    if not all(map(is_id, (document["suite"], *meanings, *document["decoys"]))):
        raise ValueError("has wrong ids")
    return SuiteKey(
        document["suite"],
        document["manifest_sha256"],
        Level(document["level"]),
        tuple(map(str, document["models"])),
        {name: Meaning(**meaning) for name, meaning in meanings.items()},
        frozenset(document["decoys"]),
    )
