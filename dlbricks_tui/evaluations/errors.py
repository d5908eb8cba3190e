"""The errors of evaluations."""

from dlbricks_tui.errors import UserError


class EvaluationError(UserError):
    """An evaluation that cannot be read, written or carried out; the message says where and what to do."""
