"""Executions of a language model beside each other: the changes between them, and what changes of one would gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dlbricks_tui.api.documents import taken
from dlbricks_tui.errors import UserError
from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.language.composing import PhaseTimes, phase_times, step_time, timings
from dlbricks_tui.language.decoder import Decoder
from dlbricks_tui.language.orders import LanguagePhase, LanguageQuestion
from dlbricks_tui.language.predicting import FOREIGN, SIBLING, Alike, BrickPredictor
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.change import Verdict, all_compared
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import System

ALL = "all"
# Why the verdict on an execution is unknown.
_IS_PREDICTED = "it is predicted"


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
    was: PhaseTimes, others: Sequence[PhaseTimes], unknown: Sequence[str]
) -> list[tuple[LanguageChange, ...]]:
    """Return the changes from one execution to each of the others; `unknown` has why a verdict is not possible."""
    found: list[list[LanguageChange]] = [[] for _ in others]
    for phase in LanguagePhase:
        changes = all_compared([timings(was[phase], it[phase]) for it in others])
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
    changes = changes_to(times[best], [times[it] for it in others], unknown)
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

    def one(name: str, question: LanguageQuestion, how: str) -> LanguageVariant:
        return LanguageVariant(name, question, question, how)

    own, model, runtime = asked.precision, asked.model, asked.runtime
    for bits in WeightPrecision:
        if bits.bits < own.bits:
            yield one(f"weights-{bits.value}", replace(asked, precision=bits), f"--precision {bits.value}")
    for cache in runtime.traits.caches:
        if runtime.cache is not None and cache.bits < runtime.cache.bits:
            by_cache = replace(asked, runtime=runtime.with_cache(cache))
            yield one(f"cache-{cache.value}", by_cache, f"--cache {cache.value}")
    others = [it for it in dict.fromkeys((1, processors_here().number)) if it != asked.threads]
    by_threads = {it: replace(asked, runtime=runtime.with_threads(it)) for it in others}
    for number, question in by_threads.items():
        yield one(f"threads-{number}", question, f"--threads {number}")
    for question in by_threads.values():
        for first, second in ((asked, question), (question, asked)):
            name = f"threads-{first.threads}-{second.threads}"
            yield LanguageVariant(name, first, second, "an engine that takes one number of threads for each phase")
    for it in {it.framework: it for it in runtimes if it.framework != runtime.framework}.values():
        question = replace(asked, runtime=it.with_threads(asked.threads or None))
        yield one(f"runtime-{it.framework}", question, f"--runtime {it.name}")
    sizes = model.architecture
    if not asked.scores_last_only:
        last = replace(model, architecture=replace(sizes, scores_last_only=True))
        yield one("head-last", replace(asked, model=last), "the option prune_lm_head of onnxruntime-genai's builder")
    half = replace(model, architecture=replace(sizes, vocabulary=max(1, sizes.vocabulary // 2)))
    yield one("vocabulary-half", replace(asked, model=half), "a model with half of the vocabulary")


def named_variants(
    asked: LanguageQuestion, runtimes: Sequence[Runtime], ids: Sequence[str]
) -> tuple[LanguageVariant, ...]:
    """Return the changes of these ids, or all of them; raise a UserError for an id that there is not."""
    known = {it.id: it for it in variants_of(asked, runtimes)}
    for it in ids:
        if it not in known and it != ALL:
            raise UserError(f"no what-if {it[:60]!r} of {asked.model.name}; there are {', '.join(known)}")
    return tuple(known.values() if ALL in ids else [known[it] for it in dict.fromkeys(ids)])


@dataclass(frozen=True)
class WhatIfs:
    """Predicts changes of an execution from what the store knew before, and judges those that were measured."""

    asked: LanguageQuestion
    store: ResultsDatabase
    system: System
    # What is known of the execution itself.
    host: BrickPredictor
    times: PhaseTimes

    def found(self, runtimes: Sequence[Runtime]) -> tuple[LanguageWhatIf, ...]:
        """Return all changes, those that are predicted to gain most first."""
        found = []
        for variant in variants_of(self.asked, runtimes):
            # A runtime may not have all layers.
            try:
                found.append(self._what_if(variant))
            except UserError:
                continue
        return tuple(sorted(found, key=lambda it: it.predicted[0].ratio))

    def _what_if(self, variant: LanguageVariant) -> LanguageWhatIf:
        hosts = [self._known(it) for it in (variant.prefill, variant.decode)]
        is_measured = all(it.has_measured(of) for it, of in zip(hosts, (variant.prefill, variant.decode), strict=True))
        before = [self._before(it) for it in (variant.prefill, variant.decode)]
        (predicted,) = changes_to(self.times, [times_of(variant, before)], [_IS_PREDICTED])
        measured: tuple[LanguageChange, ...] = ()
        if is_measured:
            reason = "" if self.host.has_measured(self.asked) else "what it is compared with is predicted"
            (measured,) = changes_to(self.times, [times_of(variant, hosts)], [reason])
        return LanguageWhatIf(
            id=variant.id, how=variant.how, predicted=predicted, measured=measured, **self._end_to_end(variant)
        )

    def _known(self, asked: LanguageQuestion) -> BrickPredictor:
        if asked.runtime.identity == self.asked.runtime.identity:
            return self.host
        return BrickPredictor.of_host(self.store, self.system.id, asked.runtime.identity, asked.threads)

    def _before(self, asked: LanguageQuestion) -> BrickPredictor:
        """Return what would be known without measurements of a changed execution."""
        if asked == self.asked:
            return self.host
        runtime, is_same = asked.runtime, asked.runtime.identity == self.asked.runtime.identity
        own = {key for it in self.asked.steps for key in self.asked.decoder(it).keys} if is_same else set()
        new = {key for it in asked.steps for key in asked.decoder(it).keys} - own
        doubt = SIBLING if runtime.framework == self.asked.runtime.framework else FOREIGN
        bits = [it.cache.bits if it.cache else 32 for it in (runtime, self.asked.runtime)]
        like = None if is_same else Alike(self.host, doubt, bits[0] / bits[1])
        return BrickPredictor.of_host(self.store, self.system.id, runtime.identity, asked.threads, new, like)

    def _end_to_end(self, variant: LanguageVariant) -> Mapping[str, float | None]:
        # Loaded here: it needs what starts processes.
        from dlbricks_tui.language.end_to_end import engine_results

        was, prefill, decode = (
            engine_results(self.store, self.system.id, it) for it in (self.asked, variant.prefill, variant.decode)
        )
        return {
            "end_to_end_prefill": prefill.prefill_ms / was.prefill_ms if was and prefill else None,
            "end_to_end_decode": (
                was.decode_tokens_per_second / decode.decode_tokens_per_second if was and decode else None
            ),
        }


def times_of(variant: LanguageVariant, hosts: Sequence[BrickPredictor]) -> PhaseTimes:
    """Return the latencies of an execution whose phases may differ, by what is known of both."""
    prefill, decode = hosts

    def decoders(asked: LanguageQuestion) -> list[Decoder]:
        return [asked.decoder(it) for it in asked.steps]

    first, *_ = decoders(variant.prefill)
    _, *steps = decoders(variant.decode)
    return phase_times(
        step_time(first, prefill.time_of), [step_time(it, decode.time_of) for it in steps], variant.decode.generate
    )
