"""The errors of estimates, with messages that say what to do."""

from dlbricks_tui.errors import UserError


class EstimateError(UserError):
    """The requested estimate is not possible, or a file of rules or prices has a mistake."""
