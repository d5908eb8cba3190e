"""The files of a suite: a manifest, and a network for each brick under a random id, in a folder or a zip file.

They are written whole or not at all. Reading follows no link and opens nothing outside of the suite. The key, which
says what the ids stand for, stays in the owner's data folder.
"""

import hashlib
import hmac
import io
import json
import os
import random
import re
import secrets
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from dlbricks_tui.files import check_fields, open_regular, parsed_document, write_named
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.codec import ReadingRules, decoded
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import TRAITS, Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.errors import BrokenBrickError, BrokenSuiteError, ShareError

# Hexadecimal digits of an id.
ID_DIGITS = 32
MANIFEST = "suite.json"
FORMAT = "dlbricks-suite"
SCHEMA = 2
# Ten times the bricks of the paper's fifty models, and far more than any network file of a brick.
MOST_BRICKS = 50_000
MOST_NETWORK_BYTES = 4 * 2**20
MOST_MANIFEST_BYTES = 32 * 2**20
_ID = re.compile(rf"[0-9a-f]{{{ID_DIGITS}}}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
NETWORKS = "bricks"
ARCHIVE_SUFFIX = ".dlbricks"
_SUFFIXES: Mapping[Format, str] = {Format.MXNET: "-symbol.json", Format.ONNX: ".onnx"}
_MOST_ARCHIVE_BYTES = 256 * 2**20
# The list of contents takes ten times its size in memory. The entry of a brick has about 100 bytes.
_MOST_CONTENTS_BYTES = 8 * 2**20
# The end of a zip file without a comment, and with less than 65,535 files.
_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE, _END_64_SIGNATURE, _END_64_BYTES = b"PK\5\6", b"PK\6\7", 20
# The time of all files, because their own would reveal an order: the first second of 2000.
_WHEN = 946_684_800
_ZIP_DATE = (2000, 1, 1, 0, 0, 0)
_ENCRYPTED = 1


@dataclass(frozen=True, slots=True)
class SuiteBrick:
    """A brick under its random id.

    It is one of the layers in its file, which does not tell which one; `layers` is always 1. The weights of a `cold`
    brick are in no cache when it runs. `bytes` and `sha256` are of its file.
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
        document = {"format": FORMAT, "schema": SCHEMA, **asdict(self)}
        bricks = ",\n".join(json.dumps(brick, separators=(",", ":")) for brick in document.pop("bricks"))
        head = ",\n".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in document.items())
        return "{\n" + head + f',\n"bricks":[\n{bricks}\n]\n' + "}\n"


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
    if raw["layers"] != 1:
        raise ValueError(f"has bricks of {raw['layers']} layers, as earlier versions of dlbricks wrote: export it anew")
    if not 1 <= raw["bytes"] <= MOST_NETWORK_BYTES:
        raise ValueError(f"has a brick {number} of {raw['bytes']} bytes, which is impossible")
    return SuiteBrick(**{**raw, "format": Format(raw["format"])})


class Suite:
    """A suite with a checked manifest."""

    def __init__(self, path: Path, where: str) -> None:
        self.path = path
        manifest = self._read(MANIFEST, MOST_MANIFEST_BYTES)
        self.manifest = read_manifest(manifest, where)
        self.sha256 = sha256(manifest)

    def network(self, brick: SuiteBrick) -> bytes:
        """Return the file of a brick, checked against the manifest."""
        name = network_name(brick)
        try:
            content = self._read(f"{NETWORKS}/{name}", brick.bytes)
        except BrokenSuiteError as error:
            raise BrokenBrickError(str(error)) from None
        if len(content) != brick.bytes or sha256(content) != brick.sha256:
            raise BrokenBrickError(f"{name} is not the file that the manifest describes")
        return content

    def _read(self, name: str, most_bytes: int) -> bytes:
        raise NotImplementedError


def open_suite(path: Path) -> Suite:
    """Open a suite in a folder or in a zip file."""
    return SuiteArchive(path) if path.is_file() else SuiteFolder(path)


class SuiteFolder(Suite):
    """A suite in a folder."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, str(path / MANIFEST))

    def _read(self, name: str, most_bytes: int) -> bytes:
        """Return the content of a regular file in the folder; refuse links and larger files."""
        where, (*folders, file_name) = self.path / name, name.split("/")
        handles: list[int] = []
        try:
            handles.append(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY))
            for folder in folders:
                handles.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handles[-1]))
            # Opening a pipe would block.
            handles.append(os.open(file_name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=handles[-1]))
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


