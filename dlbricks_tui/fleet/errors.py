"""Errors of fleets."""

from dlbricks_tui.errors import UserError


class FleetError(UserError):
    """A fleet cannot do what was asked."""


class MessageError(FleetError):
    """A text that is no message of a fleet; the message of the error completes "it ..."."""


class ParcelError(FleetError):
    """A model that cannot travel; the message says why, and what to do."""


class HostError(FleetError):
    """A host cannot do what the driver asks of it."""
