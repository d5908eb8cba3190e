"""Language models asked and measured: several executions and systems beside each other, and what changes would gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby, product
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.language_answers import (
    MS,
    Bounds,
    KnownExecution,
    LanguageAnswer,
    LanguageChange,
    LanguageFigures,
    LanguageOptions,
    LanguageWhatIf,
    known_execution,
    language_runtimes,
    left_out,
    questions,
)
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.comparison import Prices, cost_of, price_of, read_prices
from dlbricks_tui.estimate.system_estimate import WIDEST_OF_THE_BEST, find_system
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.language.architecture import LanguageError, LanguagePhase, WeightPrecision
from dlbricks_tui.language.composing import PhaseTimes, phase_times, timings
from dlbricks_tui.language.llama_cpp import PROTOCOL as LLAMA_PROTOCOL
from dlbricks_tui.language.opening import NamedModel, library_models
from dlbricks_tui.language.orders import (
    LANGUAGE,
    LanguageOrder,
    LanguageQuestion,
    computing,
    is_llama_cpp,
    stored_precision,
)
from dlbricks_tui.language.predicting import BrickPredictor, measured_ways
from dlbricks_tui.recorded_host import Processors, processors_here
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import (
    CachePrecision,
    FlashAttention,
    stated_flash_attention,
    stated_python,
    stated_threads,
)
from dlbricks_tui.store.change import BESIDE_BEST, MODELS, Limits, Timing, Verdict, all_compared, known_changes
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import by_id

if TYPE_CHECKING:
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.store.records import System

PREFILL, DECODE = LanguagePhase.PREFILL, LanguagePhase.DECODE

ALL = "all"

# Why the verdict on an execution is unknown.
_IS_PREDICTED = "it is predicted"

_LLAMA_THREADS = "the options --threads and --threads-batch of llama.cpp"


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
            bits = stored_precision(question.runtime, question.precision)
            question = replace(question, precision=bits, runtime=computing(question.runtime, bits))
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
    return [it for it in dict.fromkeys((1, processors_here().to_use)) if it != asked.threads]


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
    for smaller in (it for it in runtime.traits.caches if it.bits < own.bits):
        yield f"cache-{smaller.value}", f"--cache {smaller.value}", on(runtime.with_cache(smaller))
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


def what_ifs_of(own: KnownExecution, runtimes: Sequence[Runtime]) -> tuple[LanguageWhatIf, ...]:
    """Predict all changes of an execution from what the store knew before them, those that gain most first.

    Those that were measured are judged, too.
    """

    def together(both: Sequence[KnownExecution]) -> PhaseTimes:
        """Return the latencies of an execution whose phases may differ."""
        prefill, decode = (it.times[phase] for it, phase in zip(both, (PREFILL, DECODE), strict=True))
        return phase_times(prefill, [decode], own.question.generate)

    def what_if(variant: LanguageVariant) -> LanguageWhatIf:
        both = [own.known(it) for it in (variant.prefill, variant.decode)]
        before = [own.before(it) for it in (variant.prefill, variant.decode)]
        (predicted,) = changes_to(own.times, [together(before)], [_IS_PREDICTED])
        measured: tuple[LanguageChange, ...] = ()
        if all(it.is_measured for it in both):
            reason = "" if own.is_measured else "what it is compared with is predicted"
            (measured,) = changes_to(own.times, [together(both)], [reason])
        was, prefill, decode = (it.engine for it in (own, *both))
        rates = (was.decode_tokens_per_second, decode.decode_tokens_per_second) if was and decode else None
        return LanguageWhatIf(
            id=variant.id,
            how=variant.how,
            predicted=predicted,
            measured=measured,
            end_to_end_prefill=prefill.prefill_ms / was.prefill_ms if was and prefill else None,
            end_to_end_decode=rates[0] / rates[1] if rates else None,
        )

    return tuple(sorted(map(what_if, variants_of(own.question, runtimes)), key=lambda it: it.predicted[0].ratio))


# The usual time to measure a model in an execution, beside its runs: 20 to 80 s in all.
_SECONDS, _RUNS = 40.0, 12


def stored_answers(
    models: Sequence[NamedModel], options: LanguageOptions, data: DataFolder, *, has_curves: bool = True
) -> tuple[LanguageAnswer, ...]:
    """Return an answer for each model in each execution, from the store, and predicted where it lacks bricks.

    Several executions of a model are compared, and the best comes first.
    """
    system = fingerprint()
    with ResultsDatabase(data.store) as store:

        @cache
        def host(runtime: Runtime) -> BrickPredictor:
            return BrickPredictor.of_host(store, system.id, runtime.identity, runtime.settings.threads or 0)

        asked = [known_execution(it, store, system, host(it.runtime)) for it in questions(models, options, data)]
        runtimes = language_runtimes(data) if options.what_ifs else ()
        found: list[LanguageAnswer] = []
        for _, group in groupby(asked, lambda it: it.question.model):
            of_model = list(group)
            answers = [it.answer(has_curves=has_curves) for it in of_model]
            if options.what_ifs:
                changes = [what_ifs_of(it, runtimes) for it in of_model]
                answers = [replace(it, what_ifs=own) for it, own in zip(answers, changes, strict=True)]
            if len(answers) > 1:
                are_measured, fit = [it.is_measured for it in answers], [it.fits for it in answers]
                ordered = changes_from_best([it.times for it in of_model], are_measured, fit, options.best_for)
                answers = [replace(answers[place], changes=own) for place, own in ordered]
            found += answers
        return tuple(found)


def library_answers(
    options: LanguageOptions, data: DataFolder, others: Sequence[NamedModel] = ()
) -> tuple[LanguageAnswer, ...]:
    """Return answers without curves: of other models, and of the library but for those of the same names."""
    names = {it.name for it in others}
    library = [it for it in library_models() if it.name not in names]
    return stored_answers((*others, *library), options, data, has_curves=False)


def left_out_of_library(options: LanguageOptions, data: DataFolder) -> Iterator[str]:
    """Yield what no answer about the library has, a line for each kind."""
    return left_out(library_models(), options, data)


def measure(order: LanguageOrder, data: DataFolder, take: Callable[[Event], None]) -> None:
    """Measure in a process of its own, and pass on its messages; raise JobError if it fails."""
    # Loaded here: stored answers need no process.
    from dlbricks_tui.jobs.process import JobProcess

    JobProcess.new(LANGUAGE, order, data, order.models).run(take)


def language_order(
    models: Sequence[NamedModel],
    options: LanguageOptions,
    data: DataFolder,
    *,
    end_to_end: bool = False,
    probe: bool = False,
) -> LanguageOrder:
    """Return what is to be measured for answers, and for the what-ifs that are to be proved."""
    asked = questions(models, options, data)
    runtimes = language_runtimes(data) if options.prove else ()
    changed = [it for each in asked for of in named_variants(each, runtimes, options.prove) for it in of.questions]
    return LanguageOrder(tuple(dict.fromkeys((*asked, *changed))), end_to_end, probe)


def seconds_to_measure(answers: Sequence[LanguageAnswer]) -> float:
    """Return how long measuring what these answers lack takes about, in seconds."""
    return sum(
        _SECONDS + _RUNS * (it.prefill_ms + 2 * MS / it.decode_tokens_per_second) / MS
        for it in answers
        if not it.is_measured
    )


_LEAST_COVERAGE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCost:
    """The dollars for a million tokens, one request after another, on a machine that does nothing else."""

    dollars_per_hour: float
    # For generated tokens, with the 95 % interval.
    dollars_per_million: float
    interval: Bounds
    # For tokens of the prompt.
    dollars_per_million_of_prompt: float
    interval_of_prompt: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageOnSystem(LanguageFigures):
    """A language model on a system. Speeds are null if nothing is known of the system but its description."""

    system_name: str
    # True for the system that the command runs on.
    is_host: bool
    # What the figures rest on: `bricks` of the model that were measured there, bricks of `other models`, the `peaks`
    # of the system with what other systems reach of theirs, or only its `description`.
    rests_on: str
    decode_tokens_per_second: float | None
    prefill_tokens_per_second: float | None
    first_token_ms: float | None
    # The 95 % intervals of these three.
    decode_interval: Bounds | None
    prefill_interval: Bounds | None
    first_token_interval_ms: Bounds | None
    # The other systems that have shown what the runtime reaches of their peaks.
    compared_with: tuple[str, ...]
    # Null without a price, or without a speed.
    cost: TokenCost | None
    # Of the systems whose interval is narrow enough.
    quickest: bool = False
    cheapest: bool = False
    # Against the quickest; null for that itself, and where one of both has no speed.
    verdict: str | None = None
    reason: str = ""

    @property
    def competes(self) -> bool:
        """True if it may be the best: it fits, and was measured or predicted with a narrow interval."""
        if self.decode_tokens_per_second is None or self.decode_interval is None or not self.fits:
            return False
        low, high = self.decode_interval
        is_narrow = high - low <= 2 * WIDEST_OF_THE_BEST * self.decode_tokens_per_second
        return is_narrow or not self.is_predicted

    @property
    def timing(self) -> Timing | None:
        """The time for a token; None without a speed."""
        if self.decode_tokens_per_second is None or self.decode_interval is None:
            return None
        low, high = self.decode_interval
        return Timing(value_ms=MS / self.decode_tokens_per_second, low_ms=MS / high, high_ms=MS / low)


def language_on_systems(
    models: Sequence[NamedModel],
    options: LanguageOptions,
    data: DataFolder,
    names: Sequence[str] = (),
    threads_here: int | None = None,
) -> tuple[LanguageOnSystem, ...]:
    """Return each model on the systems of these names, or on this host and all systems of the store, the best first.

    Without threads in the options, `threads_here` are those of this host, and other systems have their usual ones.
    Raise a UserError for a name that no system has.
    """
    host, registry = fingerprint(), Registry(data.path)
    found: list[LanguageOnSystem] = []
    with ResultsDatabase(data.store) as store:
        known = {host.id: host, **by_id(store.systems())}
        wanted = dict.fromkeys([find_system(it, known) for it in names] or known)
        on_systems = _OnSystems(store, host, read_prices(data.path))
        for model in models:
            asked = questions([model], replace(options, threads=()), data)
            answers = []
            for one, system in product(asked, [known[it] for it in wanted]):
                own = (threads_here,) if threads_here and system.id == host.id else ()
                variants = on_systems.variants(registry.as_registered(one.runtime), system, options.threads or own)
                answers += on_systems.answers(one, system, variants, is_each_wanted=bool(options.threads))
            found += ranked(answers)
    return tuple(found)


class _OnSystems:
    """Answers for systems of a store."""

    def __init__(self, store: ResultsDatabase, host: System, prices: Prices) -> None:
        self._store, self._host, self._prices = store, host, prices
        self._predictor = cache(self._predictor_on)
        self._with_peaks = {it.system for it in store.peaks()}
        self._ways = cache(self._measured_ways)

    def variants(self, runtime: Runtime, system: System, threads: Sequence[int]) -> Sequence[Runtime]:
        """Return a runtime with these threads; by default, with a system's usual ones, and those measured there."""
        there = Processors.of(system.cores, dict(system.facts))
        usual = runtime.on(there).settings.threads if there else runtime.settings.threads
        measured = [stated_threads(it) for of, it in self._ways(runtime) if of == system.id]
        wanted = threads or [usual or system.cores_to_use or 1, *(it for it in measured if it)]
        return [runtime.with_threads(it) for it in dict.fromkeys(wanted)]

    def answers(
        self, asked: LanguageQuestion, system: System, variants: Iterable[Runtime], *, is_each_wanted: bool
    ) -> list[LanguageOnSystem]:
        """Return the answer of each variant, or of the one of which most was measured, the fastest of equal ones."""
        found = [self._answer(replace(asked, runtime=it), system) for it in variants]
        best = max(found, key=lambda it: (it.coverage, it.decode_tokens_per_second or 0.0))
        return found if is_each_wanted else [best]

    def _answer(self, asked: LanguageQuestion, system: System) -> LanguageOnSystem:
        # It may run in another version of Python there.
        there = [it for of, it in self._ways(asked.runtime) if of == system.id and stated_threads(it) == asked.threads]
        if there and (python := stated_python(there[0])):
            asked = replace(asked, runtime=replace(asked.runtime, python_version=python))
        predictor = self._predictor(system, asked.runtime.identity, asked.threads)
        answer = known_execution(asked, self._store, system, predictor).answer(has_curves=False)
        others = [it.system for it in predictor.others]
        if is_llama_cpp(asked.runtime):
            alike = [of for of, it in self._ways(asked.runtime) if it == asked.runtime.identity]
            others = [it for it in alike if it != system.id]
        has_peaks = predictor.rates.is_measured or system.id in self._with_peaks
        rests_on = "other models" if there else "peaks" if has_peaks else "description"
        # Small bricks occur in many models.
        rests_on = "bricks" if answer.coverage >= _LEAST_COVERAGE else rests_on
        is_known, within = rests_on != "description", answer.intervals
        return taken(
            LanguageOnSystem,
            answer,
            system_name=system.name,
            is_host=system.id == self._host.id,
            rests_on=rests_on,
            compared_with=tuple(dict.fromkeys(others)),
            decode_tokens_per_second=answer.decode_tokens_per_second if is_known else None,
            prefill_tokens_per_second=answer.prefill_tokens_per_second if is_known else None,
            first_token_ms=answer.first_token_ms if is_known else None,
            decode_interval=within.decode_tokens_per_second if is_known else None,
            prefill_interval=within.prefill_tokens_per_second if is_known else None,
            first_token_interval_ms=within.first_token_ms if is_known else None,
            cost=self._cost(answer, system) if is_known else None,
        )

    def _measured_ways(self, runtime: Runtime) -> Sequence[tuple[str, str]]:
        return measured_ways(self._store, runtime.identity, *([LLAMA_PROTOCOL] if is_llama_cpp(runtime) else []))

    def _predictor_on(self, system: System, runtime: str, threads: int) -> BrickPredictor:
        if system.id == self._host.id:
            return BrickPredictor.of_host(self._store, system.id, runtime, threads)
        return BrickPredictor.of_system(self._store, system, runtime, threads)

    def _cost(self, answer: LanguageAnswer, system: System) -> TokenCost | None:
        price = price_of(self._prices, system.id, system)
        if price is None:
            return None

        def of(tokens_per_second: float) -> float:
            return cost_of(MS / tokens_per_second, price)

        decode, prefill = answer.intervals.decode_tokens_per_second, answer.intervals.prefill_tokens_per_second
        return TokenCost(
            dollars_per_hour=price,
            dollars_per_million=of(answer.decode_tokens_per_second),
            interval=(of(decode[1]), of(decode[0])),
            dollars_per_million_of_prompt=of(answer.prefill_tokens_per_second),
            interval_of_prompt=(of(prefill[1]), of(prefill[0])),
        )


def ranked(found: Iterable[LanguageOnSystem]) -> Iterator[LanguageOnSystem]:
    """Yield one model on systems, the quickest first, with verdicts against that; those without a speed come last."""

    def order(it: LanguageOnSystem) -> tuple[bool, bool, bool, float]:
        rate = it.decode_tokens_per_second
        return rate is None, not it.fits, not it.competes, -(rate or 0.0)

    rows = sorted(found, key=order)
    best = next((it for it in rows if it.competes), None)
    priced = [(it.cost.dollars_per_million, it) for it in rows if it.competes and it.cost]
    thrifty = min(priced, key=lambda pair: pair[0])[1] if priced else None
    first = None if best is None else best.timing
    changes = known_changes([(first, None if it is best else it.timing) for it in rows], BESIDE_BEST)
    # A single system is neither the quickest nor the cheapest.
    is_several = len({it.system for it in rows}) > 1
    for it, change in zip(rows, changes, strict=True):
        yield replace(
            it,
            quickest=is_several and it is best,
            cheapest=is_several and it is thrifty,
            verdict=None if change is None else change.verdict.value,
            reason="" if change is None else change.reason,
        )
