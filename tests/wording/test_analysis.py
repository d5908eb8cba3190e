from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.bounds import best_measured, over_best, times_of_groups
from dlbricks_tui.analysis.gap import gap_of
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.what_if import Gain, WhatIfKind
from dlbricks_tui.analysis.what_ifs import what_ifs_of
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.wording.analysis import (
    bound_lines,
    common_beginning,
    gap_lines,
    headline,
    interval_of,
    largest_gain,
    layer_lines,
    named_layers,
    remarks_on,
    uneven_lines,
    what_if_lines,
)
from tests.analysis.executions import executed, some_executions, with_nodes
from tests.bricks.graphs import chain

GRAPH = with_nodes(chain("conv", "relu", "pool"))
BASELINE = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}, end_to_end=Latency(6.5, 6.4, 6.6))
FASTER = executed(GRAPH, {0: 2.0, 1: 1.0, 2: 1.0}, threads=2)
BEST = best_measured([BASELINE, FASTER])
NOISY = Gain(0.26, 0.05, 0.47)


def timed_beside(one: MeasuredExecution, reference_ms: float) -> MeasuredExecution:
    """The execution, measured when the reference took so long."""
    parts = [
        replace(it, measured=it.measured._replace(reference_ms=reference_ms))
        for it in one.parts
        if it.measured is not None
    ]
    return replace(one, found=replace(one.found, estimate=replace(one.estimate, parts=tuple(parts))))


def without_a_layer(one: MeasuredExecution) -> MeasuredExecution:
    """The execution with an estimate that leaves its last layer out."""
    *parts, last = one.parts
    parts.append(replace(last, standing=Standing.MISSING, measured=None))
    return replace(one, found=replace(one.found, estimate=replace(one.estimate, parts=tuple(parts))))


def test_the_headline_says_how_many_times_the_best_a_model_takes() -> None:
    text = headline("model", BASELINE, BEST, over_best(BASELINE, BEST))
    assert text.startswith("model: 6.500 ms measured, 1.62 times the best measured (1.")


def test_without_an_end_to_end_latency_the_headline_is_of_the_estimate() -> None:
    one = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0})
    best = best_measured([one])
    assert headline("model", one, best, over_best(one, best)).startswith("model: 6.000 ms estimated, 1.00 times")


def test_an_estimate_that_leaves_layers_out_is_marked() -> None:
    one = without_a_layer(executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}))
    assert headline("model", one, None, None) == "model: …6.000 ms estimated"
    assert any("…6.000 ms" in line for line in bound_lines(one, None, None))


def test_a_model_without_an_estimate_says_why() -> None:
    found = executed(GRAPH).found
    impossible = replace(found.estimate, composed=None, obstacle="2 of 3 layers cannot be measured by themselves")
    one = replace(BASELINE, found=replace(found, estimate=impossible))
    assert headline("model", one, None, None) == f"model: no estimate is possible: {impossible.obstacle}"
    unknown = replace(one, found=replace(found, estimate=replace(impossible, obstacle="")))
    assert headline("model", unknown, None, None) == "model: nothing was measured"


def test_the_bounds_name_the_executions_that_won() -> None:
    (best,) = (line for line in bound_lines(BASELINE, BEST, None) if "best measured" in line)
    assert "4.000 ms" in best
    assert "50 % mxnet written on 2, 50 % mxnet written on 1" in best


def test_the_gap_is_drawn_as_a_bar_of_its_parts() -> None:
    heading, bar, *parts = gap_lines(gap_of(BASELINE, BEST), BEST, 80)
    assert heading == "gap to the best: 2.500 ms of the end-to-end latency"
    assert bar.count("#") == pytest.approx(40 * 2.0 / 6.5, abs=1)
    assert bar.count("?") == pytest.approx(40 * 0.5 / 6.5, abs=1)
    assert [line.split()[1] for line in parts] == ["slower", "conversions", "calls", "unexplained"]


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


def test_an_execution_that_was_measured_at_another_speed_of_the_host_is_named() -> None:
    calm, other = timed_beside(BASELINE, 1.0), executed(GRAPH, {0: 2.0, 1: 1.0, 2: 1.0})
    (line,) = uneven_lines(calm, best_measured([calm, timed_beside(other, 1.3)]))
    assert line.strip().startswith("mxnet written on 1 was measured when the host was 30 % faster or slower")
    assert uneven_lines(calm, best_measured([calm, timed_beside(other, 1.05)])) == []


def test_references_of_runtimes_with_other_settings_are_not_compared() -> None:
    calm, two_threads = timed_beside(BASELINE, 1.0), timed_beside(FASTER, 0.5)
    assert uneven_lines(calm, best_measured([calm, two_threads])) == []


def test_each_group_of_layers_has_a_row_with_its_end_in_few_columns() -> None:
    named = [replace(it, name=f"a_network_with_a_long_name_stage{it.index}") for it in GRAPH.layers]
    graph = replace(GRAPH, layers=tuple(named))
    one, other = executed(graph, {0: 4.0, 1: 1.0, 2: 1.0}), executed(graph, {0: 2.0, 1: 1.5, 2: 1.5}, threads=2)
    titles, *rows = layer_lines(tuple(times_of_groups(best_measured([one, other]))), 100)
    assert titles.split("  ")[0] == "LAYERS of a_network_with_a_long_name_..., in ms"
    assert [row.split() for row in rows] == [
        ["stage0", "4.000", "2.000", "mxnet", "written", "on", "2"],
        ["stage1", "1.000", "1.000", "mxnet", "written", "on", "1"],
        ["stage2", "1.000", "1.000", "mxnet", "written", "on", "1"],
    ]


def test_of_a_long_name_the_end_is_shown() -> None:
    assert named_layers(["stage1/block2/convolution", "other"], 16) == "...2/convolution"
    assert named_layers(["one", "two", "three"], 15) == "one and 2 more"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["net_conv0", "net_conv1"], "net_"),
        (["/a/b/c", "/a/bc"], "/a/"),
        (["net_conv0"], ""),
        (["conv", "relu"], ""),
        ([], ""),
    ],
)
def test_the_words_that_all_names_begin_with_are_said_once(names: list[str], expected: str) -> None:
    assert common_beginning(names) == expected


@given(some_executions(), st.integers(60, 120))
def test_lines_keep_to_the_width(executions: list[MeasuredExecution], width: int) -> None:
    best = best_measured(executions)
    (_, bar, *_) = gap_lines(gap_of(executions[0], best), best, width)
    lines = [bar, *layer_lines(tuple(times_of_groups(best)), width)]
    fastest = max(len(line.partition("mxnet")[2]) for line in lines)
    assert max(map(len, lines)) <= max(width, 50 + fastest)
