import pytest

from dlbricks_tui.report.comparing.picture import Dot, label_in_rows, ratios_shown, ticks_of


def test_wide_intervals_leave_the_changes_visible() -> None:
    low, high = ratios_shown([Dot(0, 1.1, 0.0, 50.0), Dot(1, 0.9, 0.85, 0.95)])
    assert 0.8 < low < 0.9 and 1.1 < high < 1.25


@pytest.mark.parametrize("ratio", [1.0, 0.5, 64.0, 1e-5])
def test_one_and_all_dots_are_on_the_axis(ratio: float) -> None:
    low, high = ratios_shown([Dot(0, ratio, ratio, ratio)])
    assert low < min(1.0, ratio) and max(1.0, ratio) < high


@pytest.mark.parametrize(("low", "high"), [(0.45, 2.1), (1e-6, 4000.0)])
def test_an_axis_has_few_ticks_with_one_among_them_or_near(low: float, high: float) -> None:
    ticks = ticks_of(low, high)
    assert 2 <= len(ticks) <= 7 and all(low <= it <= high for it in ticks)


def test_labels_keep_what_stands_beside_the_name() -> None:
    assert label_in_rows("m", "1 thread") == "m, 1 thread"
    label = label_in_rows("a very long name of a model of some data set", "2 threads")
    assert len(label) <= 40 and label.endswith("…, 2 threads")
