from dlbricks_tui.answers.analysis_results import BestLayers, by_loss


def _row(name: str, latency_ms: float | None, best_ms: float) -> BestLayers:
    return BestLayers((name,), latency_ms, best_ms, ())


def test_layers_that_lose_most_come_first() -> None:
    rows = [_row("long", 9.0, 8.5), _row("short", 2.0, 0.5), _row("best", 3.0, 3.0)]
    assert [it.layers[0] for it in by_loss(rows)] == ["short", "long", "best"]


def test_the_longest_layers_come_first_if_the_best_is_that_of_another_file() -> None:
    rows = [_row("short", None, 0.5), _row("long", None, 8.5)]
    assert [it.layers[0] for it in by_loss(rows)] == ["long", "short"]
