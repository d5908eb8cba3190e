"""Errors of the store; each message says what to do."""

import errno
from pathlib import Path

from dlbricks_tui.errors import UserError

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StoreError(UserError):
    """The store cannot do what was asked."""


class OtherVersionError(StoreError):
    """A store or a file of results that another version of dlbricks wrote."""


def written_before_0_2(path: Path, cure: str) -> OtherVersionError:
    """Return the error for a file of an unreleased version."""
    return OtherVersionError(
        f"{path} was written by a dlbricks before version 0.2.0, which this version cannot read; nothing was changed: "
        f"{cure}"
    )


def written_by_newer(path: Path, schema: int, known: int) -> OtherVersionError:
    """Return the error for a file of a newer version."""
    return OtherVersionError(
        f"{path} was written by a newer dlbricks (schema {schema}, this version reads {known}); nothing was changed: "
        "update dlbricks, or choose another data folder with --data-dir"
    )


class NoRoomError(StoreError):
    """The disk of the store is full, or a quota is used up."""


class StoreBusyError(StoreError):
    """Another process keeps the store locked."""


class DamagedResultError(StoreError):
    """A result in the index that can no longer be read."""


class QueryError(StoreError):
    """A wrong filter, column or order."""


class ExchangeError(StoreError):
    """A file that cannot be imported or exported."""


def cannot_write(path: Path, error: OSError) -> StoreError:
    """Return the error for a store that cannot be written, with what to do about the cause."""
    kind, cure = (NoRoomError, "free some space") if error.errno in _NO_ROOM else (StoreError, "make it writable")
    return kind(
        f"cannot write {path}: {error.strerror}; the store stays as it was: {cure}, or choose another data folder"
    )


def cannot_read(path: Path, error: OSError) -> StoreError:
    """Return the error for a store file that exists and cannot be read."""
    return StoreError(f"cannot read {path}: {error.strerror}; make it readable, or choose another data folder")
