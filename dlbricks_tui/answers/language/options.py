"""What a question about language models asks for."""

from __future__ import annotations

from dataclasses import dataclass

from dlbricks_tui.language.precision import WeightPrecision


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
