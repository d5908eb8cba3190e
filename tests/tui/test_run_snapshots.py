import time
from collections.abc import Iterator

import pytest

from dlbricks_tui.bench.run_folder import State
from dlbricks_tui.settings import DataFolder
from tests.tui.bench import SIZES, app_on, press, running
from tests.tui.live_runs import in_the_middle, put_run
from tests.tui.snapshots import check
from tests.tui.test_run_screens import shows

NARROW = SIZES[:1]
# What is on the bar before the keys are pressed, and for which sizes.
SCREENS: dict[str, tuple[tuple[str, ...], tuple[tuple[int, int], ...]]] = {
    "run-bar": ((), SIZES),
    "run-screen": (("5",), SIZES),
    "run-start": (("slash", '"alexnet"', "enter", "enter", "r"), SIZES),
    "run-estimates": (("5", "2"), NARROW),
    "run-notes": (("5", "3"), NARROW),
    "run-cancel": (("5", "x"), NARROW),
    "run-all": (("R",), NARROW),
}
CASES = [(name, keys, size) for name, (keys, sizes) in SCREENS.items() for size in sizes]


@pytest.fixture(autouse=True)
def _times_of_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("name", "keys", "size"), CASES, ids=[f"{name}-{w}x{h}" for name, _, (w, h) in CASES])
async def test_a_screen_of_runs_looks_as_it_was_approved(
    name: str, keys: tuple[str, ...], size: tuple[int, int], measured: DataFolder
) -> None:
    put_run(measured, in_the_middle(), State.CANCELLED, run="20261120-080000-0001", seconds=400)
    async with running(app_on(measured), size) as pilot:
        # While a run measures nobody looks through the library: what is known of it is to be there before.
        put_run(measured, in_the_middle())
        await shows(pilot, "18 of 42 done")
        await press(pilot, *keys)
        check(pilot.app, f"{name}-{size[0]}x{size[1]}")
