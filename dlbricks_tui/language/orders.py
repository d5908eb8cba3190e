"""Questions about language models, and their measurements as jobs: the order, and the events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs.events import Event, event_kinds
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.language.architecture import Architecture, LanguageError, WeightPrecision
from dlbricks_tui.language.decoder import Decoder, Extent, Step, decoder, steps_for
from dlbricks_tui.language.gguf_files import as_llama_cpp_reads
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import LLAMA_CPP, OPENVINO
from dlbricks_tui.runtime.variant import (
    CachePrecision,
    FlashAttention,
    Precision,
    cache_in_words,
    flash_attention_in_words,
    stated_cache,
    stated_flash_attention,
    threads_in_words,
)
from dlbricks_tui.scenarios.tokens import Pauses, TokenLoad, TokenScenario, TokenServing

# This version of ONNX Runtime has caches of windowed blocks that hold their window only; 1.23 has not.
_SHORT_CACHES = (1, 32)
_OF_GGUF = (WeightPrecision.Q4_K_M, WeightPrecision.Q4_0, WeightPrecision.Q8_0, WeightPrecision.F16)
_OF_OTHERS = (WeightPrecision.INT4, WeightPrecision.INT8, WeightPrecision.F32)
_OF_OPENVINO = (*_OF_OTHERS, WeightPrecision.BF16)
# What people use in llama.cpp for weights of so many bits.
_IN_GGUF = {WeightPrecision.INT4: WeightPrecision.Q4_K_M, WeightPrecision.INT8: WeightPrecision.Q8_0}


def is_llama_cpp(runtime: Runtime) -> bool:
    """Return if a runtime is llama.cpp, which runs language models and tells no times of layers."""
    return runtime.framework == LLAMA_CPP.framework


def stored_precision(runtime: Runtime, wanted: WeightPrecision) -> WeightPrecision:
    """Return how a runtime stores weights in a precision: llama.cpp has its own names for 4 and 8 bits.

    Raise LanguageError if it has no such weights, or cannot have its cache.
    """
    has_bf16 = runtime.computes_in(Precision.BF16)
    own = _OF_GGUF if is_llama_cpp(runtime) else _OF_OPENVINO if has_bf16 else _OF_OTHERS
    found = _IN_GGUF.get(wanted, wanted) if is_llama_cpp(runtime) else wanted
    if found not in own:
        names = ", ".join(it.value for it in own)
        raise LanguageError(
            f"{runtime.traits.title} stores weights as {names}, and not as {wanted.value}: choose one of these, or "
            "another runtime"
        )
    is_plain = stated_flash_attention(runtime.identity) is FlashAttention.OFF
    if is_plain and runtime.cache is CachePrecision.INT8:
        raise LanguageError(
            f"{runtime.traits.title} has caches of 8 bits with flash attention only: choose another --cache, or leave "
            "--flash-attention out"
        )
    computed, other = CachePrecision.F32, CachePrecision.BF16
    if found is WeightPrecision.BF16:
        computed, other = other, computed
    if runtime.framework == OPENVINO.framework and runtime.cache is other:
        raise LanguageError(
            f"{OPENVINO.title} computes {found.value} weights in {computed.value}, and makes that of a cache in "
            f"{other.value}: choose --cache {computed.value}, f16 or int8"
        )
    return found


def computing(runtime: Runtime, weights: WeightPrecision) -> Runtime:
    """Return a runtime that computes as its weights are stored."""
    return runtime.with_precision(Precision.BF16 if weights is WeightPrecision.BF16 else Precision.F32)


@dataclass(frozen=True, slots=True)
class LanguageQuestion:
    """A model in a runtime with its number of threads, for one prompt and so many generated tokens.

    `batches` are the numbers of answers that are made together.
    """

    model: NamedModel
    runtime: Runtime
    precision: WeightPrecision
    prompt: int
    generate: int
    batches: tuple[int, ...] = (1,)

    @property
    def threads(self) -> int:
        return self.runtime.settings.threads or 0

    @property
    def words(self) -> str:
        """The model and its execution, such as "llama-3.2-1b, ONNX Runtime, int4, 2 threads"."""
        cache, flash = stated_cache(self.runtime.identity), stated_flash_attention(self.runtime.identity)
        stored = [self.precision.value, *([] if cache is None else [cache_in_words(cache)])]
        stored += [] if flash is None else [flash_attention_in_words(flash)]
        return ", ".join([self.model.name, self.runtime.traits.title, *stored, threads_in_words(self.threads)])

    @property
    def sizes(self) -> Architecture:
        """The sizes of the model, with windows and caches of windowed blocks as the runtime has them."""
        if is_llama_cpp(self.runtime):
            return as_llama_cpp_reads(self.model.architecture)
        if self.runtime.framework == OPENVINO.framework and self.model.architecture.experts:
            raise LanguageError(f"{OPENVINO.title} lacks the operator for mixtures of experts: choose another runtime")
        version = tuple([int(it) for it in self.runtime.version.split(".")[:2] if it.isdecimal()])
        is_short = self.runtime.framework == "onnxruntime" and version >= _SHORT_CACHES
        return self.model.architecture if is_short else replace(self.model.architecture, has_short_caches=False)

    @property
    def scores_last_only(self) -> bool:
        """True if the head reads only the last token of a prompt."""
        return self.runtime.traits.has_short_head or self.model.architecture.scores_last_only

    @property
    def steps(self) -> tuple[Step, ...]:
        return steps_for(self.prompt, self.generate, self.batches)

    def decoder(
        self, step: Step, blocks: Sequence[int] | None = None, name: str = "decoder", extent: Extent = Extent.ALL
    ) -> Decoder:
        """Return a decoder of the model for one step."""
        return decoder(self.sizes, self.precision, step, self.runtime.traits, blocks, name, extent=extent)


@dataclass(frozen=True, slots=True)
class Drive:
    """Users that ask the whole model in its engine, with the pauses before their requests."""

    scenario: TokenScenario
    serving: TokenServing
    pauses: Pauses
    # Until the last answer, about.
    seconds: float

    @property
    def users(self) -> int:
        return len(self.pauses)

    @property
    def words(self) -> str:
        """The users and how they are served, such as "4 users, static batches"."""
        batches = "" if self.serving is TokenServing.SINGLE else " batches"
        return f"{self.users} user{'s' * (self.users > 1)}, {self.serving.value}{batches}"


@dataclass(frozen=True, slots=True)
class LanguageOrder:
    """The language models to measure; with `end_to_end`, the whole models, too, and with drives, their load.

    Of a probe, a block of each.
    """

    questions: tuple[LanguageQuestion, ...]
    end_to_end: bool = False
    probe: bool = False
    # Those to measure; empty: as the speed of the host suggests.
    steps: tuple[Step, ...] = ()
    drives: tuple[Drive, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, each once."""
        return tuple(dict.fromkeys(it.model.name for it in self.questions))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEngine:
    """The whole model with random weights, timed in an engine that people use."""

    # Its name and version.
    engine: str
    prefill_ms: float
    decode_tokens_per_second: float
    when: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivenLoad:
    """The load of the whole model with random weights in an engine that people use."""

    # Its name and version.
    engine: str
    load: TokenLoad
    when: str


@dataclass(frozen=True, slots=True)
class LanguageMessage(Event):
    """A line about a measurement: something begins."""

    line: str


@dataclass(frozen=True, slots=True)
class LanguageRound(LanguageMessage):
    """A line about the progress of a model."""


@dataclass(frozen=True, slots=True)
class LanguageMeasured(LanguageMessage):
    """The results of a model are in the store."""


@dataclass(frozen=True, slots=True)
class LanguageFailed(LanguageMessage):
    """A model, or its whole-model run, could not be measured; the others go on."""


LANGUAGE = JobKind(
    WorkKind.LANGUAGE,
    LanguageOrder,
    event_kinds(LanguageMessage, LanguageRound, LanguageMeasured, LanguageFailed),
    "dlbricks_tui.api.language_measuring",
)
