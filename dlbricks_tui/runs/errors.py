"""Errors of runs."""

from dlbricks_tui.errors import UserError


class RunError(UserError):
    """A run does not exist, or cannot do what it is asked to do."""


class UnreadableRunError(RunError):
    """The state of a run is damaged."""
