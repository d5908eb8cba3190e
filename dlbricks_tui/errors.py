"""The base of all errors that are shown to the user in one line."""


class UserError(Exception):
    """An error that the user can correct; the message says what is wrong, where, and what to do."""

    @property
    def in_command(self) -> str:
        """The message with what to do about it on the command line."""
        return str(self)
