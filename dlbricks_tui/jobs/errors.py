"""Errors of jobs, and the exception that stops one."""

from dlbricks_tui.errors import UserError


class JobError(UserError):
    """A job does not exist, or cannot do what it is asked to do."""


class UnreadableJobError(JobError):
    """The state of a job is damaged."""


class Stopped(Exception):  # noqa: N818 - not an error: the user or the time budget stops a job
    """The work stops here; what it has stored is kept."""
