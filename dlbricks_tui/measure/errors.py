"""Errors of measuring, and the exception that stops it."""

from dlbricks_tui.errors import UserError


class MeasureError(UserError):
    """A rule that no run could satisfy, or no worker lives long enough to answer."""


class Stopped(Exception):  # noqa: N818 - not an error: the user or the time budget stops a run
    """Measuring stops here; the samples taken so far are kept."""
