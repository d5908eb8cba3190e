from pathlib import Path

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.noise import Finding, NoiseVerdict
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.systems import work
from dlbricks_tui.tui.systems.machines import MachinesPanel
from dlbricks_tui.tui.systems.screen import SystemsScreen
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.store.samples import measurement, system
from tests.tui.application import app_on, press, running, screen_text
from tests.tui.results import OTHER_SYSTEM

WIDE = (200, 50)
RESNET = ("slash", '"resnet18"', "enter", "enter", "1", "slash", "escape")
FINDINGS = (
    Finding("turbo", "off", NoiseVerdict.QUIET, "samples drift", ""),
    Finding("other load", "90 % busy", NoiseVerdict.NOISY, "outliers", "end what computes"),
    Finding("temperature", "unknown", NoiseVerdict.UNKNOWN, "cores slow down", "install lm-sensors"),
)


@pytest.fixture(autouse=True)
def _same_findings_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "findings", lambda: FINDINGS)


async def test_this_host_and_the_systems_of_the_store_are_listed(measured: DataFolder) -> None:
    async with running(app_on(measured), WIDE) as pilot:
        await press(pilot, "8")
        assert isinstance(pilot.app.screen, SystemsScreen)
        first, second = screen_text(pilot).splitlines()[4:6]
        assert "this host" in first and OTHER_SYSTEM.id in second
        await press(pilot, "j")
        assert OTHER_SYSTEM.cpu in screen_text(pilot) and "protocol hot-1" in screen_text(pilot)


async def test_without_results_only_this_host_is_listed(new: DataFolder) -> None:
    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape", "8")
        assert "Nothing was measured on it yet." in screen_text(pilot)
        assert "Open a model on the workbench" in screen_text(pilot)
        await press(pilot, "enter", "3", "enter", "s", "2", "tab", "shift+tab", "1")
        assert isinstance(pilot.app.screen, SystemsScreen)


async def test_systems_are_searched_by_their_facts(stored: DataFolder) -> None:
    async with running(app_on(stored), WIDE) as pilot:
        await press(pilot, "8", "slash", '"8375c"', "enter")
        assert "c6i.large" in screen_text(pilot).splitlines()[4]
        await press(pilot, "slash", "ctrl+u", '"nosuch"')
        assert "No system matches the search." in screen_text(pilot)


async def test_the_doctor_lists_disturbances_first_with_their_cures(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, "8", "4")
        lines = screen_text(pilot).splitlines()[2:]
        assert "noisy   other load: 90 % busy" in lines[1] and "1 noisy" in lines[-2]
        assert "cure: end what computes" in lines[3]
        await press(pilot, "j", "y")
        assert pilot.app.clipboard == "end what computes"
        await press(pilot, "G", "y")
        assert pilot.app.clipboard == "end what computes"


async def test_the_open_model_is_estimated_on_every_system(measured: DataFolder) -> None:
    (measured.path / "prices.toml").write_text(f'[dollars_per_hour]\n"{OTHER_SYSTEM.id}" = 0.17\n')
    async with running(app_on(measured), WIDE) as pilot:
        await press(pilot, *RESNET, "8")
        assert "3 Which machine for resnet18_v1" in screen_text(pilot)
        asked, answered = screen_text(pilot).splitlines()[:2]
        assert asked.strip() == "Which system is quickest and cheapest for resnet18_v1?"
        assert f"{OTHER_SYSTEM.id} (" in answered and " is the quickest of 2 systems" in answered
        assert "is the cheapest: $ " in answered
        quickest = next(line for line in screen_text(pilot).splitlines()[2:] if "quickest" in line)
        cheapest = next(line for line in screen_text(pilot).splitlines()[2:] if "cheapest" in line)
        assert quickest != cheapest and OTHER_SYSTEM.id[:8] in cheapest
        machines = pilot.app.screen.query_one(MachinesPanel)
        assert [it.estimate.way.system == OTHER_SYSTEM.id for it in machines.found] == [False, True]
        await press(pilot, "3", "s")
        assert [it.estimate.way.system == OTHER_SYSTEM.id for it in machines.found] == [True, False]


async def test_an_unmeasured_model_is_reported_on_the_systems_screen(measured: DataFolder) -> None:
    async with running(app_on(measured), WIDE) as pilot:
        await press(pilot, "slash", '"vgg16"', "enter", "enter", "8")
        assert "vgg16 was not measured on any system." in screen_text(pilot).splitlines()[1]
        assert "6 i on the workbench imports results of other hosts, F measures there." in screen_text(pilot)


async def test_a_system_can_be_chosen_for_the_estimates(measured: DataFolder) -> None:
    async with running(app_on(measured), WIDE) as pilot:
        await press(pilot, *RESNET, "8", "j", "enter")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        assert pilot.app.screen.choices.system == OTHER_SYSTEM.id


async def test_a_machine_can_be_chosen_for_the_estimates(measured: DataFolder) -> None:
    async with running(app_on(measured), WIDE) as pilot:
        await press(pilot, *RESNET, "8", "3", "G", "enter")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        assert pilot.app.screen.choices.system == OTHER_SYSTEM.id


async def test_leaving_the_systems_screen_changes_nothing(measured: DataFolder) -> None:
    async with running(app_on(measured), WIDE) as pilot:
        await press(pilot, "8", "r", "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        assert pilot.app.screen.choices.system is None


async def test_invalid_prices_are_reported(measured: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    (measured.path / "prices.toml").write_text("nonsense")
    # A short path stands in one line on every machine.
    monkeypatch.chdir(measured.path.parent)
    async with running(app_on(DataFolder(Path(measured.path.name))), WIDE) as pilot:
        await press(pilot, "8")
        assert "prices.toml" in screen_text(pilot)


async def test_reopening_the_systems_screen_shows_changes(stored: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(app_on(stored), WIDE) as pilot:
        await press(pilot, "8")
        assert "other load" in screen_text(pilot) and "new.large" not in screen_text(pilot)
        cured = (Finding("other load", "2 % busy", NoiseVerdict.QUIET, "outliers", ""),)
        monkeypatch.setattr(work, "findings", lambda: cured)
        with ResultsDatabase(stored.store) as store:
            store.add(system("new.large"), measurement(system="new.large"))
        await press(pilot, "r")
        assert "2 % busy" in screen_text(pilot) and "temperature" not in screen_text(pilot)
        assert "new.large" in screen_text(pilot)
