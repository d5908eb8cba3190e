"""The exit statuses that every command keeps to."""

from enum import IntEnum


class Status(IntEnum):
    """How a command ended."""

    DONE = 0
    DONE_WITH_FAILURES = 1
    BAD_INPUT = 2
    INTERRUPTED = 130
