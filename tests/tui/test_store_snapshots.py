"""Snapshots of the screens of results, of the corpus and of systems."""

from pathlib import Path

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.noise import Finding, NoiseVerdict
from dlbricks_tui.tui import estimator as judging
from dlbricks_tui.tui.systems import work
from tests.store.samples import system
from tests.tui import results
from tests.tui.application import app_on, press, running
from tests.tui.snapshots import check, check_all
from tests.tui.stored_results import HERE, THERE

SCREENS: dict[str, tuple[str, ...]] = {
    "results": ("6", "slash", '"kind=convolution"', "enter", "space"),
    "results-columns": ("6", "c"),
    "results-delete": ("6", "slash", '"2026-11-20"', "enter", "a", "d"),
    "results-hidden-marks": ("6", "slash", '"2026-11-20"', "enter", "a", "slash", "ctrl+u", '"relu"', "enter", "d"),
    "results-refused": ("6", "slash", '"colour=red"'),
    "results-one": ("6", "slash", '"good=no"', "enter", "2"),
    "results-history": ("6", "slash", '"relu"', "enter", "3"),
    "results-compared": (
        *("6", "slash", f'"{HERE} 2026-11-21"', "enter", "v"),
        *("slash", "ctrl+u", f'"{THERE}"', "enter", "="),
    ),
    "systems": ("8",),
    "systems-doctor": ("8", "4"),
}
CORPUS: dict[str, tuple[str, ...]] = {
    "corpus": ("7",),
    "corpus-kinds": ("7", "2"),
    "likeness": ("7", "3", "l"),
}
# Screens about a model that was measured on two systems, also end to end.
JUDGED: dict[str, tuple[str, ...]] = {
    "corpus-granularities": ("7", "4"),
    "systems-machines": ("slash", '"squeezenet"', "enter", "enter", "8", "3"),
}
FINDINGS = (
    Finding("frequency governor", "performance", NoiseVerdict.QUIET, "cores begin slowly", ""),
    Finding(
        "other load", "the processors are 90 % busy", NoiseVerdict.NOISY, "outliers", "end what computes (see `top`)"
    ),
    Finding("temperature", "unknown", NoiseVerdict.UNKNOWN, "hot cores slow down", "sudo apt install lm-sensors"),
)


@pytest.fixture(autouse=True)
def _one_host_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "fingerprint", lambda: system(HERE))
    monkeypatch.setattr(work, "findings", lambda: FINDINGS)
    monkeypatch.setattr(results, "fingerprint", lambda: system(HERE))
    monkeypatch.setattr(judging, "fingerprint", lambda: system(HERE))


@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_of_the_store_matches_its_snapshot(name: str, stored: DataFolder) -> None:
    async with running(app_on(stored)) as pilot:
        await press(pilot, *SCREENS[name])
        await check_all(pilot, name)


@pytest.mark.parametrize("name", CORPUS)
async def test_a_panel_of_the_corpus_matches_its_snapshot(name: str, new: DataFolder) -> None:
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", *CORPUS[name])
        await check_all(pilot, name)


@pytest.mark.parametrize("name", JUDGED)
async def test_a_screen_about_a_measured_model_matches_its_snapshot(name: str, new: DataFolder) -> None:
    results.store_run(new, ["squeezenet1.1"])
    new.path.joinpath("prices.toml").write_text(f'[dollars_per_hour]\n"{HERE}" = 0.17\n')
    async with running(app_on(new)) as pilot:
        await press(pilot, *JUDGED[name])
        await check_all(pilot, name)


async def test_the_grid_of_likeness_is_readable_without_colours(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", "7", "3", "l", "j", "j")
        check(pilot.app, "likeness-no-color")


@pytest.mark.parametrize(("name", "keys"), [("results-import", ("i", '"m"', "down")), ("results-export", ("e", '"m"'))])
async def test_the_path_boxes_match_their_snapshots(
    name: str, keys: tuple[str, ...], stored: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "more").mkdir(parents=True)
    (tmp_path / "here" / "mine.json").touch()
    monkeypatch.chdir(tmp_path / "here")
    async with running(app_on(stored)) as pilot:
        await press(pilot, "6", *keys)
        await check_all(pilot, name)
