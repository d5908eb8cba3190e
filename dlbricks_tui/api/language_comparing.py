"""Executions of a language model beside each other: the changes between them, and what changes of one would gain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

from dlbricks_tui.api.documents import taken
from dlbricks_tui.errors import UserError
from dlbricks_tui.language.architecture import LanguageError, WeightPrecision
from dlbricks_tui.language.composing import PhaseTimes, phase_times, timings
from dlbricks_tui.language.orders import (
    LanguagePhase,
    LanguageQuestion,
    MeasuredEngine,
    is_llama_cpp,
    stored_precision,
)
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import CachePrecision, FlashAttention, stated_flash_attention
from dlbricks_tui.store.change import BESIDE_BEST, MODELS, Limits, Verdict, all_compared

PREFILL, DECODE = LanguagePhase.PREFILL, LanguagePhase.DECODE
ALL = "all"
# Why the verdict on an execution is unknown.
_IS_PREDICTED = "it is predicted"
_LLAMA_THREADS = "the options --threads and --threads-batch of llama.cpp"


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


def changes_to(
    was: PhaseTimes, others: Sequence[PhaseTimes], unknown: Sequence[str], limits: Limits = MODELS
) -> list[tuple[LanguageChange, ...]]:
    """Return the changes from one execution to each of the others; `unknown` has why a verdict is not possible."""
    found: list[list[LanguageChange]] = [[] for _ in others]
    for phase in LanguagePhase:
        changes = all_compared([timings(was[phase], it[phase]) for it in others], limits)
        for held, change, reason in zip(found, changes, unknown, strict=True):
            told = {"verdict": Verdict.UNKNOWN, "reason": reason} if reason else {}
            held.append(taken(LanguageChange, change, of=phase, interval=change.ratios, **told))
    return list(map(tuple, found))


def changes_from_best(
    times: Sequence[PhaseTimes], are_measured: Sequence[bool], fit: Sequence[bool], phase: LanguagePhase
) -> list[tuple[int, tuple[LanguageChange, ...]]]:
    """Return the place of each execution, the best first, with its changes from that; the best has none.

    It is the best that was measured, if any was. Executions that do not fit into memory come last.
    """
    others = sorted(range(len(times)), key=lambda it: (not fit[it], times[it][phase].ms))
    best = next((it for it in others if are_measured[it] and fit[it]), others[0])
    others.remove(best)
    unknown = ["" if are_measured[best] and are_measured[it] else _IS_PREDICTED for it in others]
    changes = changes_to(times[best], [times[it] for it in others], unknown, BESIDE_BEST)
    return [(best, ()), *zip(others, changes, strict=True)]


class LanguageVariant(NamedTuple):
    """A change of an execution: what reads the prompt, what generates tokens, and how the change is made."""

    id: str
    prefill: LanguageQuestion
    decode: LanguageQuestion
    how: str

    @property
    def questions(self) -> tuple[LanguageQuestion, ...]:
        return tuple(dict.fromkeys((self.prefill, self.decode)))


def variants_of(asked: LanguageQuestion, runtimes: Sequence[Runtime]) -> Iterator[LanguageVariant]:
    """Yield all changes of one choice; `runtimes` are those that run language models here."""
    known = {asked}
    for name, how, change in _changes(asked, runtimes):
        # A runtime may not have such weights, or the model.
        with suppress(LanguageError):
            question = change()
            question = replace(question, precision=stored_precision(question.runtime, question.precision))
            _ = question.sizes
            # Two names may stand for the same weights.
            if question not in known:
                known.add(question)
                yield LanguageVariant(name, question, question, how)
    for number in _other_threads(asked):
        question = replace(asked, runtime=asked.runtime.with_threads(number))
        for first, second in ((asked, question), (question, asked)):
            name = f"threads-{first.threads}-{second.threads}"
            how = "an engine that takes one number of threads for each phase"
            yield LanguageVariant(name, first, second, _LLAMA_THREADS if is_llama_cpp(asked.runtime) else how)


def _other_threads(asked: LanguageQuestion) -> list[int]:
    return [it for it in dict.fromkeys((1, processors_here().number)) if it != asked.threads]


def _changes(
    asked: LanguageQuestion, runtimes: Sequence[Runtime]
) -> Iterator[tuple[str, str, Callable[[], LanguageQuestion]]]:
    """Yield the id of each change, how it is made, and the function that returns the changed execution."""
    model, runtime = asked.model, asked.runtime

    def on(changed: Runtime) -> Callable[[], LanguageQuestion]:
        return lambda: replace(asked, runtime=changed)

    for bits in WeightPrecision:
        if bits.bits < asked.precision.bits:
            yield f"weights-{bits.value}", f"--precision {bits.value}", partial(replace, asked, precision=bits)
    own = runtime.cache or CachePrecision.INT8
    for cache in (it for it in runtime.traits.caches if it.bits < own.bits):
        yield f"cache-{cache.value}", f"--cache {cache.value}", on(runtime.with_cache(cache))
    if runtime.traits.has_flash_attention:
        for flash in FlashAttention:
            if flash is not stated_flash_attention(runtime.identity):
                changed = runtime.with_flash_attention(flash)
                yield f"flash-{flash.value}", f"--flash-attention {flash.value}", on(changed)
    for number in _other_threads(asked):
        yield f"threads-{number}", f"--threads {number}", on(runtime.with_threads(number))
    for it in {it.framework: it for it in runtimes if it.framework != runtime.framework}.values():

        def elsewhere(there: Runtime = it) -> LanguageQuestion:
            bits = stored_precision(there, asked.precision.layout)
            return replace(asked, runtime=there.with_threads(asked.threads or None), precision=bits)

        yield f"runtime-{it.framework}", f"--runtime {it.name}", elsewhere
    sizes = model.architecture
    if not asked.scores_last_only:
        last = replace(model, architecture=replace(sizes, scores_last_only=True))
        how = "the option prune_lm_head of onnxruntime-genai's builder"
        yield "head-last", how, partial(replace, asked, model=last)
    half = replace(model, architecture=replace(sizes, vocabulary=max(1, sizes.vocabulary // 2)))
    yield "vocabulary-half", "a model with half of the vocabulary", partial(replace, asked, model=half)


def named_variants(
    asked: LanguageQuestion, runtimes: Sequence[Runtime], ids: Sequence[str]
) -> tuple[LanguageVariant, ...]:
    """Return the changes of these ids, or all of them; raise a UserError for an id that there is not."""
    known = {it.id: it for it in variants_of(asked, runtimes)}
    for it in ids:
        if it not in known and it != ALL:
            raise UserError(f"no what-if {it[:60]!r} of {asked.model.name}; there are {', '.join(known)}")
    return tuple(known.values() if ALL in ids else [known[it] for it in dict.fromkeys(ids)])


class KnownExecution(Protocol):
    """An execution of a language model, with what is known about it."""

    @property
    def times(self) -> PhaseTimes: ...

    @property
    def is_measured(self) -> bool: ...

    @property
    def engine(self) -> MeasuredEngine | None: ...


@dataclass(frozen=True)
class WhatIfs:
    """Predicts changes of an execution from what the store knew before, and judges those that were measured."""

    asked: LanguageQuestion
    own: KnownExecution
    # What the store knows of another execution, and what it would know without a measurement of that.
    known: Callable[[LanguageQuestion], KnownExecution]
    before: Callable[[LanguageQuestion], KnownExecution]

    def found(self, runtimes: Sequence[Runtime]) -> tuple[LanguageWhatIf, ...]:
        """Return all changes, those that are predicted to gain most first."""
        found = [self._what_if(it) for it in variants_of(self.asked, runtimes)]
        return tuple(sorted(found, key=lambda it: it.predicted[0].ratio))

    def _what_if(self, variant: LanguageVariant) -> LanguageWhatIf:
        both = [self.known(it) for it in (variant.prefill, variant.decode)]
        before = [self.before(it) for it in (variant.prefill, variant.decode)]
        (predicted,) = changes_to(self.own.times, [self._together(before)], [_IS_PREDICTED])
        measured: tuple[LanguageChange, ...] = ()
        if all(it.is_measured for it in both):
            reason = "" if self.own.is_measured else "what it is compared with is predicted"
            (measured,) = changes_to(self.own.times, [self._together(both)], [reason])
        was, prefill, decode = (it.engine for it in (self.own, *both))
        rates = (was.decode_tokens_per_second, decode.decode_tokens_per_second) if was and decode else None
        return LanguageWhatIf(
            id=variant.id,
            how=variant.how,
            predicted=predicted,
            measured=measured,
            end_to_end_prefill=prefill.prefill_ms / was.prefill_ms if was and prefill else None,
            end_to_end_decode=rates[0] / rates[1] if rates else None,
        )

    def _together(self, both: Sequence[KnownExecution]) -> PhaseTimes:
        """Return the latencies of an execution whose phases may differ."""
        prefill, decode = (it.times[phase] for it, phase in zip(both, (PREFILL, DECODE), strict=True))
        return phase_times(prefill, [decode], self.asked.generate)
