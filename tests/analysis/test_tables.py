import pytest

from dlbricks_tui.analysis.bounds import Gap
from dlbricks_tui.analysis.tables import best_gains, by_execution, mean_gain, mean_ratio, middle
from dlbricks_tui.analysis.what_if import Execution, Gain, WhatIf, WhatIfKind
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Variant
from tests.analysis.executions import RUNTIME
from tests.analysis.rows import analysed

EXECUTION = Execution(RUNTIME, Level.FUSED)


def what_if(name: str, gain: float, kind: WhatIfKind = WhatIfKind.RUNTIME, possible: bool = True) -> WhatIf:
    change = EXECUTION if possible else None
    return WhatIf(name, kind, EXECUTION, change, 1.0, Gain(gain, gain - 0.1, gain + 0.1), (), "")


def test_the_best_change_of_a_kind_is_the_one_that_can_be_run_and_gains_most_or_else_a_bound() -> None:
    found = [what_if("small", 0.1), what_if("large", 0.3), what_if("mix", 0.5, possible=False)]
    best = best_gains(found, {"large": 0.28}.get)[WhatIfKind.RUNTIME]
    assert (best.what_if, best.predicted, best.proved, best.is_bound) == ("large", 0.3, 0.28, False)
    best = best_gains([what_if("loss", -0.2), what_if("mix", 0.05, possible=False)], lambda _: None)[WhatIfKind.RUNTIME]
    assert (best.what_if, best.is_bound) == ("mix", True)
    gains = best_gains([what_if("off", -0.2, WhatIfKind.FUSION)], lambda _: None)
    assert gains[WhatIfKind.FUSION].predicted == -0.2


def test_means_are_geometric_and_leave_missing_values_out() -> None:
    assert mean_gain([0.5, None, -1.0]) == pytest.approx(0.0)
    assert mean_gain([None]) is None
    # A change that leaves no latency is no reason to fail.
    assert mean_gain([1.0]) == pytest.approx(1.0)
    assert mean_ratio([2.0, None, 8.0]) == pytest.approx(4.0)
    assert middle([None, 3.0, 1.0, 2.0]) == 2.0
    assert (mean_ratio([]), middle([None])) == (None, None)


def test_the_shares_of_the_best_and_of_the_gap_are_the_whole_latency() -> None:
    shares = analysed(measured_ms=10.0, best_ms=6.0, gap=Gap(10**9, 10**9, 2 * 10**9)).shares
    assert shares is not None
    assert shares.best == pytest.approx(0.6)
    assert shares.unexplained == pytest.approx(0.2)
    parts = shares.best + shares.slower_layers + shares.conversions + shares.unexplained
    assert parts == pytest.approx(1.0)


def test_a_model_that_was_not_timed_end_to_end_is_compared_by_its_estimate() -> None:
    found = analysed(measured_ms=None, estimate_ms=9.0, best_ms=6.0, best_parallel_ms=3.0)
    assert (found.over_best, found.over_parallel, found.over_roofline) == (1.5, 3.0, None)


def test_only_models_of_one_execution_are_together() -> None:
    one, other, wide = analysed("a"), analysed("b"), analysed("c", variant=Variant(threads=2))
    assert by_execution([one, wide, other]) == [[one, other], [wide]]
