"""Errors of reading models, each with a one-line message."""

from collections.abc import Mapping

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.printable import shell_words


class ModelError(UserError):
    """The base of all errors of reading models."""


class UnreadableModelError(ModelError):
    """The file is not a model, or is a broken one."""


class FlawError(Exception):
    """A fault in a part of a file. The caller adds the file, or the place in it."""


class UnknownModelError(ModelError):
    """No model of that name or path."""


class MissingShapeError(ModelError):
    """Inputs of a model have no known shape.

    `examples` are shapes for each of these inputs, with as many axes as the file declares. If they were `tried`, the
    model runs with them.
    """

    def __init__(self, message: str, examples: Mapping[str, Shape], *, tried: bool = False) -> None:
        super().__init__(message)
        self.examples = dict(examples)
        self.tried = tried

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.examples), {"tried": self.tried}

    @property
    def in_command(self) -> str:
        # Loaded here: errors need not say it.
        from dlbricks_tui.models.input_shapes import MOST_LISTED, spelled

        options = [f"--input {shell_words([spelled({name: shape})])}" for name, shape in self.examples.items()]
        more = " ..." if len(options) > MOST_LISTED else ""
        such = "the model runs with" if self.tried else "give each, such as"
        return f"{self}; {such} {' '.join(options[:MOST_LISTED])}{more}"


class NotInCacheError(ModelError):
    """An answer that only a framework could tell, where none may be started."""


class InconsistentModelError(ModelError):
    """The framework finds a contradiction in the model."""


class FusionRefusedError(ModelError):
    """The framework's optimiser fails on this model. Only its written layers are available."""


class WrongRuntimeError(ModelError):
    """The runtime runs models of another format."""
