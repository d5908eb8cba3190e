"""The box that compares the combinations of the open model."""

from dataclasses import replace

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.workbench.comparison import ComparisonScreen
from tests.tui.application import NARROW, app_on, press, running, screen_text
from tests.tui.snapshots import check_all, check_layout, check_sixteen_colours
from tests.wording.test_ranking import MIXED


async def test_the_comparison_matches_its_snapshot(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await pilot.app.push_screen(ComparisonScreen("net", lambda: MIXED))
        await press(pilot)
        await check_all(pilot, "comparison")


async def test_the_comparison_fits_a_narrow_terminal_with_a_line_for_each_combination(measured: DataFolder) -> None:
    measured.config.write_text('[workbench]\ntheme = "terminal"\n')
    found = replace(MIXED, left_out=2, refusals=("its file fixes the batch",))
    async with running(app_on(measured), NARROW) as pilot:
        await pilot.app.push_screen(ComparisonScreen("net", lambda: found))
        await press(pilot)
        shown = screen_text(pilot)
        rows = [line for line in shown.splitlines() if "onnxruntime" in line or "openvino" in line]
        assert [row.split()[-2] for row in rows] == ["best", "alike", "slower"]
        assert "left out: its file fixes the batch" in shown
        assert "2 combinations with results of only some layers left out" in shown
        check_layout(pilot.app)
        check_sixteen_colours(pilot.app)


async def test_a_key_compares_the_combinations_of_the_open_model(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "v")
        assert not isinstance(pilot.app.screen, ComparisonScreen)
        await press(pilot, "slash", '"resnet18_v1"', "enter", "enter", "v")
        assert isinstance(pilot.app.screen, ComparisonScreen)
        shown = screen_text(pilot)
        assert "Comparison of resnet18_v1" in shown
        assert "AGAINST BEST" in shown
        assert "2 threads, batch 1, f32, written layers" in shown
        (row,) = [line for line in shown.splitlines() if "mxnet    " in line and "best" in line]
        assert row.index("ms") < row.index("best")
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, ComparisonScreen)


async def test_a_model_that_was_not_measured_is_predicted_and_says_what_is_missing(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"alexnet"', "enter", "enter", "v")
        shown = screen_text(pilot)
        assert "mxnet    ~" in shown
        assert "~ not all measured: the latency of some layers is predicted" in shown
        assert "r on the workbench runs what is missing" in shown


async def test_a_model_that_cannot_be_compared_says_why(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await pilot.app.push_screen(ComparisonScreen("net", lambda: "the runtime cannot read it"))
        await press(pilot)
        assert "the runtime cannot read it" in screen_text(pilot)
