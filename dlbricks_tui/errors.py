"""The root of every error that a person is told about in one line."""


class UserError(Exception):
    """Something the person can act on: the message says what, where, and what to do."""
