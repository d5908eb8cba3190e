"""Errors of the language models, each with a one-line message."""

from dlbricks_tui.errors import UserError


class LanguageError(UserError):
    """The base of all errors of language models."""


class UnknownFamilyError(LanguageError):
    """The model is of a family whose blocks are not known here."""


class UnknownLanguageModelError(LanguageError):
    """No language model of that name or path."""