class SuiteArchive(Suite):
    """A suite in a zip file, which is read into the memory; nothing of it is unpacked to a disk."""

    def __init__(self, path: Path) -> None:
        try:
            with open_regular(path) as file:
                if os.fstat(file.fileno()).st_size > _MOST_ARCHIVE_BYTES:
                    raise BrokenSuiteError(f"{path} holds more than {_MOST_ARCHIVE_BYTES >> 20} MiB")
                content = file.read(_MOST_ARCHIVE_BYTES)
        except OSError as error:
            raise BrokenSuiteError(f"cannot read {path}: {error.strerror}") from None
        try:
            _refuse_other_archives(content, path)
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except _NO_ZIP as error:
            raise BrokenSuiteError(
                f"{path} is not a suite, or is damaged ({error}); give the file or folder that "
                "`dlbricks suite export` wrote"
            ) from None
        self._members = {member.filename: member for member in self._zip.infolist()}
        if len(self._members) != len(self._zip.infolist()):
            raise BrokenSuiteError(f"{path} has two files of one name")
        super().__init__(path, f"{MANIFEST} in {path}")
        described = {f"{NETWORKS}/{network_name(brick)}" for brick in self.manifest.bricks}
        for other in self._members.keys() - described - {MANIFEST, f"{NETWORKS}/"}:
            raise BrokenSuiteError(f"{path} holds {other[:80]!r}, which its manifest does not describe")

    def _read(self, name: str, most_bytes: int) -> bytes:
        member = self._members.get(name)
        if member is None:
            raise BrokenSuiteError(f"{name} is missing in {self.path}")
        if member.flag_bits & _ENCRYPTED or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BrokenSuiteError(f"{name} in {self.path} is encrypted, or packed in an unusual way")
        try:
            with self._zip.open(member) as file:
                # Whatever size the list of contents tells.
                content = file.read(most_bytes + 1)
        except _NO_ZIP as error:
            raise BrokenSuiteError(f"{name} in {self.path} cannot be read: {error}") from None
        if len(content) > most_bytes:
            raise BrokenSuiteError(f"{name} in {self.path} holds more than {most_bytes:,} bytes")
        return content


_NO_ZIP = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


def _refuse_other_archives(content: bytes, path: Path) -> None:
    """Refuse a zip file with a huge list of contents before it is read, and parts that we do not write."""
    end = content[-_END.size - _END_64_BYTES :]
    if len(end) < _END.size or end[-_END.size :][:4] != _END_SIGNATURE or end.startswith(_END_64_SIGNATURE):
        raise zipfile.BadZipFile("its end is missing, or is another one than ours")
    contents_bytes = _END.unpack(end[-_END.size :])[5]
    if contents_bytes > _MOST_CONTENTS_BYTES:
        raise BrokenSuiteError(f"{path} has a list of contents of {contents_bytes:,} bytes, more than any suite")


def network_name(brick: SuiteBrick) -> str:
    """Return the name of a brick's file."""
    return f"{brick.id}{_SUFFIXES[brick.format]}"


def is_archive(path: Path) -> bool:
    """Return true if a suite of this name is written as one file."""
    return path.suffix in (ARCHIVE_SUFFIX, ".zip")


def refuse_existing(path: Path) -> None:
    """Raise ShareError unless a suite can be written there: into a new file, or a new or empty folder."""
    if is_archive(path) and not path.absolute().parent.is_dir():
        raise ShareError(f"cannot write {path}: there is no folder {path.parent}; nothing was exported")
    try:
        free = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    except OSError as error:
        raise ShareError(f"cannot write {path}: {error.strerror}; nothing was exported") from error
    if not free:
        raise ShareError(f"{path} exists already; name a new file or folder")
    # Told before bricks are checked, which may take minutes.
    there = next(it for it in (path.absolute(), *path.absolute().parents) if it.exists())
    if not os.access(there, os.W_OK):
        raise ShareError(f"cannot write {path}: this user may not write to {there}; nothing was exported")


def write_suite(path: Path, manifest: Manifest, networks: Mapping[str, bytes]) -> None:
    """Write a suite into a new or empty folder, or a new zip file; `networks` are by brick id."""
    files = {f"{NETWORKS}/{network_name(brick)}": networks[brick.id] for brick in manifest.bricks}
    files[MANIFEST] = manifest.text().encode()
    try:
        refuse_existing(path)
        if is_archive(path):
            write_named(path, lambda file: _write_archive(file, files))
        else:
            _write_folder(path, files)
    except OSError as error:
        raise ShareError(f"cannot write {path}: {error.strerror}; nothing was exported") from error


def _write_archive(file: BinaryIO, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            # Nothing of this host: no date, no owner.
            member = zipfile.ZipInfo(name, _ZIP_DATE)
            member.create_system = 3
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)


def _write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    draft = path.with_name(f"{path.name[:40]}.{os.urandom(4).hex()}.new")
    try:
        (draft / NETWORKS).mkdir(parents=True)
        for name, content in files.items():
            (draft / name).write_bytes(content)
            os.utime(draft / name, (_WHEN, _WHEN))
        for folder in (draft / NETWORKS, draft):
            os.utime(folder, (_WHEN, _WHEN))
        draft.replace(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


KEY_FORMAT = "dlbricks-suite-key"
KEY_SCHEMA = 2
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
    document = {"format": KEY_FORMAT, "schema": KEY_SCHEMA, **asdict(key), "decoys": sorted(key.decoys)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The mode is set before the content is written, and no other key is overwritten.
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        try:
            with os.fdopen(made, "w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), _OWNER_ONLY)
                file.write(json.dumps(document) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            # A part of a key would stand in the way of the next export.
            path.unlink()
            raise
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
        key = decoded(SuiteKey, parsed_document(content, KEY_FORMAT, KEY_SCHEMA), ReadingRules(exact=True))
        if not all(map(is_id, (key.suite, *key.meanings, *key.decoys))):
            raise ValueError("has wrong ids")
    except ValueError as error:
        raise ShareError(f"{path} {error}") from None
    return key
