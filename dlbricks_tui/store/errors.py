"""What can go wrong with the store, in words that a person can act on."""

import errno
from pathlib import Path

from dlbricks_tui.errors import UserError

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StoreError(UserError):
    """The store cannot do what was asked."""


class NewerStoreError(StoreError):
    """A newer dlbricks wrote what stands here."""

    def __init__(self, path: Path, schema: int, known: int) -> None:
        super().__init__(
            f"{path} was written by a newer dlbricks (schema {schema}, this one knows up to {known}) and is left as "
            "it is; update dlbricks, or choose another data folder"
        )


class StoreBusyError(StoreError):
    """Another process keeps the store locked."""


class DamagedResultError(StoreError):
    """A result that the index knows can no longer be read."""


class QueryError(StoreError):
    """A filter, column or order that nobody can follow."""


class ExchangeError(StoreError):
    """A file to import or export that does not work out."""


def cannot_write(path: Path, error: OSError) -> StoreError:
    """The complaint about a store that cannot be changed, with the cure that fits the cause."""
    cure = "free some space" if error.errno in _NO_ROOM else "make it writable"
    return StoreError(
        f"cannot write {path}: {error.strerror}; the store stays as it was: {cure}, or choose another data folder"
    )


def cannot_read(path: Path, error: OSError) -> StoreError:
    """The complaint about a store file that exists and cannot be read."""
    return StoreError(f"cannot read {path}: {error.strerror}; make it readable, or choose another data folder")
