"""The errors of estimates, with messages that say what to do."""

from dlbricks_tui.errors import UserError


class EstimateError(UserError):
    """The requested estimate is not possible."""


class RulesError(EstimateError):
    """A file of rules has a mistake."""


class PricesError(EstimateError):
    """A table of prices has a mistake."""


class SelectionError(EstimateError):
    """The store has no such system, runtime or method."""


class CalibrationError(EstimateError):
    """A calibration could not be made."""
