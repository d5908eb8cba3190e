"""Errors of suites; each message says what to do."""

from dlbricks_tui.errors import UserError


class ShareError(UserError):
    """The base of all errors about suites."""


class UnsuitableLayersError(ShareError):
    """Layers that a suite cannot hold; the message completes "it ..."."""


class BrokenBrickError(ShareError):
    """A brick of a suite that cannot be read; the message completes "brick ... "."""


class BrokenSuiteError(ShareError):
    """A folder that is not a suite, or a suite with forbidden contents."""
