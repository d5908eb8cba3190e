"""The options of questions about language models."""

from __future__ import annotations

from dataclasses import dataclass

from dlbricks_tui.language.errors import LanguageError
from dlbricks_tui.language.precision import WeightPrecision
from dlbricks_tui.settings.language import GENERATE, PROMPT
from dlbricks_tui.settings.setting import require_allowed
from dlbricks_tui.settings.variant import THREADS


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageOptions:
    """A prompt, the tokens to generate, and how the model is executed; several of each are compared."""

    prompt: int = 512
    generate: int = 128
    precisions: tuple[WeightPrecision, ...] = (WeightPrecision.INT4,)
    # Empty: the usual number of the runtime on this host.
    threads: tuple[int, ...] = ()
    # Names of registered runtimes. Empty: ONNX Runtime.
    runtimes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_allowed(self, (PROMPT, GENERATE, THREADS), LanguageError)
        if not self.precisions:
            raise LanguageError("weights have a precision: name one or more")

    def require_context(self, model: str, positions: int) -> None:
        """Raise LanguageError if prompt and generated tokens are more than a model can hold in its context."""
        if self.prompt + self.generate > positions:
            raise LanguageError(
                f"{model} holds {positions:,} tokens, and {self.prompt:,} of the prompt with {self.generate:,} to "
                "generate are more: ask for fewer"
            )
