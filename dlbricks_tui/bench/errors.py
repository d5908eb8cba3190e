"""What can go wrong with a run, in words that a person can act on."""

from dlbricks_tui.errors import UserError


class BenchError(UserError):
    """The base of everything this room raises."""


class HostLockError(BenchError):
    """The lock that keeps one measuring run per host cannot be had."""


class RunError(BenchError):
    """There is no such run, or it cannot do what is asked of it."""


class ParamsFileError(BenchError):
    """A file of weights that cannot be read as one."""
