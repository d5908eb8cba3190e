"""What can be wrong with a model, each said in one line."""

from dlbricks_tui.errors import UserError


class ModelError(UserError):
    """The base of everything this room raises."""


class UnreadableModelError(ModelError):
    """The file is not a model, or is a broken one."""


class UnknownModelError(ModelError):
    """No model of that name or path."""


class MissingShapeError(ModelError):
    """An input has no shape, and nothing tells it."""


class InconsistentModelError(ModelError):
    """The framework finds the model to contradict itself."""


class FusionRefusedError(ModelError):
    """The framework's optimiser fails on this model: only its written layers can be had."""
