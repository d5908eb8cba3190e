"""Users of a language model, simulated, against queues whose delays are known."""

from dataclasses import replace
from itertools import groupby
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.scenarios.kinds import MOST_USERS
from dlbricks_tui.scenarios.tokens import (
    Pauses,
    StepLatencies,
    TokenLoad,
    TokenQueue,
    TokenSamples,
    TokenScenario,
    TokenServing,
    served,
)

# A prompt takes a second, and the later tokens of an answer alone take another one.
STEPS = StepLatencies(1000.0, {1: 10.0, 2: 12.0, 4: 16.0, 8: 24.0})
GENERATE = 101
ASKED = TokenScenario(
    prompt=512, generate=GENERATE, percentile=90.0, first_token_ms=4000.0, per_token_ms=30.0, think_s=0.0, batch=8
)
QUEUE = TokenQueue(ASKED, STEPS)


def at_once(users: int, serving: TokenServing, *, requests: int = 4) -> TokenLoad:
    """Return the load of users whose first requests come together."""
    pauses: Pauses = ((0.0,) * requests,) * users
    answers = served(STEPS, serving, ASKED.largest(serving), GENERATE, pauses)
    return TokenLoad.of(ASKED, users, TokenSamples.of(answers, GENERATE))


@pytest.mark.parametrize("serving", list(TokenServing))
def test_a_single_user_waits_for_the_prompt_only(serving: TokenServing) -> None:
    found = QUEUE.load(serving, 1)
    assert (found.first_token.p50_ms, found.first_token.p99_ms) == (1000.0, 1000.0)
    assert (found.per_token.p50_ms, found.per_token.p99_ms) == (10.0, 10.0)
    assert found.tokens_per_second == pytest.approx(GENERATE / 2.0)


@pytest.mark.parametrize("users", [2, 3, 7])
def test_one_after_another_each_waits_for_the_answers_of_all_others(users: int) -> None:
    for found in (at_once(users, TokenServing.SINGLE), QUEUE.load(TokenServing.SINGLE, users)):
        assert found.first_token.p50_ms == found.first_token.p99_ms == pytest.approx((users - 1) * 2000.0 + 1000.0)
        assert found.per_token.p99_ms == 10.0
        assert found.tokens_per_second == pytest.approx(GENERATE / 2.0)


@pytest.mark.parametrize(("users", "step_ms"), [(1, 10.0), (2, 12.0), (3, 14.0), (8, 24.0)])
def test_a_batch_reads_its_prompts_together_and_steps_at_its_size(users: int, step_ms: float) -> None:
    found = at_once(users, TokenServing.STATIC)
    assert found.first_token.p50_ms == users * 1000.0
    assert found.per_token.p50_ms == pytest.approx(step_ms)
    assert found.tokens_per_second == pytest.approx(users * GENERATE / (users + (GENERATE - 1) * step_ms / 1000.0))


def test_a_prompt_that_is_read_between_steps_delays_the_tokens_of_others() -> None:
    # The second user asks in the middle of the first one's answer.
    pauses = ((0.0,), (1.5,))
    first, second = served(STEPS, TokenServing.CONTINUOUS, 8, GENERATE, pauses)
    assert (first.user, first.first_ns) == (0, 10**9)
    # 50 steps alone, the prompt, and 50 steps of two.
    assert first.ended_ns == 10**9 + 50 * 10**7 + 10**9 + 50 * 12 * 10**6
    assert second.first_ns - second.asked_ns == 10**9
    assert second.ended_ns == first.ended_ns + 50 * 10**7
    # Static batches leave the first one alone.
    first, second = served(STEPS, TokenServing.STATIC, 8, GENERATE, pauses)
    assert first.ended_ns == 2 * 10**9
    assert second.first_ns == 3 * 10**9


