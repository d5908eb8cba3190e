import pytest

from dlbricks_tui.documents.pictures import LegendSign
from dlbricks_tui.report.comparison import DrawnRatio, ratio_axis, ratio_rows, ratios_shown, row_labels

SLOWER = LegendSign("▶", "slower", "bad")


def test_wide_intervals_leave_the_changes_visible() -> None:
    low, high = ratios_shown([DrawnRatio(SLOWER, 1.1, 0.0, 50.0), DrawnRatio(SLOWER, 0.9, 0.85, 0.95)])
    assert 0.8 < low < 0.9 and 1.1 < high < 1.25


@pytest.mark.parametrize("ratio", [1.0, 0.5, 64.0, 1e-5])
def test_one_and_all_ratios_are_on_the_axis(ratio: float) -> None:
    axis = ratio_rows("latency", "", ["m"], [[DrawnRatio(SLOWER, ratio, ratio, ratio)]]).across
    assert axis.low < min(1.0, ratio) and max(1.0, ratio) < axis.high


@pytest.mark.parametrize(
    ("low", "high", "told"), [(0.9, 1.2, "+10 %"), (0.45, 2.1, "2x"), (0.1, 2.1, "1/8x"), (1e-6, 4000.0, "2048x")]
)
def test_an_axis_has_few_ticks(low: float, high: float, told: str) -> None:
    ticks = ratio_axis(low, high).ticks
    assert 2 <= len(ticks) <= 7 and all(low <= it <= high for it, _ in ticks)
    assert told in [text for _, text in ticks]


def test_labels_keep_what_tells_rows_apart() -> None:
    assert row_labels([("m", ["mxnet", "1 thread"]), ("m", ["mxnet", "2 threads"])]) == ["m, 1 thread", "m, 2 threads"]
    assert row_labels([("m", ["mxnet", "1 thread"])]) == ["m"]
    name = "a very long name of a model of some data set"
    label, _ = row_labels([(name, ["2 threads"]), ("m", [])])
    assert len(label) <= 40 and label.endswith("…, 2 threads")
