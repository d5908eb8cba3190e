import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.estimate.compositions import SequenceTask, critical_path, milliseconds, picoseconds, sequential_ps
from tests.estimate.task_graphs import LONGEST_PS, chained, task_graphs


def test_sequential_is_the_sum_and_the_critical_path_the_first_of_those_that_are_longest_in_time() -> None:
    assert sequential_ps([SequenceTask(3), SequenceTask(4, (0,)), SequenceTask(5, (0,))]) == 12
    path = critical_path(
        [SequenceTask(1), SequenceTask(2, (0,)), SequenceTask(2, (1,)), SequenceTask(9, (0,)), SequenceTask(1, (2, 3))]
    )
    assert (path.tasks, path.latency_ps) == ((0, 3, 4), 11)
    assert critical_path(
        [SequenceTask(1), SequenceTask(2, (0,)), SequenceTask(2, (0,)), SequenceTask(1, (1, 2))]
    ).tasks == (0, 1, 3)
    assert sequential_ps([]) == critical_path([]).latency_ps == 0


@given(st.lists(st.integers(0, LONGEST_PS), max_size=20))
def test_on_a_chain_the_critical_path_is_all_of_it(latencies: list[int]) -> None:
    tasks = chained(*latencies)
    assert critical_path(tasks).latency_ps == sequential_ps(tasks)
    assert critical_path(tasks).tasks == tuple(range(len(tasks)))


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
    assert abs(milliseconds(picoseconds(latency_ms)) - latency_ms) <= 1e-9
