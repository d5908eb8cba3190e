"""What can go wrong when estimates are made, in words that a person can act on."""

from dlbricks_tui.errors import UserError


class EstimateError(UserError):
    """An estimate cannot be made as asked."""


class RulesError(EstimateError):
    """A file of rules does not say what it should."""


class PricesError(EstimateError):
    """A table of prices does not say what it should."""


class SelectionError(EstimateError):
    """No system, runtime or protocol of the store is the one that was asked for."""


class CalibrationError(EstimateError):
    """A calibration has constants that nobody here knows how to apply."""
