from dataclasses import replace

import pytest

from dlbricks_tui.analysis.what_if import Gain, WhatIfKind
from dlbricks_tui.analysis.what_ifs import what_ifs_of
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.wording.what_ifs import interval_of, largest_gain, remarks_on, what_if_lines
from tests.analysis.executions import executed, with_nodes
from tests.bricks.graphs import chain

GRAPH = with_nodes(chain("conv", "relu", "pool"))
BASELINE = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}, end_to_end=Latency(6.5, 6.4, 6.6))
FASTER = executed(GRAPH, {0: 2.0, 1: 1.0, 2: 1.0}, threads=2)
NOISY = Gain(0.26, 0.05, 0.47)


def test_what_ifs_show_gain_proof_setting_and_layers() -> None:
    lines = what_if_lines(what_ifs_of(BASELINE, [FASTER]), {"threads-2": NOISY}.get, 80)
    assert lines[1].split()[:2] == ["threads-2", "+33.3"]
    assert lines[1].endswith("+26.0 %  +5 to +47")
    narrow = what_if_lines(what_ifs_of(BASELINE, [FASTER]), {"threads-2": NOISY}.get, 50)
    assert narrow[1].endswith("+26.0 %") and len(narrow[1]) < len(lines[1]) <= 80
    assert [line.strip() for line in lines[2:]] == ["OMP_NUM_THREADS=2 MXNET_ENGINE_TYPE=NaiveEngine", "layer0"]


def test_one_line_says_which_unproved_what_ifs_are_not_to_be_trusted() -> None:
    found = replace(what_ifs_of(BASELINE, [FASTER])[0], layers=())
    small, loss = (replace(found, id=str(gain), gain=Gain(gain, gain, gain)) for gain in (0.05, -0.5))
    parallel = replace(found, id="parallel-2", kind=WhatIfKind.PARALLEL)

    def none(_: str) -> None:
        return None

    unproved = what_if_lines([loss, small, found, parallel], none, 80)
    told = "to be proved first: parallel (never gained), gains below 10 %, sizes of losses"
    assert (len(unproved), unproved[-1]) == (10, told)
    assert len(told) <= 80
    assert what_if_lines([loss, small], {"0.05": NOISY}.get, 80)[-1] == "to be proved first: sizes of losses"
    proofs = dict.fromkeys(("0.05", "-0.5", "parallel-2"), NOISY)
    assert len(what_if_lines([loss, small, found, parallel], proofs.get, 80)) == 9
    assert "do not trust" not in "".join(what_if_lines([found, replace(parallel, change=None)], none, 80))


def test_the_largest_gain_is_to_be_proved_where_it_is_not_to_be_trusted() -> None:
    (found,) = what_ifs_of(BASELINE, [FASTER])
    parallel = replace(found, id="parallel-2", kind=WhatIfKind.PARALLEL)
    assert largest_gain([parallel], lambda _: None).endswith("), to be proved")
    assert largest_gain([parallel], lambda _: NOISY) == "largest gain: parallel-2, +26.0 % (+5 to +47), proved"
    assert largest_gain([found], lambda _: None).endswith(")")


def test_a_what_if_that_is_not_to_be_trusted_says_so_until_it_is_proved() -> None:
    (found,) = what_ifs_of(BASELINE, [FASTER])
    small = replace(found, gain=Gain(0.05, 0.01, 0.09))
    remark = "A gain below 10 % can be a loss: prove it."
    assert remark in remarks_on(small, FASTER, None)
    assert remark not in remarks_on(small, FASTER, Gain(0.05, 0.04, 0.06))
    assert remark not in remarks_on(found, FASTER, None)


def test_a_proof_that_may_have_gained_nothing_is_no_largest_gain() -> None:
    (found,) = what_ifs_of(BASELINE, [FASTER])
    assert largest_gain([found], lambda _: Gain(0.26, -0.05, 0.57)) == ""
    assert "The interval contains 0: the change may gain nothing." in remarks_on(found, FASTER, Gain(0.2, -0.1, 0.5))


def test_a_noisy_proof_does_not_judge_a_prediction() -> None:
    (found,) = what_ifs_of(BASELINE, [FASTER])
    assert found.gain.value == pytest.approx(1 / 3)
    (remark,) = remarks_on(found, FASTER, NOISY)
    assert remark == "The proof is noisy: its interval is +5 to +47. Repeat it on a quiet host."
    (remark,) = remarks_on(found, FASTER, Gain(0.26, 0.2, 0.32))
    assert remark == "The proof agrees with the prediction: they differ by 7 points."
    (remark,) = remarks_on(found, FASTER, Gain(0.13, 0.1, 0.16))
    assert remark == "The proof refutes the prediction: they differ by 20 points."


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.21, 0.012, "-21 to +1"),
        (-0.004, 0.3, "+0 to +30"),
        (-9.99, 0.77, "-999 to +77"),
        (-699.92, 0.77, "<-999 to +77"),
        (-700.0, -20.0, "below -999"),
        (-2.09, 1.81, "-209 to +100"),
    ],
)
def test_intervals_end_at_a_loss_of_999_percent_and_at_a_gain_of_100(low: float, high: float, expected: str) -> None:
    assert interval_of(Gain((low + high) / 2, low, high)) == expected
