"""Errors of fleets."""

from dlbricks_tui.errors import UserError
from dlbricks_tui.printable import printable

_LONGEST_REASON = 300


class FleetError(UserError):
    """A fleet cannot do what was asked."""


class MessageError(FleetError):
    """A text that is no message of a fleet; the message of the error completes "it ..."."""


class ParcelError(FleetError):
    """A model that cannot travel; the message says why, and what to do."""


class HostError(FleetError):
    """A host cannot do what the driver asks of it."""


def first_line(error: BaseException) -> str:
    """Return the reason in an error of a library, in one short line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[0] if lines else type(error).__name__)[:_LONGEST_REASON]


def last_line(output: bytes) -> str:
    """Return the last line that a program has printed, without control codes."""
    lines = output.decode(errors="replace").strip().splitlines()
    return printable(lines[-1].strip())[:_LONGEST_REASON] if lines else ""
