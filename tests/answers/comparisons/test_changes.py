from dataclasses import replace

import pytest

from dlbricks_tui.answers.changes import (
    NO_EXECUTION,
    NO_RESULT,
    NO_TIME,
    OTHER_CONTENT,
    compare,
    false_alarms,
    number_tested,
    overall,
    regrouped,
)
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.store.records import Record
from tests.answers.comparisons.exports import MXNET, NEWER, ONE, TWO, in_three_runs, layer, model, origin, side


def test_models_are_slower_faster_the_same_or_unknown_and_the_largest_change_comes_first() -> None:
    before = {"slow": 10.0, "slower": 10.0, "fast": 10.0, "same": 10.0, "noisy": 10.0}
    after = {"slow": 10.8, "slower": 13.0, "fast": 8.0, "same": 10.1, "noisy": 10.2}
    noise = {"noisy": 0.5}
    first, second = (
        side(letter, *in_three_runs(*(model(name, it, noise=noise.get(name, 0.005)) for name, it in each.items())))
        for letter, each in (("a", before), ("b", after))
    )
    found = compare(first, second)
    assert [(it.name, it.change.verdict) for it in found.models] == [
        ("slower", Verdict.SLOWER),
        ("slow", Verdict.SLOWER),
        ("fast", Verdict.FASTER),
        ("noisy", Verdict.UNKNOWN),
        ("same", Verdict.SAME),
    ]
    assert found.models[0].change.interval[0] < 0.3 < found.models[0].change.interval[1]
    assert (found.bricks, found.alone) == ((), ((), ()))


def test_a_change_of_a_brick_counts_from_one_percent_on_and_that_of_a_model_from_three() -> None:
    first = model("m", 10.0, noise=0.001), layer(0, 10.0, noise=0.001), layer(1, 10.0, noise=0.001)
    second = model("m", 10.2, noise=0.001), layer(0, 10.2, noise=0.001), layer(1, 10.05, noise=0.001)
    found = compare(side("a", *in_three_runs(*first)), side("b", *in_three_runs(*second)))
    assert [it.change.verdict for it in found.models] == [Verdict.SAME]
    assert [it.change.verdict for it in found.bricks] == [Verdict.SLOWER, Verdict.SAME]
    assert all(it.change.significant for it in (*found.models, *found.bricks))


def test_bricks_of_other_contexts_are_not_compared() -> None:
    found = compare(side("a", layer(0, 1.0)), side("b", layer(0, 1.0, context="cold")))
    assert found.bricks == ()
    assert [[it.reason for it in alone] for alone in found.alone] == [[NO_RESULT], [NO_RESULT]]


def test_what_only_one_has_is_named_with_the_reason() -> None:
    first = side("a", model("both", 1.0), model("gone", 1.0), model("both", 1.0, runtime=TWO))
    second = side("b", model("both", 1.0), model("new", 1.0))
    found = compare(first, second)
    assert [it.name for it in found.models] == ["both"]
    assert [[(it.side, it.name, it.reason) for it in alone] for alone in found.alone] == [
        [("a", "both", NO_EXECUTION), ("a", "gone", NO_RESULT)],
        [("b", "new", NO_RESULT)],
    ]


def test_models_of_one_name_with_other_layers_are_not_compared() -> None:
    found = compare(side("a", model("m", 1.0)), side("b", model("m", 1.0, model="ef" * 32)))
    assert found.models == ()
    assert {it.reason for alone in found.alone for it in alone} == {OTHER_CONTENT}


def test_a_model_of_another_format_is_compared_by_its_name() -> None:
    (pair,) = compare(side("a", model("m", 10.0)), side("b", model("m", 5.0, runtime=MXNET, model="ef" * 32))).models
    assert pair.change.ratio == pytest.approx(0.5)
    assert pair.change.verdict is Verdict.FASTER


@pytest.mark.parametrize(("digest", "count"), [("0f" * 32, 1), ("1f" * 32, 0)])
def test_other_versions_may_fuse_a_model_in_another_way_if_its_file_is_the_same(digest: str, count: int) -> None:
    first = side("a", model("m", 10.0, model="ab" * 32), origin(models=(("ab" * 32, "0f" * 32),)))
    newer = model("m", 10.0, model="cd" * 32, runtime=NEWER)
    second = side("b", newer, origin(runtime=NEWER, models=(("cd" * 32, digest),)))
    assert len(compare(first, second).models) == count


