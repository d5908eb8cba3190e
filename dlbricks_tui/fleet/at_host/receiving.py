"""Parcels on a host: stored under the hashes of their content, which is checked, as far as there is room for them."""

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from dlbricks_tui.atomic_write import replace_file
from dlbricks_tui.fleet.errors import HostError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.cache import remove_oldest
from dlbricks_tui.models.library import MODEL_SUFFIXES
from dlbricks_tui.regular_files import read_bytes

# Bytes of one parcel, and of all that a host keeps.
MOST_PARCEL_BYTES, MOST_KEPT_BYTES = 1 << 26, 1 << 30
_SHA256 = re.compile("[0-9a-f]{64}")


def missing(data_path: str, hashes: list[str]) -> list[str]:
    """Return the hashes of the parcels that this host lacks."""
    data = DataFolder(Path(data_path))
    return [sha256 for sha256 in hashes if parcel_file(data, sha256) is None]


def take(data_path: str, sha256: str, suffix: str, content: bytes) -> None:
    """Store a parcel; `suffix` is the ending of its file."""
    if suffix not in MODEL_SUFFIXES:
        raise HostError(f"a parcel is no model file: its ending is {suffix[:40]!r}")
    if len(content) > MOST_PARCEL_BYTES:
        raise HostError(f"a parcel has {len(content):,} bytes, and {MOST_PARCEL_BYTES:,} are the most")
    if hashlib.sha256(content).hexdigest() != sha256:
        raise HostError("a parcel arrived with another content than its hash says; send it again")
    folder = DataFolder(Path(data_path)).parcels
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_oldest([folder], MOST_KEPT_BYTES - len(content))
        replace_file(folder / f"{sha256}{suffix}", lambda file: file.write(content))
    except OSError as error:
        raise HostError(f"cannot write {folder}: {error.strerror}; free some space, or make it writable") from error


def parcel_file(data: DataFolder, sha256: str) -> Path | None:
    """Return the file of a parcel, and note its use; None if it is not here."""
    if not _SHA256.fullmatch(sha256):
        raise HostError(f"{sha256[:80]!r} is no hash of a parcel")
    for suffix in MODEL_SUFFIXES:
        path = data.parcels / f"{sha256}{suffix}"
        with suppress(OSError):
            # A damaged parcel is sent again.
            if hashlib.sha256(read_bytes(path)).hexdigest() == sha256:
                # Parcels that were used long ago are removed first.
                os.utime(path)
                return path
    return None
