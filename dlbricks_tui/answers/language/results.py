"""Questions about language models, and their answers as plain values: the JSON document of `dlbricks llm`."""

from __future__ import annotations

from dataclasses import dataclass

from dlbricks_tui.language.architecture import LanguageError, WeightPrecision
from dlbricks_tui.language.composing import MemoryNeed
from dlbricks_tui.language.orders import MeasuredEngine
from dlbricks_tui.settings.language import GENERATE, PROMPT
from dlbricks_tui.settings.setting import require_allowed
from dlbricks_tui.settings.variant import THREADS

# The lower and the upper bound of a figure, with 95 % confidence.
Bounds = tuple[float, float]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageIntervals:
    """The 95 % intervals of an answer."""

    prefill_ms: Bounds
    first_token_ms: Bounds
    prefill_tokens_per_second: Bounds
    decode_tokens_per_second: Bounds
    total_ms: Bounds


@dataclass(frozen=True, slots=True)
class PartTime:
    """A part of a language model (products, experts, attention, norms, table, head or other): its time in each phase.

    `decode_ms` is the time for one token, the mean of all that are generated.
    """

    part: str
    prefill_ms: float
    decode_ms: float


@dataclass(frozen=True, slots=True)
class SpeedAtContext:
    """How fast tokens are made behind so many others."""

    # The tokens before it.
    context: int
    tokens_per_second: float
    low: float
    high: float
    # True unless decoding was measured at this context.
    predicted: bool


@dataclass(frozen=True, slots=True)
class DelayOfPrompt:
    """The time to the first token after a prompt of so many tokens."""

    prompt_tokens: int
    first_token_ms: float
    low_ms: float
    high_ms: float
    # True unless a prompt of this length was measured.
    predicted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageAnswer:
    """How fast a language model reads a prompt and makes tokens on a system, and how much memory it takes."""

    model: str
    # The published name, such as "Llama 3.2 1B"; that of the file for others.
    title: str
    # The number of all weights.
    parameters: int
    # Those that one token uses; fewer in a mixture of experts.
    active_parameters: int
    system: str
    runtime: str
    # How the weights are stored: `int4`, `int8` or `f32`.
    precision: str
    threads: int
    prompt_tokens: int
    generated_tokens: int
    prefill_ms: float
    # Prefill, and the choice of the first token from its result.
    first_token_ms: float
    prefill_tokens_per_second: float
    # The mean over all generated tokens.
    decode_tokens_per_second: float
    total_ms: float
    intervals: LanguageIntervals
    # The memory that the model takes.
    memory_bytes: int
    memory: MemoryNeed
    # The memory of the host.
    host_memory_bytes: int
    fits: bool
    # The share of the time that rests on measurements of this host; 0: all of it is predicted.
    coverage: float
    # True if everything that a measurement of this answer takes is in the store: what is still predicted stays so.
    is_measured: bool
    # When the latest of these was measured; null if nothing was.
    measured_when: str | None
    # What decoding could reach if it did nothing but read weights and cache; null if the bandwidth is not known.
    bound_tokens_per_second: float | None
    # "every token" or "the last token": what the head computes for a prompt.
    head: str
    parts: tuple[PartTime, ...]
    contexts: tuple[SpeedAtContext, ...]
    prompts: tuple[DelayOfPrompt, ...]
    # The whole model end to end; null if it was not timed.
    measured: MeasuredEngine | None

    @property
    def is_predicted(self) -> bool:
        """True if some of its figures rests on predictions."""
        return self.coverage < 1.0
