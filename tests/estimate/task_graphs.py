"""Tasks made by hand and by hypothesis."""

from hypothesis import strategies as st

from dlbricks_tui.estimate.compositions import FREELY, SequenceTask, Sharing

LONGEST_PS = 10**14
UNRULED = st.just(FREELY)


def chained(*latencies_ps: int) -> tuple[SequenceTask, ...]:
    """Each task waits for the one before it."""
    return tuple(SequenceTask(latency, (number - 1,) if number else ()) for number, latency in enumerate(latencies_ps))


@st.composite
def task_graphs(draw: st.DrawFn, sharings: st.SearchStrategy[Sharing] = UNRULED) -> tuple[SequenceTask, ...]:
    """Any tasks in a topological order, some of which take no time."""
    tasks = []
    for number in range(draw(st.integers(0, 14))):
        latency = draw(st.integers(0, 5) | st.integers(0, LONGEST_PS))
        after = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        tasks.append(SequenceTask(latency, tuple(sorted(after)), draw(sharings)))
    return tuple(tasks)
