"""Tasks made by hand and by hypothesis, and the rules of users for those that may run in parallel."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.estimate.compositions import (
    FREELY,
    NO_RULES,
    EstimateError,
    Schedule,
    SequenceTask,
    Sharing,
    critical_path,
    from_picoseconds,
    parse_rules,
    read_rules,
    schedule,
    to_picoseconds,
)
from tests.bricks.graphs import chain

LONGEST_PS = 10**14
UNRULED = st.just(FREELY)


def sequential_ps(tasks: Sequence[SequenceTask]) -> int:
    return sum(task.latency_ps for task in tasks)


@st.composite
def task_graphs(draw: st.DrawFn, sharings: st.SearchStrategy[Sharing] = UNRULED) -> tuple[SequenceTask, ...]:
    """Any tasks in a topological order, some of which take no time."""
    tasks = []
    for number in range(draw(st.integers(0, 14))):
        latency = draw(st.integers(0, 5) | st.integers(0, LONGEST_PS))
        after = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        tasks.append(SequenceTask(latency, tuple(sorted(after)), draw(sharings)))
    return tuple(tasks)


def test_sequential_is_the_sum_and_the_critical_path_the_first_of_those_that_are_longest_in_time() -> None:
    path = critical_path(
        [SequenceTask(1), SequenceTask(2, (0,)), SequenceTask(2, (1,)), SequenceTask(9, (0,)), SequenceTask(1, (2, 3))]
    )
    assert (path.tasks, path.latency_ps) == ((0, 3, 4), 11)
    assert critical_path(
        [SequenceTask(1), SequenceTask(2, (0,)), SequenceTask(2, (0,)), SequenceTask(1, (1, 2))]
    ).tasks == (0, 1, 3)
    assert critical_path([]).latency_ps == 0


@given(task_graphs())
def test_the_critical_path_is_the_longest_path_of_networkx_and_each_task_waits_for_the_one_before_it(
    tasks: tuple[SequenceTask, ...],
) -> None:
    digraph, path = nx.DiGraph(), critical_path(tasks)
    for number, task in enumerate(tasks):
        for source in (-1, *task.after):
            digraph.add_edge(source, number, latency=task.latency_ps)
    assert path.latency_ps == nx.dag_longest_path_length(digraph, weight="latency")
    assert path.latency_ps == sum(tasks[number].latency_ps for number in path.tasks)
    assert all(one in tasks[other].after for one, other in zip(path.tasks, path.tasks[1:], strict=False))


@given(st.floats(0, 1e6))
def test_a_latency_survives_its_conversion_to_the_picosecond(latency_ms: float) -> None:
    assert abs(from_picoseconds(to_picoseconds(latency_ms)) - latency_ms) <= 1e-9


WORKERS = st.integers(1, 5)
ALONE = Sharing(parallel=False)
TWO_AT_MOST = Sharing(at_most=2, label="two")
SHARINGS = st.sampled_from([FREELY, ALONE, TWO_AT_MOST, Sharing(at_most=1, label="one")])


def slowed(factor: str) -> Sharing:
    return Sharing(slowdown=Fraction(factor))


def most_at_once(plan: Schedule, numbers: list[int]) -> int:
    """Return the most tasks that run at the same time; tasks that take no time do not count."""
    spans = [plan.placed[number] for number in numbers if plan.placed[number].end_ps > plan.placed[number].begin_ps]
    return max((sum(other.begin_ps <= span.begin_ps < other.end_ps for other in spans) for span in spans), default=0)


@given(task_graphs())
def test_unlimited_workers_take_exactly_the_critical_path(tasks: tuple[SequenceTask, ...]) -> None:
    assert schedule(tasks).latency_ps == critical_path(tasks).latency_ps
    assert schedule(tasks, len(tasks) + 1).latency_ps == critical_path(tasks).latency_ps


@given(task_graphs(SHARINGS), WORKERS)
def test_schedules_respect_dependencies_workers_and_limits(tasks: tuple[SequenceTask, ...], workers: int) -> None:
    assert schedule(tasks, 1).latency_ps == sequential_ps(tasks)
    plan = schedule(tasks, workers)
    assert sequential_ps(tasks) >= plan.latency_ps >= critical_path(tasks).latency_ps
    for number, task in enumerate(tasks):
        assert plan.placed[number].end_ps - plan.placed[number].begin_ps == task.latency_ps
        assert all(plan.placed[source].end_ps <= plan.placed[number].begin_ps for source in task.after)
    assert most_at_once(plan, list(range(len(tasks)))) <= workers
    for sharing in (TWO_AT_MOST, Sharing(at_most=1, label="one")):
        limited = [number for number, task in enumerate(tasks) if task.sharing == sharing]
        assert most_at_once(plan, limited) <= (sharing.at_most or 0)


@given(task_graphs(SHARINGS))
def test_a_task_that_is_not_parallel_runs_by_itself(tasks: tuple[SequenceTask, ...]) -> None:
    placed = schedule(tasks).placed
    for number, task in enumerate(tasks):
        if not task.sharing.parallel:
            begin, end = placed[number]
            assert all(
                other.end_ps <= begin or other.begin_ps >= end
                for index, other in enumerate(placed)
                if index != number and other.end_ps > other.begin_ps
            )


def test_tasks_with_the_longest_remaining_path_start_first() -> None:
    plan = schedule([SequenceTask(1), SequenceTask(5), SequenceTask(1), SequenceTask(7, (2,))], 2)
    assert [span.begin_ps for span in plan.placed] == [5, 0, 0, 1]
    assert plan.latency_ps == 8


def test_two_tasks_slow_each_other_down_until_one_ends() -> None:
    # Both run at half speed until the short one ends at 20; the long one has 20 of its 30 left then.
    assert schedule([SequenceTask(10, sharing=slowed("2")), SequenceTask(30, sharing=slowed("2"))]).placed == (
        (0, 20),
        (0, 40),
    )


def test_a_task_joined_in_the_middle_is_slowed_from_then_on() -> None:
    tasks = [SequenceTask(10), SequenceTask(100, sharing=slowed("1.5")), SequenceTask(30, (0,))]
    # Beside the first, then beside the third: 10 and 30 take 40 of the clock, in which 40 / 1.5 of 100 get done.
    assert schedule(tasks).placed[1].end_ps == pytest.approx(40 + 100 - 40 / 1.5, abs=2)


@given(task_graphs(st.sampled_from([slowed("1"), slowed("1.3"), slowed("3")])), WORKERS)
def test_slowing_down_makes_nothing_quicker_and_one_worker_not_slower(
    tasks: tuple[SequenceTask, ...], workers: int
) -> None:
    # Each change of pace rounds to a picosecond.
    assert schedule(tasks, workers).latency_ps >= critical_path(tasks).latency_ps - len(tasks) ** 2
    assert schedule(tasks, 1).latency_ps == sequential_ps(tasks)


LAYERS = chain("conv", "relu", "conv", "pool").layers
CONV, RELU, SECOND_CONV, POOL = LAYERS


def test_a_rule_is_for_the_ops_kinds_and_names_that_it_lists() -> None:
    by_op = parse_rules('[[rule]]\nops = ["c*v"]\nparallel = false', "here")
    assert [by_op.sharing_of([layer]).parallel for layer in LAYERS] == [False, True, False, True]
    by_kind = parse_rules('[[rule]]\nkinds = ["pooling", "elementwise"]\nparallel = false', "here")
    assert [by_kind.sharing_of([layer]).parallel for layer in LAYERS] == [True, False, True, False]
    by_both = parse_rules('[[rule]]\nops = ["conv"]\nnames = ["layer2", "layer3"]\nparallel = false', "here")
    assert [by_both.sharing_of([layer]).parallel for layer in LAYERS] == [True, True, False, True]


def test_the_first_matching_rule_applies() -> None:
    rules = parse_rules('[[rule]]\nops = ["conv"]\nslowdown = 1.3\n\n[[rule]]\nparallel = false', "here")
    assert rules.sharing_of([CONV]).parallel
    assert rules.sharing_of([CONV]).slowdown == Fraction(13, 10)
    assert not rules.sharing_of([RELU]).parallel
    assert NO_RULES.sharing_of(LAYERS) == FREELY
    # Layers of one rule count together, and those of another rule do not.
    rules = parse_rules('[[rule]]\nops = ["conv"]\nat_most = 2\n\n[[rule]]\nat_most = 2', "here")
    assert rules.sharing_of([CONV]) == rules.sharing_of([SECOND_CONV])
    assert rules.sharing_of([CONV]) != rules.sharing_of([RELU])


def test_a_sequence_follows_the_strictest_rule_of_its_layers() -> None:
    rules = parse_rules(
        '[[rule]]\nops = ["conv"]\nat_most = 3\nslowdown = 2\n\n[[rule]]\nops = ["relu"]\nat_most = 2\n\n'
        '[[rule]]\nops = ["pool"]\nparallel = false',
        "here",
    )
    both = rules.sharing_of([CONV, RELU])
    assert (both.parallel, both.at_most, both.slowdown) == (True, 2, Fraction(2))
    assert not rules.sharing_of(LAYERS).parallel


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ops = [", "not TOML"),
        ('slow = "x"', "'slow' means nothing"),
        ("[rule]\nat_most = 1", "two pairs of brackets"),
        ("[[rule]]\nworkers = 2", "rule 1: 'workers' means nothing; a rule has ops, kinds, names"),
        ("[[rule]]\n[[rule]]\nat_most = 0", "rule 2: at_most is a whole number"),
        ("[[rule]]\nat_most = true", "at_most is a whole number"),
        ("[[rule]]\nslowdown = 0.5", "slowdown is a number from 1 to a million"),
        ("[[rule]]\nslowdown = 1e308", "slowdown is a number from 1 to a million"),
        ("[[rule]]\nslowdown = inf", "slowdown is a number from 1 to a million"),
        ("[[rule]]\nslowdown = nan", "slowdown is a number from 1 to a million"),
        ('[[rule]]\nparallel = "no"', "parallel is true or false"),
        ("[[rule]]\nparallel = false\nat_most = 2", "take out at_most and slowdown"),
        ('[[rule]]\nops = "conv"', "ops is a list of patterns"),
        ('[[rule]]\nnames = [""]', "names is a list of patterns"),
        ('[[rule]]\nkinds = ["convolutions"]', "no kind of layers is called 'convolutions'; there are convolution,"),
    ],
)
def test_an_invalid_rule_is_refused_with_place_and_reason(text: str, complaint: str) -> None:
    with pytest.raises(EstimateError) as refused:
        parse_rules(text, "mine.toml")
    assert "mine.toml" in str(refused.value)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_rules_are_read_from_a_file_and_an_unreadable_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[[rule]]\nnames = ["größer*"]\nat_most = 1\n', encoding="utf-8")
    assert read_rules(file).rules[0].names == ("größer*",)
    file.write_bytes(b"\xff\xfe")
    for unreadable in (file, tmp_path / "missing rules.toml"):
        with pytest.raises(EstimateError, match=r"rules\.toml"):
            read_rules(unreadable)
    with pytest.raises(EstimateError, match="cannot be read"):
        read_rules(tmp_path)


def test_the_documented_example_is_valid() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-it-works" / "estimates.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    first, second = parse_rules(example, "docs").rules
    assert not first.sharing.parallel
    assert second.sharing.slowdown == Fraction(13, 10)
