"""The errors of traces."""

from dlbricks_tui.errors import UserError


class TraceError(UserError):
    """A trace that cannot be made, written or read."""
