"""Errors of the language models, each with a one-line message."""

from dlbricks_tui.errors import UserError


class LanguageError(UserError):
    """A language model that is not known, cannot be read, or is impossible."""
