"""Errors of suites and signatures; each message says what to do."""

from dlbricks_tui.errors import UserError


class ShareError(UserError):
    """The base of all errors about suites and signatures."""


class UnsuitableLayersError(ShareError):
    """Layers that a suite cannot hold; the message completes "it ..."."""


class BrokenBrickError(ShareError):
    """A brick of a suite that cannot be read; the message completes "brick ... "."""


class BrokenSuiteError(ShareError):
    """A folder that is not a suite, or a suite with forbidden contents."""


class SignatureError(ShareError):
    """A file of results that cannot be signed, or whose signature cannot be trusted."""


class GalleryError(ShareError):
    """A folder without results that can be imported."""


def refuse_too_large(needed_bytes: int, most_bytes: int) -> None:
    """Raise UnsuitableLayersError for layers that take more memory than there is."""
    if needed_bytes > most_bytes:
        raise UnsuitableLayersError(f"would take {needed_bytes / 2**30:.3g} GiB of memory, more than there is")
