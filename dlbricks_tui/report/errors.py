"""What keeps a report from being made."""

from dlbricks_tui.errors import UserError


class ReportError(UserError):
    """A report cannot be made, or cannot be written where it was asked for."""
