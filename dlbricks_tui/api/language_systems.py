"""Language models on the systems of the store: tokens per second, memory, and the cost of a million tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.language_models import Bounds, LanguageAnswer, LanguageOptions, answer_of, questions
from dlbricks_tui.estimate.comparison import WIDEST_OF_THE_BEST, Prices, cost_of, names_of, read_prices
from dlbricks_tui.estimate.system_estimate import find_system
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.language.llama_cpp import PROTOCOL as LLAMA_PROTOCOL
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import LanguageQuestion, is_llama_cpp
from dlbricks_tui.language.predicting import BrickPredictor, measured_ways
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import stated_python, stated_threads
from dlbricks_tui.store.change import BESIDE_BEST, Timing, known_changes
from dlbricks_tui.store.database import ResultsDatabase, processors_of
from dlbricks_tui.store.selections import by_id

if TYPE_CHECKING:
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.store.records import System

_MS = 1000.0
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
class LanguageOnSystem:
    """A language model on a system. Speeds are null if nothing is known of the system but its description."""

    model: str
    # The published name.
    title: str
    system: str
    system_name: str
    # True for the system that the command runs on.
    is_host: bool
    runtime: str
    precision: str
    # How the engine keeps keys and values; null if that is not known.
    cache: str | None
    threads: int
    prompt_tokens: int
    generated_tokens: int
    # What the figures rest on: `bricks` of the model that were measured there, bricks of `other models`, the `peaks`
    # of the system with what other systems reach of theirs, or only its `description`.
    rests_on: str
    # The share of the time that rests on measurements of this model's bricks there.
    coverage: float
    measured_when: str | None
    decode_tokens_per_second: float | None
    prefill_tokens_per_second: float | None
    first_token_ms: float | None
    # The 95 % intervals of these three.
    decode_interval: Bounds | None
    prefill_interval: Bounds | None
    first_token_interval_ms: Bounds | None
    # The other systems that have shown what the runtime reaches of their peaks.
    compared_with: tuple[str, ...]
    memory_bytes: int
    host_memory_bytes: int
    fits: bool
    # Null without a price, or without a speed.
    cost: TokenCost | None
    # Of the systems whose interval is narrow enough.
    quickest: bool = False
    cheapest: bool = False
    # Against the quickest; null for that itself, and where one of both has no speed.
    verdict: str | None = None
    reason: str = ""

    @property
    def is_predicted(self) -> bool:
        """True if some of its figures rests on predictions."""
        return self.coverage < 1.0

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
        return Timing(value_ms=_MS / self.decode_tokens_per_second, low_ms=_MS / high, high_ms=_MS / low)


def language_on_systems(
    models: Sequence[NamedModel], options: LanguageOptions, data: DataFolder, names: Sequence[str] = ()
) -> tuple[LanguageOnSystem, ...]:
    """Return each model on the systems of these names, or on this host and all systems of the store, the best first.

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
                variants = on_systems.variants(registry.as_registered(one.runtime), system, options.threads)
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
        there = processors_of(system)
        usual = runtime.on(there).settings.threads if there else runtime.settings.threads
        measured = [stated_threads(it) for of, it in self._ways(runtime) if of == system.id]
        wanted = threads or [usual or system.cores or 1, *(it for it in measured if it)]
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
        answer = answer_of(asked, self._store, system, predictor, has_curves=False)
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
        price = self._prices.of(names_of(system.id, {system.id: system}))
        if price is None:
            return None

        def of(tokens_per_second: float) -> float:
            return cost_of(_MS / tokens_per_second, price)

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
