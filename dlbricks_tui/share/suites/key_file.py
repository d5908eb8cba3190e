"""The secrets of the owner of a suite: the seed of its ids, and the key, which says what they stand for.

The key stays in the owner's data folder.
"""

import hashlib
import hmac
import json
import os
import random
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from dlbricks_tui.files import open_regular, parsed_document
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.codec import ReadingRules, decoded
from dlbricks_tui.models.graph import Level
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.suites.suite_files import ID_DIGITS, is_id

FORMAT = "dlbricks-suite-key"
SCHEMA = 2
_OWNER_ONLY = 0o600
_MOST_BYTES = 1 << 30


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
    document = {"format": FORMAT, "schema": SCHEMA, **asdict(key), "decoys": sorted(key.decoys)}
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
        key = decoded(SuiteKey, parsed_document(content, FORMAT, SCHEMA), ReadingRules(exact=True))
        if not all(map(is_id, (key.suite, *key.meanings, *key.decoys))):
            raise ValueError("has wrong ids")
    except ValueError as error:
        raise ShareError(f"{path} {error}") from None
    return key
