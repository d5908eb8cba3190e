"""Errors of measuring."""

from dlbricks_tui.errors import UserError


class MeasureError(UserError):
    """A rule that no run could satisfy, or no worker lives long enough to answer."""