def test_other_batch_sizes_are_compared_per_item() -> None:
    (pair,) = compare(side("a", model("m", 10.0)), side("b", model("m", 40.0, batch_size=8, model="ef" * 32))).models
    assert [pair.change.was_ms, pair.change.is_ms] == pytest.approx([10.0, 5.0], rel=0.01)


def test_differences_between_runs_widen_the_interval() -> None:
    one = model("m", 10.0)
    apart = [model("m", latency_ms, run=name) for name, latency_ms in (("r1", 9.5), ("r2", 10.5))]
    (narrow,) = compare(side("a", one), side("b", model("m", 10.0))).models
    (wide,) = compare(side("a", one), side("b", *apart)).models
    widths = [it.change.interval[1] - it.change.interval[0] for it in (narrow, wide)]
    assert widths[1] > 3 * widths[0]
    assert len(wide.second) == 2


def test_results_of_another_day_do_not_count() -> None:
    old = model("m", 5.0, when="2026-11-19T08:00:00.000000+00:00", run="old")
    (pair,) = compare(side("a", model("m", 10.0)), side("b", old, model("m", 10.0))).models
    assert [it.run for it in pair.second] == ["r1"]


def test_a_latency_of_zero_is_named_and_not_compared() -> None:
    found = compare(side("a", layer(0, 0.0)), side("b", layer(0, 1.0)))
    assert found.bricks == ()
    assert [it.reason for alone in found.alone for it in alone] == [NO_TIME, NO_TIME]


def test_all_pairs_of_one_run_on_a_side_need_a_larger_change() -> None:
    before, after = ([model(f"m{number}", ms) for number in range(3)] for ms in (10.0, 10.8))
    alone, several = (
        compare(side("a", *one), side("b", *other)).models
        for one, other in ((before, in_three_runs(*after)), (in_three_runs(*before), in_three_runs(*after)))
    )
    verdicts = [found.verdict for pairs in (alone, several) if (found := overall(pairs)) is not None]
    assert verdicts == [Verdict.UNKNOWN, Verdict.SLOWER]
    assert {it.change.verdict for it in alone} == {Verdict.UNKNOWN}


def test_few_samples_are_unknown_and_not_tested() -> None:
    found = compare(side("a", model("m", 1.0, count=4)), side("b", model("m", 2.0, count=4)))
    assert (found.models[0].change.verdict, number_tested(found.models)) == (Verdict.UNKNOWN, 0)


def test_one_in_twenty_significant_changes_is_expected_to_be_a_false_alarm() -> None:
    first = side("a", *(model(f"m{number}", 10.0) for number in range(20)))
    second = side("b", *(model(f"m{number}", 20.0) for number in range(20)))
    pairs = compare(first, second).models
    assert number_tested(pairs) == 20
    assert false_alarms(pairs) == pytest.approx(1.0)
    together = overall(pairs)
    assert together is not None and together.ratio == pytest.approx(2.0)
    assert (together.verdict, round(together.was_ms), round(together.is_ms)) == (Verdict.SLOWER, 200, 400)
    assert overall(()) is None


def test_results_in_doubt_are_left_out() -> None:
    first = side("a", model("m", 10.0), model("other", 1.0, flags=("noisy",)))
    assert [it.name for it in first.results] == ["m"]


def test_a_label_counts_in_the_first_group_that_has_it() -> None:
    groups = [side("a", model("m", 1.0)), side("b", model("m", 2.0), model("n", 2.0, system="there"))]
    found = regrouped(groups, lambda it: it.execution.system)
    assert [(it.name, [result.name for result in it.results]) for it in found] == [("here", ["m"]), ("there", ["n"])]
    assert found[0].results[0].statistics.trimmed_mean_ms == pytest.approx(1.0, rel=0.01)


def test_the_order_of_results_changes_nothing() -> None:
    records: list[Record] = [model("m", 10.0, run="r1"), model("m", 11.0, run="r2"), model("n", 3.0), layer(0, 1.0)]
    other = side("b", model("m", 12.0), model("n", 3.0), layer(0, 2.0))
    straight, reverse = compare(side("a", *records), other), compare(side("a", *reversed(records)), other)
    assert straight.models == reverse.models and straight.bricks == reverse.bricks
    assert replace(straight, first=reverse.first) == reverse


def test_threads_of_one_value_each_are_what_is_compared() -> None:
    (pair,) = compare(side("a", model("m", 10.0, runtime=ONE)), side("b", model("m", 6.0, runtime=TWO))).models
    assert pair.executions.differ == {"threads"}
