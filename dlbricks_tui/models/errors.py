"""What can be wrong with a model, each said in one line."""

from collections.abc import Mapping

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import Shape


class ModelError(UserError):
    """The base of everything this room raises."""


class UnreadableModelError(ModelError):
    """The file is not a model, or is a broken one."""


class UnknownModelError(ModelError):
    """No model of that name or path."""


class MissingShapeError(ModelError):
    """Inputs have no shape, and nothing tells it.

    `examples` are shapes of as many axes as the file says, for each of the inputs.
    """

    def __init__(self, message: str, examples: Mapping[str, Shape]) -> None:
        super().__init__(message)
        self.examples = dict(examples)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(self.examples)


class InconsistentModelError(ModelError):
    """The framework finds the model to contradict itself."""


class FusionRefusedError(ModelError):
    """The framework's optimiser fails on this model: only its written layers can be had."""


class WrongRuntimeError(ModelError):
    """The runtime runs models of another format."""
