"""Answers about language models: from the store, and predicted where it lacks bricks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.api.documents import taken
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.fingerprint import instruction_sets
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.language import llama_cpp
from dlbricks_tui.language.architecture import LanguageError, LanguagePhase, WeightPrecision
from dlbricks_tui.language.composing import (
    MemoryNeed,
    PhaseTimes,
    StepTime,
    memory_need,
    phase_times,
)
from dlbricks_tui.language.decoder import Decoder, Step
from dlbricks_tui.language.llama_cpp import LikeLlama, LlamaHost
from dlbricks_tui.language.opening import NamedModel, open_language_model
from dlbricks_tui.language.orders import LanguageQuestion, MeasuredEngine, computing, is_llama_cpp, stored_precision
from dlbricks_tui.language.predicting import BrickPredictor, bytes_read, measured_steps
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import (
    CachePrecision,
    FlashAttention,
    InstructionSet,
)
from dlbricks_tui.settings.language import CACHE, FLASH_ATTENTION, GENERATE, PROMPT
from dlbricks_tui.settings.setting import require_allowed, with_own
from dlbricks_tui.settings.variant import THREADS
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.store.records import System


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageChange:
    """The change of a latency from one execution of a language model to another."""

    # `total`: of a whole answer; `prefill`: of its prompt; `decode`: of each token.
    of: LanguagePhase
    # The second latency over the first, with the 95 % interval.
    ratio: float
    interval: tuple[float, float]
    # The second compared with the first, and why that is unknown; else empty.
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageWhatIf:
    """A change of an execution: what it is predicted to bring, and what it brought when it was measured."""

    # Such as `threads-1` or `weights-int4`.
    id: str
    # The command or the setting that makes the change.
    how: str
    # From what was measured before the change: in all, for the prompt, and for each token.
    predicted: tuple[LanguageChange, ...]
    # The same by measurements of both; empty until it is proved.
    measured: tuple[LanguageChange, ...]
    # By the engine with the whole model, before and after: second latency over the first; null if not timed.
    end_to_end_prefill: float | None = None
    end_to_end_decode: float | None = None


# The lower and the upper bound of a figure, with 95 % confidence.
Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageOptions:
    """A prompt, the tokens to generate, and how the model is executed; several of each are compared."""

    prompt: int = 512
    generate: int = 128
    precisions: tuple[WeightPrecision, ...] = (WeightPrecision.INT4,)
    # How the engine keeps keys and values. Empty: as it does by default.
    caches: tuple[CachePrecision, ...] = ()
    # If llama.cpp uses flash attention. Empty: as it decides by itself.
    flash_attention: tuple[FlashAttention, ...] = ()
    # Empty: the usual number of the runtime on this host.
    threads: tuple[int, ...] = ()
    # Names of registered runtimes. Empty: ONNX Runtime.
    runtimes: tuple[str, ...] = ()
    # What decides which of several executions is the best.
    best_for: LanguagePhase = LanguagePhase.TOTAL
    # True: answers tell what changes of their execution would gain.
    what_ifs: bool = False
    # The ids of what-ifs to measure as well; `all`: all of them.
    prove: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_allowed(self, (PROMPT, GENERATE, CACHE, FLASH_ATTENTION, THREADS), LanguageError)
        if not self.precisions:
            raise LanguageError("weights have a precision: name one or more")

    def with_every_execution(self, runtimes: Sequence[str]) -> LanguageOptions:
        """Return the options that compare these runtimes in all precisions, and one thread with all cores."""
        cores = sorted({1, processors_here().to_use})
        threads = with_own(cores, next(iter(self.threads), None))
        return replace(self, precisions=precisions_here(), threads=threads, runtimes=tuple(runtimes))

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
class LanguageExecution:
    """A language model in a runtime on a system."""

    model: str
    # The published name, such as "Llama 3.2 1B"; that of the file for others.
    title: str
    system: str
    runtime: str
    # How the weights are stored: `int4`, `int8` or `f32`; in OpenVINO `bf16`; in llama.cpp `q4_k_m`, `q4_0`, `q8_0` or
    # `f16`.
    precision: str
    threads: int
    # The memory of the system.
    host_memory_bytes: int
    # The share of the time that rests on measurements of this system; 0: all of it is predicted.
    coverage: float
    # True if the store lacks the peaks of this host with so many threads: each command measures them for a moment,
    # and predictions of two commands differ by two times and more on a busy host.
    has_rough_peaks: bool = False

    @property
    def is_predicted(self) -> bool:
        """True if one of its figures rests on predictions."""
        return self.coverage < 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageFigures(LanguageExecution):
    """A language model that reads a prompt and makes tokens."""

    # The file that tells its sizes; empty for a model of the library.
    path: str
    # How the engine keeps keys and values: `f32`, `f16`, `bf16` or `int8`; null if that is not known.
    cache: str | None
    prompt_tokens: int
    generated_tokens: int
    # The memory that the model takes.
    memory_bytes: int
    fits: bool
    # When the latest of the measurements was made; null if there was none.
    measured_when: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageAnswer(LanguageFigures):
    """How fast a language model reads a prompt and makes tokens on a system, and how much memory it takes."""

    # The number of all weights.
    parameters: int
    # Those that one token uses; fewer in a mixture of experts.
    active_parameters: int
    prefill_ms: float
    # Prefill, and the choice of the first token from its result.
    first_token_ms: float
    prefill_tokens_per_second: float
    # The mean over all generated tokens.
    decode_tokens_per_second: float
    total_ms: float
    intervals: LanguageIntervals
    memory: MemoryNeed
    # True if everything that a measurement of this answer takes is in the store: what is still predicted stays so.
    is_measured: bool
    # What decoding could reach if it did nothing but read weights and cache; null if the bandwidth is not known.
    bound_tokens_per_second: float | None
    # "every token" or "the last token": what the head computes for a prompt.
    head: str
    parts: tuple[PartTime, ...]
    contexts: tuple[SpeedAtContext, ...]
    prompts: tuple[DelayOfPrompt, ...]
    # The whole model end to end; null if it was not timed.
    measured: MeasuredEngine | None
    # The changes from the best of several executions to this one; empty for the best one, or without others.
    changes: tuple[LanguageChange, ...] = ()
    # What changes of the execution would gain, the largest first; empty unless they were asked for.
    what_ifs: tuple[LanguageWhatIf, ...] = ()


# The lengths that pictures show, as far as the model goes.
_CONTEXTS = (128, 512, 1024, 2048, 4096, 8192)
_PROMPTS = (16, 128, 512, 1024, 2048)
MS = 1000.0


def named_model(model: NamedModel | str) -> NamedModel:
    """Return a model, or that of a path or a name; raise a UserError where there is none."""
    return open_language_model(model) if isinstance(model, str) else model


def opened_models(
    names: Sequence[str], options: LanguageOptions, tell: Callable[[str], None]
) -> tuple[NamedModel, ...]:
    """Return the models of these names, each once, and tell which are left out; raise the first refusal if all are."""
    models: dict[NamedModel, None] = {}
    refusals: list[UserError] = []
    for name in dict.fromkeys(names):
        try:
            model = open_language_model(name)
            options.require_context(model.name, model.architecture.positions)
            models[model] = None
        except UserError as error:
            refusals.append(error)
    if not models:
        raise refusals[0]
    for refusal in refusals:
        tell(f"left out: {refusal}")
    return tuple(models)


def questions(models: Sequence[NamedModel], options: LanguageOptions, data: DataFolder) -> tuple[LanguageQuestion, ...]:
    """Return each model in each runtime with each precision of weights and cache and each number of threads.

    A runtime that lacks one of them, or a model, is left out where another one has it.
    """
    found, _, refusals = _asked(models, options, data)
    if not found and refusals:
        raise refusals[0][1]
    return found


def left_out(
    models: Sequence[NamedModel], options: LanguageOptions, data: DataFolder, *, models_only: bool = False
) -> Iterator[str]:
    """Yield how many models, runtimes and precisions no answer has, a line for each kind, with the first reason."""
    found, had, refusals = _asked(models, options, data)
    if not found:
        # The first refusal is raised.
        return
    # Those with one word that no answer has tell best why.
    telling = sorted(refusals, key=lambda it: len({*it[0]} - had))
    for place, kind in enumerate(("model",) if models_only else ("model", "runtime", "precision")):
        without: dict[str, LanguageError] = {}
        for words, error in telling:
            if words[place] and words[place] not in had:
                without.setdefault(words[place], error)
        if without:
            reason = next(iter(without.values()))
            yield f"{counted(len(without), kind)} left out ({names_of(list(without))}): {reason}"


class _Asked(NamedTuple):
    """The questions that options ask about models, and those that were refused."""

    questions: tuple[LanguageQuestion, ...]
    # The names of the models, runtimes and precisions with a question.
    had: set[str]
    # A model, a runtime and a precision, and why there is no question about them.
    refusals: Sequence[tuple[tuple[str, str, str], LanguageError]]


def _asked(models: Sequence[NamedModel], options: LanguageOptions, data: DataFolder) -> _Asked:
    registry = Registry(data.path)
    named = [registry.find_engine(name) or registry.find_installed(name) for name in options.runtimes]
    named = named or [registry.runtime_for((Format.ONNX,))]
    for wanted in options.caches:
        if all(wanted not in it.traits.caches for it in named):
            # Raises the refusal.
            named[0].with_cache(wanted)
    caches = options.caches or (None,)
    runtimes = [on.with_cache(it) for on in named for it in caches if it is None or it in on.traits.caches]
    for flash in options.flash_attention:
        if not any(it.traits.has_flash_attention for it in named):
            named[0].with_flash_attention(flash)
    if options.flash_attention:
        with_choice = [it for it in runtimes if it.traits.has_flash_attention]
        runtimes = [it.with_flash_attention(flash) for it in with_choice for flash in options.flash_attention]
    found: dict[LanguageQuestion, None] = {}
    had: set[str] = set()
    lacking = [it for it in named if all(it.name != each.name for each in runtimes)]
    refusals = [
        (("", it.name, ""), LanguageError(f"{it.traits.title} has no such --cache or --flash-attention"))
        for it in lacking
    ]
    for model, on, wanted_bits, count in product(models, runtimes, options.precisions, options.threads or (None,)):
        words = model.name, on.name, wanted_bits.value
        try:
            options.require_context(model.name, model.architecture.positions)
            bits = stored_precision(on, wanted_bits)
            runtime = computing(on, bits).with_threads(count)
            asked = LanguageQuestion(model, runtime, bits, options.prompt, options.generate)
            # Raises if the runtime cannot have the model.
            _ = asked.sizes
            found[asked] = None
            had.update(words)
        except LanguageError as error:
            refusals.append((words, error))
    return _Asked(tuple(found), had, refusals)


def precisions_here() -> tuple[WeightPrecision, ...]:
    """Return the precisions in which the processor of this host computes; all of them if it does not tell."""
    lacks_bf16 = InstructionSet.AVX512_CORE_BF16 not in (known := instruction_sets(HostFiles()))
    without = {WeightPrecision.BF16} if lacks_bf16 and len(known) > 1 else set()
    return tuple(it for it in WeightPrecision if it not in without)


def language_runtimes(data: DataFolder) -> tuple[Runtime, ...]:
    """Return the runtimes of this host that run language models."""
    registry = Registry(data.path)
    return tuple(it for it in (*registry.all(), *registry.engines()) if it.traits.format is Format.ONNX)


def runtimes_here(data: DataFolder) -> tuple[str, ...]:
    """Return the names of the runtimes that run language models."""
    return tuple(it.name for it in language_runtimes(data))


@dataclass(frozen=True)
class KnownExecution:
    """An execution of a language model, with what the store knows about it."""

    question: LanguageQuestion
    store: ResultsDatabase
    system: System
    host: BrickPredictor
    # The execution that this one would change: measurements of the change do not count.
    was: KnownExecution | None = None

    @cached_property
    def times(self) -> PhaseTimes:
        return self.host.phases(self.question)

    def known(self, question: LanguageQuestion) -> KnownExecution:
        """Return another execution, with what the store knows about it."""
        runtime, host = question.runtime, self.host
        if runtime.identity != self.question.runtime.identity:
            host = BrickPredictor.of_host(self.store, self.system.id, runtime.identity, question.threads)
        return known_execution(question, self.store, self.system, host)

    def before(self, question: LanguageQuestion) -> KnownExecution:
        """Return another execution with what could be predicted before it was measured; the asked one as known."""
        found = self.known(question)
        return found if question == self.question else found._changed_from(self)

    def _changed_from(self, was: KnownExecution) -> KnownExecution:
        runtime, before = self.question.runtime, was.question.runtime
        is_same = runtime.identity == before.identity
        kept = {key for it in was.question.steps for key in was.question.decoder(it).keys} if is_same else set()
        keys = {key for it in self.question.steps for key in self.question.decoder(it).keys} - kept
        others = (was.host,) if runtime.framework == before.framework and not is_same else ()
        bits = [it.cache.bits if it.cache else 1 for it in (runtime, before)]
        return replace(self, host=self.host.without(keys, others, bits[0] / bits[1] if others else 1.0), was=was)

    def answer(self, *, has_curves: bool) -> LanguageAnswer:
        asked, model, host = self.question, self.question.model, self.host
        prompt, generate = asked.prompt, asked.generate
        total, prefill, decode = (self.times[it] for it in LanguagePhase)
        memory = self._memory()
        bound = fmean(map(self._bytes_read, asked.steps[1:])) / host.rates.bytes_per_ms
        return taken(
            LanguageAnswer,
            model,
            asked.sizes,
            asked,
            total,
            model=model.name,
            system=self.system.id,
            runtime=asked.runtime.identity,
            precision=asked.precision.value,
            cache=asked.runtime.cache and asked.runtime.cache.value,
            prompt_tokens=prompt,
            generated_tokens=generate,
            prefill_ms=prefill.ms,
            first_token_ms=prefill.ms,
            prefill_tokens_per_second=MS * prompt / prefill.ms,
            decode_tokens_per_second=MS / decode.ms,
            total_ms=total.ms,
            intervals=LanguageIntervals(
                prefill_ms=prefill.bounds_ms,
                first_token_ms=prefill.bounds_ms,
                prefill_tokens_per_second=_rates(prompt, prefill),
                decode_tokens_per_second=_rates(1, decode),
                total_ms=total.bounds_ms,
            ),
            memory_bytes=memory.total,
            memory=memory,
            host_memory_bytes=self.system.memory_bytes,
            fits=memory.total <= self.system.memory_bytes,
            is_measured=self.is_measured,
            measured_when=total.when or None,
            bound_tokens_per_second=MS / bound if host.rates.is_measured else None,
            head="the last token" if asked.scores_last_only else "every token",
            parts=tuple(
                PartTime(part.value, prefill.parts_ms.get(part, 0.0), decode.parts_ms.get(part, 0.0))
                for part in dict.fromkeys((*prefill.parts_ms, *decode.parts_ms))
            ),
            contexts=tuple(self._contexts()) if has_curves else (),
            prompts=tuple(self._prompts()) if has_curves else (),
            measured=self.engine,
            has_rough_peaks=host.rates.is_rough,
        )

    def _memory(self) -> MemoryNeed:
        return memory_need(self.question, self._decoder(self.question.steps[0]))

    def _bytes_read(self, step: Step) -> int:
        return bytes_read(self.question, self._decoder(step))

    @property
    def is_measured(self) -> bool:
        """True if the store has every brick that a measurement takes."""
        known, steps = self.host.known, measured_steps(self.question, self.host)
        return bool(known) and all(key in known for it in steps for key in self._decoder(it).keys)

    def _decoder(self, step: Step) -> Decoder:
        return self.host.decoder(self.question, step)

    def _time(self, step: Step) -> StepTime:
        return self.host.step(self.question, step)

    @property
    def engine(self) -> MeasuredEngine | None:
        if not self.host.known:
            return None
        # Loaded here: it needs what starts processes.
        from dlbricks_tui.language.end_to_end import engine_results

        return engine_results(self.store, self.system.id, self.question)

    def _contexts(self) -> Iterator[SpeedAtContext]:
        own = {step.past for step in self.question.steps if step.past}
        for context in sorted({*own, *_CONTEXTS}):
            if context < self.question.model.architecture.positions:
                found = self._time(Step.decode(context))
                yield SpeedAtContext(context, MS / found.ms, *_rates(1, found), found.coverage < 1.0)

    def _prompts(self) -> Iterator[DelayOfPrompt]:
        for prompt in sorted({self.question.prompt, *_PROMPTS}):
            if prompt <= self.question.model.architecture.positions:
                found = self._time(Step.prefill(prompt))
                yield DelayOfPrompt(prompt, found.ms, *found.bounds_ms, found.coverage < 1.0)


@dataclass(frozen=True)
class _LlamaExecution(KnownExecution):
    """A question about llama.cpp, which is answered by small models and not by bricks."""

    @cached_property
    def _llama(self) -> LlamaHost:
        identity, was = self.question.runtime.identity, self.was
        if was is None:
            return LlamaHost.of_host(self.store, self.system.id, identity, self.host.rates)
        like = LikeLlama(was._llama, was.question) if isinstance(was, _LlamaExecution) else None
        return LlamaHost.of_host(self.store, self.system.id, identity, self.host.rates, self.question, like)

    def _changed_from(self, was: KnownExecution) -> KnownExecution:
        return replace(self, was=was)

    @cached_property
    def times(self) -> PhaseTimes:
        prefill, *decoding = [self._llama.time(self.question, it) for it in llama_cpp.tests_of(self.question)]
        return phase_times(prefill, decoding, self.question.generate)

    def _memory(self) -> MemoryNeed:
        return llama_cpp.memory_need(self.question)

    def _bytes_read(self, step: Step) -> int:
        return llama_cpp.bytes_read(self.question, step)

    @property
    def is_measured(self) -> bool:
        tests = llama_cpp.measured_tests(self.question, self._llama)
        return all(self._llama.measured(self.question, it) is not None for it in tests)

    def _time(self, step: Step) -> StepTime:
        return self._llama.time(self.question, llama_cpp.test_of(self.question, step))

    @property
    def engine(self) -> MeasuredEngine | None:
        return self._llama.whole(self.question)


def known_execution(
    asked: LanguageQuestion, store: ResultsDatabase, system: System, host: BrickPredictor
) -> KnownExecution:
    """Return a question with what the store knows about it, of any system."""
    return (_LlamaExecution if is_llama_cpp(asked.runtime) else KnownExecution)(asked, store, system, host)


def _rates(tokens: int, found: StepTime) -> tuple[float, float]:
    low_ms, high_ms = found.bounds_ms
    return MS * tokens / high_ms, MS * tokens / low_ms
