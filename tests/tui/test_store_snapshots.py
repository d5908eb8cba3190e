"""The screens of results, of the corpus and of systems, as they were approved."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.bench.noise import Finding, Verdict
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.tui.screens.systems import errands
from tests.store.samples import system
from tests.tui.bench import SIZES, app_on, press, running, settled
from tests.tui.snapshots import check
from tests.tui.stored_results import HERE, THERE

COMPARED = ("6", "slash", f'"{HERE} 2026-11-21"', "enter", "v", "slash", "ctrl+u", f'"{THERE}"', "enter", "=")
# On a narrow terminal those are seen that are beside each other on others.
NARROW = (SIZES[0],)
SCREENS: dict[str, tuple[tuple[str, ...], tuple[tuple[int, int], ...]]] = {
    "results": (("6", "slash", '"kind=convolution"', "enter", "space"), SIZES),
    "results-columns": (("6", "c"), NARROW),
    "results-delete": (("6", "slash", '"2026-11-20"', "enter", "a", "d"), NARROW),
    "results-refused": (("6", "slash", '"colour=red"'), NARROW),
    "results-one": (("6", "slash", '"good=no"', "enter", "2"), NARROW),
    "results-history": (("6", "slash", '"relu"', "enter", "3"), NARROW),
    "results-compared": (COMPARED, SIZES),
    "systems": (("8",), SIZES),
    "systems-doctor": (("8", "4"), NARROW),
}
FINDINGS = (
    Finding("frequency governor", "performance", Verdict.QUIET, "cores begin slowly", ""),
    Finding("other load", "the processors are 90 % busy", Verdict.NOISY, "outliers", "end what computes (see `top`)"),
    Finding("temperature", "unknown", Verdict.UNKNOWN, "hot cores slow down", "sudo apt install lm-sensors"),
)


@pytest.fixture(autouse=True)
def _one_host_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errands, "fingerprint", lambda: system(HERE))
    monkeypatch.setattr(errands, "findings", lambda: FINDINGS)


async def look_right(pilot: Pilot[None], name: str, sizes: tuple[tuple[int, int], ...]) -> None:
    for columns, lines in sizes:
        await pilot.resize_terminal(columns, lines)
        await settled(pilot)
        check(pilot.app, f"{name}-{columns}x{lines}")


@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_of_the_store_looks_as_it_was_approved(name: str, stored: DataFolder) -> None:
    keys, sizes = SCREENS[name]
    async with running(app_on(stored), sizes[0]) as pilot:
        await press(pilot, *keys)
        await look_right(pilot, name, sizes)


async def test_the_corpus_looks_as_it_was_approved(new: DataFolder) -> None:
    async with running(app_on(new), SIZES[0]) as pilot:
        await press(pilot, "escape", "7")
        await look_right(pilot, "corpus", SIZES)


async def test_the_grid_of_likeness_can_be_read_without_colours(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(app_on(new), SIZES[0]) as pilot:
        await press(pilot, "escape", "7", "3", "l", "j", "j")
        await look_right(pilot, "likeness-no-color", NARROW)


SIXTEEN = ("results", "results-compared", "systems-doctor")


@pytest.mark.parametrize("name", SIXTEEN)
async def test_in_the_terminals_own_sixteen_colours_it_looks_as_it_was_approved(name: str, stored: DataFolder) -> None:
    stored.config.write_text('[workbench]\ntheme = "terminal"\n')
    async with running(app_on(stored), SIZES[0]) as pilot:
        await press(pilot, *SCREENS[name][0])
        await look_right(pilot, f"sixteen-{name}", NARROW)


async def test_the_grid_of_likeness_is_drawn_in_sixteen_colours(new: DataFolder) -> None:
    new.path.mkdir(parents=True)
    new.config.write_text('[workbench]\ntheme = "terminal"\n')
    async with running(app_on(new), SIZES[0]) as pilot:
        await press(pilot, "escape", "7", "3", "l")
        await look_right(pilot, "sixteen-likeness", NARROW)


async def test_paths_to_import_are_offered(stored: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.json").touch()
    (tmp_path / "here" / "more").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    async with running(app_on(stored), SIZES[0]) as pilot:
        await press(pilot, "6", "i", '"m"')
        await look_right(pilot, "results-import", NARROW)
