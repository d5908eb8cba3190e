"""Today's results beside earlier ones, as plain values."""

from typing import Any

import pytest

from dlbricks_tui.answers.evaluating import comparison
from dlbricks_tui.store.change import Verdict
from tests.evaluations.results import baseline

UNTIMED: dict[str, Any] = {"measured_ms": None, "low_ms": None, "high_ms": None, "samples_ms": ()}
UNESTIMATED: dict[str, Any] = {"estimate_ms": None, "estimate_low_ms": None, "estimate_high_ms": None}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"framework": "openvino"}, "there is no earlier result of this model by this framework"),
        ({**UNTIMED, **UNESTIMATED}, "it was not measured both times: time whole models, or all bricks, in both"),
        ({"samples_ms": (30.0, 30.1)}, "fewer than 5 samples"),
        ({"low_ms": 20.0, "high_ms": 40.0}, "its interval reaches more than 3.0 % to a side"),
    ],
)
def test_an_unknown_verdict_has_its_reason(changed: dict[str, Any], reason: str) -> None:
    (found,) = comparison([baseline(**changed)], [baseline()], 0.03)
    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, reason)


def test_other_verdicts_need_no_reason() -> None:
    found = comparison([baseline(30.0), baseline(60.0, threads=1)], [baseline(), baseline(threads=1)], 0.03)
    assert [(it.verdict, it.reason) for it in found] == [(Verdict.SAME, ""), (Verdict.SLOWER, "")]


def test_an_earlier_result_of_one_process_gives_no_verdict_on_twelve_percent() -> None:
    now, one, three = baseline(33.6), baseline(processes=1), baseline(processes=3)
    (found,) = comparison([now], [one], 0.1)
    assert (found.verdict, found.significant) == (Verdict.UNKNOWN, True)
    assert found.reason == "processes differ by up to 10.0 %: measure both in 3 runs"
    assert [it.verdict for it in comparison([now], [three], 0.1)] == [Verdict.SLOWER]
