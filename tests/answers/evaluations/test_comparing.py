"""Today's results beside earlier ones, as plain values."""

from typing import Any

import pytest

from dlbricks_tui.answers.evaluations.results import comparison
from dlbricks_tui.evaluations.change import CheckVerdict
from tests.evaluations.results import recorded

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
    (found,) = comparison([recorded(**changed)], [recorded()], 0.03)
    assert (found.verdict, found.reason) == (CheckVerdict.UNKNOWN, reason)


def test_other_verdicts_need_no_reason() -> None:
    found = comparison([recorded(30.0), recorded(60.0, threads=1)], [recorded(), recorded(threads=1)], 0.03)
    assert [(it.verdict, it.reason) for it in found] == [(CheckVerdict.SAME, ""), (CheckVerdict.SLOWER, "")]
