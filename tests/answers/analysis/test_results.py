from dlbricks_tui.analysis.bounds import GroupTimes
from dlbricks_tui.answers.analyses import by_loss


def _times(name: str, latency_ps: int, best_ps: int) -> GroupTimes:
    return GroupTimes((name,), latency_ps, best_ps, ())


def test_layers_that_lose_most_come_first() -> None:
    groups = [_times("long", 90, 85), _times("short", 20, 5), _times("best", 30, 30)]
    assert [it.layers[0] for it in by_loss(groups)] == ["short", "long", "best"]
