"""Load of a language model, simulated: users who wait for an answer, token by token, and ask again.

An answer has two delays: the time to its first token, and the mean time of each later one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import ceil

from dlbricks_tui.runtime.protocol import ServedAnswer
from dlbricks_tui.scenarios.kinds import MOST_USERS
from dlbricks_tui.scenarios.scenario import percentile_of

# For each user, the seconds before each request: since the start, and since the answer to the last one.
Pauses = tuple[tuple[float, ...], ...]
# At least so many answers are simulated and driven, and of each user; a drive of them takes about so long at most.
_SIMULATED, _FEWEST_SIMULATED = 1000, 12
_DRIVEN, _FEWEST_DRIVEN, _MOST_SECONDS = 20, 3, 120.0
_SEED = 1
_NS_PER_MS, _NS_PER_SECOND, _MS_PER_SECOND = 1e6, 1e9, 1e3


class TokenServing(str, Enum):
    """How an engine shares its time among requests."""

    # One answer after another.
    SINGLE = "single"
    # The requests that wait when a batch has ended are the next batch.
    STATIC = "static"
    # Between two steps waiting prompts are read, and their answers join the batch.
    CONTINUOUS = "continuous"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenScenario:
    """The requests of users, and the bounds that a share of the answers has to meet."""

    prompt: int
    generate: int
    # Of the delays, in percent.
    percentile: float
    first_token_ms: float
    per_token_ms: float
    # The mean of the pauses between an answer and the next request of the user.
    think_s: float
    # The most answers that are made together.
    batch: int

    def largest(self, serving: TokenServing) -> int:
        return 1 if serving is TokenServing.SINGLE else self.batch

    def pauses(self, users: int, answer_ms: float, *, is_driven: bool = False) -> Pauses:
        """Return when users ask.

        All of them begin with a pause, as most of them are in one at any time: first requests within one pause would
        meet the second ones, and overload the engine. Without pauses, the time of an answer alone spreads them.
        """
        from numpy.random import default_rng

        if is_driven:
            affordable = int(_MOST_SECONDS * _MS_PER_SECOND / (users * answer_ms + self.think_s * _MS_PER_SECOND))
            rounds = max(_FEWEST_DRIVEN, min(ceil(_DRIVEN / users), affordable))
        else:
            rounds = max(_FEWEST_SIMULATED, ceil(_SIMULATED / users))
        spread_s, found = answer_ms / _MS_PER_SECOND, []
        for user in range(users):
            first_s, *later_s = self.think_s * default_rng((_SEED, user)).standard_exponential(rounds + 1)
            found.append((spread_s * user / users + first_s, *later_s))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class StepLatencies:
    """The latency of a prompt, and of steps by the number of answers that get a token each, from 1 on."""

    prefill_ms: float
    decode_ms: Mapping[int, float]

    def step_ms(self, answers: int) -> float:
        """Return the latency of a step; between two known numbers it lies on a line."""
        if answers in self.decode_ms:
            return self.decode_ms[answers]
        known = sorted(self.decode_ms)
        # Beyond the largest, the last two count on.
        low, high = next(((a, b) for a, b in pairwise(known) if answers < b), tuple(known[-2:]))
        slope = (self.decode_ms[high] - self.decode_ms[low]) / (high - low)
        return self.decode_ms[low] + slope * (answers - low)

    def answer_ms(self, generate: int) -> float:
        """Return the time of an answer that is served alone."""
        return self.prefill_ms + (generate - 1) * self.step_ms(1)


def served(
    steps: StepLatencies, serving: TokenServing, largest: int, generate: int, pauses: Pauses
) -> list[ServedAnswer]:
    """Simulate an engine with at most `largest` answers at a time; return the answers in the order of their ends."""
    joins = serving is TokenServing.CONTINUOUS
    if joins and generate == 1:
        # An answer ends with its prompt, and joins none.
        largest = 1
    waiting = [(round(it[0] * _NS_PER_SECOND), user) for user, it in enumerate(pauses) if it]
    heapify(waiting)
    asked = dict.fromkeys(range(len(pauses)), 1)
    found: list[ServedAnswer] = []
    active: list[_UnderWay] = []
    prefill_ns, now = round(steps.prefill_ms * _NS_PER_MS), 0
    while waiting or active:
        if not active:
            now = max(now, waiting[0][0])
        if joins or not active:
            while waiting and waiting[0][0] <= now and len(active) < largest:
                due, user = heappop(waiting)
                now += prefill_ns if joins else 0
                active.append(_UnderWay(user, due, now, generate - 1))
            if not joins:
                # The prompts of a batch are read together.
                now += prefill_ns * len(active)
                for it in active:
                    it.first_ns = now
        if left := min(it.lacks for it in active):
            step_ns = steps.step_ms(len(active)) * _NS_PER_MS
            if joins and waiting and len(active) < largest:
                # A request that arrives during a step is read behind it.
                left = min(left, max(1, ceil((waiting[0][0] - now) / step_ns)))
            now += round(left * step_ns)
        for it in active:
            it.lacks -= left
            if not it.lacks:
                found.append(ServedAnswer(it.user, it.asked_ns, it.first_ns, now))
                if asked[it.user] < len(pauses[it.user]):
                    heappush(waiting, (now + round(pauses[it.user][asked[it.user]] * _NS_PER_SECOND), it.user))
                    asked[it.user] += 1
        active = [it for it in active if it.lacks]
    return found


@dataclass(slots=True)
class _UnderWay:
    """An answer that is being made, and the number of tokens that it lacks."""

    user: int
    asked_ns: int
    first_ns: int
    lacks: int


@dataclass(frozen=True, slots=True)
class Delays:
    """Percentiles of a delay, in milliseconds."""

    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    # The percentile that the bound applies to.
    bounded_ms: float

    @classmethod
    def of(cls, delays_ms: Sequence[float], percentile: float) -> Delays:
        ordered = sorted(delays_ms)
        return cls(*(percentile_of(ordered, each) for each in (50.0, 90.0, 95.0, 99.0, percentile)))


@dataclass(frozen=True, slots=True)
class TokenSamples:
    """The delays of answers in milliseconds, and the tokens per second of all users together."""

    first_ms: tuple[float, ...]
    # Of each answer, the mean of its tokens behind the first one.
    later_ms: tuple[float, ...]
    tokens_per_second: float

    @classmethod
    def of(cls, answers: Sequence[ServedAnswer], generate: int) -> TokenSamples:
        """Return the samples of full load: after as many answers as users, and before any user has had the last."""
        ends, last = sorted([it.ended_ns for it in answers]), dict[int, int]()
        for it in answers:
            last[it.user] = max(it.ended_ns, last.get(it.user, 0))
        begin, end = ends[len(last) - 1], min(last.values())
        if begin >= end:
            # Users hardly ever meet.
            begin, end = 0, ends[-1]
        counted = [it for it in answers if begin < it.ended_ns <= end]
        steps_ms = _NS_PER_MS * max(1, generate - 1)
        return cls(
            tuple([(it.first_ns - it.asked_ns) / _NS_PER_MS for it in counted]),
            tuple([(it.ended_ns - it.first_ns) / steps_ms for it in counted]),
            generate * len(counted) * _NS_PER_SECOND / (end - begin),
        )


@dataclass(frozen=True, slots=True)
class TokenLoad:
    """The delays and the throughput of an engine for a number of users."""

    users: int
    first_token: Delays
    # Of each answer, the mean of its tokens behind the first one.
    per_token: Delays
    # Of all users together.
    tokens_per_second: float
    # True if both delays are within their bounds.
    within: bool
    # The answers that count.
    answers: int

    @classmethod
    def of(cls, scenario: TokenScenario, users: int, found: TokenSamples) -> TokenLoad:
        first, later = (Delays.of(it, scenario.percentile) for it in (found.first_ms, found.later_ms))
        within = first.bounded_ms <= scenario.first_token_ms and later.bounded_ms <= scenario.per_token_ms
        return cls(users, first, later, found.tokens_per_second, within, len(found.first_ms))


@dataclass(frozen=True, slots=True)
class TokenQueue:
    """A scenario with the latencies of an engine's steps."""

    scenario: TokenScenario
    steps: StepLatencies

    def load(self, serving: TokenServing, users: int, pauses: Pauses | None = None) -> TokenLoad:
        """Return the simulated load of so many users, with pauses of their own or with those of the scenario."""
        asked = self.scenario
        if pauses is None:
            pauses = asked.pauses(users, self.steps.answer_ms(asked.generate))
        return TokenLoad.of(asked, users, TokenSamples.of(self.answers(serving, pauses), asked.generate))

    def answers(self, serving: TokenServing, pauses: Pauses) -> list[ServedAnswer]:
        """Return the simulated answers to users with these pauses."""
        asked = self.scenario
        return served(self.steps, serving, asked.largest(serving), asked.generate, pauses)

    def most_users(self, serving: TokenServing) -> int:
        """Return the most users within both bounds, up to MOST_USERS; 0 if one is too many."""
        good, bad = 0, 1
        while bad <= MOST_USERS and self.load(serving, bad).within:
            good, bad = bad, 2 * bad
        bad = min(bad, MOST_USERS + 1)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if self.load(serving, middle).within else (good, middle)
        return good
