"""Errors of fleets."""

from dlbricks_tui.errors import UserError


class FleetError(UserError):
    """A fleet cannot do what was asked."""
