"""What can go wrong with suites, in words that a person can act on."""

from dlbricks_tui.errors import UserError


class ShareError(UserError):
    """The base of everything this room raises."""


class CannotTravelError(ShareError):
    """Layers that cannot be handed on without their model; the message completes "it ..."."""


class BrokenBrickError(ShareError):
    """A brick of a suite that does not arrive; the message completes "brick ... "."""


class BrokenSuiteError(ShareError):
    """A folder that is no suite, or a suite that must not be trusted."""


class SuiteFileError(ShareError):
    """A file or folder of a suite cannot be read or written."""


class KeyFileError(ShareError):
    """There is no key to a suite, or it does not fit."""


class BrokenResultsError(ShareError):
    """A file that holds no results of a suite, or claims what it must not."""