def test_more_users_than_a_batch_holds_wait_for_the_next_one() -> None:
    pauses = ((0.0,),) * 3
    answers = served(STEPS, TokenServing.STATIC, 2, GENERATE, pauses)
    assert [it.user for it in answers] == [0, 1, 2]
    assert answers[2].first_ns == answers[0].ended_ns + 10**9


def test_answers_of_one_token_have_no_later_ones() -> None:
    queue = TokenQueue(replace(ASKED, generate=1, first_token_ms=1500.0), STEPS)
    found = queue.load(TokenServing.CONTINUOUS, 1)
    assert (found.first_token.p99_ms, found.per_token.p99_ms) == (1000.0, 0.0)
    # No prompt of another user is read in between.
    single, joined = (queue.load(it, 3) for it in (TokenServing.SINGLE, TokenServing.CONTINUOUS))
    assert joined == single and joined.per_token.p99_ms == 0.0


def test_the_most_users_are_the_last_within_both_bounds() -> None:
    # Three wait 4 answers and a prompt, one after another.
    assert TokenQueue(replace(ASKED, first_token_ms=5000.0), STEPS).most_users(TokenServing.SINGLE) == 3
    assert TokenQueue(replace(ASKED, first_token_ms=4999.0), STEPS).most_users(TokenServing.SINGLE) == 2
    assert TokenQueue(replace(ASKED, first_token_ms=999.0), STEPS).most_users(TokenServing.SINGLE) == 0
    assert TokenQueue(replace(ASKED, per_token_ms=9.0), STEPS).most_users(TokenServing.SINGLE) == 0
    loose = replace(ASKED, first_token_ms=1e7, per_token_ms=1e6)
    assert [TokenQueue(loose, STEPS).most_users(it) for it in TokenServing] == [MOST_USERS] * 3


def test_pauses_make_room_for_more_users_and_are_the_same_each_time() -> None:
    slow = replace(ASKED, think_s=20.0)
    assert TokenQueue(slow, STEPS).most_users(TokenServing.SINGLE) > QUEUE.most_users(TokenServing.SINGLE)
    pauses = slow.pauses(3, 2000.0)
    assert pauses == slow.pauses(3, 2000.0)
    assert len({it[1] for it in pauses}) == 3
    # Those of a drive are the beginning.
    for few, many in zip(slow.pauses(3, 2000.0, is_driven=True), pauses, strict=True):
        assert few == many[: len(few)]
        assert len(few) >= 3


@pytest.mark.parametrize(("users", "think_s"), [(100, 300.0), (200, 600.0)])
def test_many_users_with_long_pauses_wait_as_in_a_queue_with_random_arrivals(users: int, think_s: float) -> None:
    asked = replace(ASKED, think_s=think_s)
    answers = TokenQueue(asked, STEPS).answers(TokenServing.SINGLE, asked.pauses(users, 2000.0))
    # An answer takes 2 seconds, so one waits busy / (1 - busy) seconds before the prompt is read.
    busy = users * 2.0 / (think_s + 2.0)
    expected_ms = 1000.0 * (busy / (1.0 - busy) + 1.0)
    assert fmean(TokenSamples.of(answers, GENERATE).first_ms) == pytest.approx(expected_ms, rel=0.15)


@given(st.sampled_from(TokenServing), st.integers(1, 12), st.integers(1, 8), st.floats(0, 30))
def test_every_request_is_answered_once_and_in_order(
    serving: TokenServing, users: int, batch: int, think_s: float
) -> None:
    asked = replace(ASKED, think_s=think_s, batch=batch)
    pauses = asked.pauses(users, 2000.0)
    answers = served(STEPS, serving, asked.largest(serving), GENERATE, pauses)
    assert len(answers) == sum(map(len, pauses))
    for _, of_user in groupby(sorted(answers), key=lambda it: it.user):
        last = 0
        for it in of_user:
            assert last <= it.asked_ns < it.first_ns < it.ended_ns
            last = it.ended_ns
