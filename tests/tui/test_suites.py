"""Suites in the workbench: their export, the import of what another machine measured, and the box of scores."""

import stat
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.api.suites import EXPORT
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import JobFolders
from dlbricks_tui.share.suite_files import key_path, open_suite, read_key
from dlbricks_tui.tui.dialogs.dialog import Box
from dlbricks_tui.tui.dialogs.notices import ErrorScreen
from dlbricks_tui.tui.results import ResultsScreen
from dlbricks_tui.tui.run.boxes import JobScreen
from dlbricks_tui.tui.workbench.boxes import ExportSuiteScreen, ScoresScreen, SuiteWrittenScreen
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.jobs.carrying import stands_for_processes
from tests.runs.live_runs import in_the_middle, put_run
from tests.runs.runs import ROOT
from tests.share.trio import Trio
from tests.tui.application import app_on, eventually, press, running, screen_text, settled, showing, told
from tests.tui.test_run_screens import OPEN_ALEXNET, shows


def words(pilot: Pilot[None]) -> str:
    """Return the text of the box as if it had one line."""
    region = pilot.app.screen.query_one(Box).region
    lines = screen_text(pilot).splitlines()[region.y + 1 : region.bottom - 1]
    return " ".join(" ".join(each[region.x + 1 : region.right - 1] for each in lines).split())


# The process of an export, with a framework of the owner that is a table instead of MXNet.
EXPORTS = """
import sys
from contextlib import nullcontext
from dlbricks_tui.api import suites as exporting
from dlbricks_tui.runtime.variant import Precision
from tests.models.table_framework import TableFramework
class TableOfTheOwner(TableFramework):
    precision = Precision.F32
exporting.WorkerFramework = lambda *_: nullcontext(TableOfTheOwner())
exporting.export_in_process(*sys.argv[1:])
"""
# A process that says how far it is, and waits until it is ended.
WAITS = """
import signal, sys
from dlbricks_tui.api.suites import EXPORT
from dlbricks_tui.jobs.process import work_in_process
from dlbricks_tui.share.exporting import BricksChecked
def work(job):
    job.tell(BricksChecked(7, 20, 12.0))
    with job.signals.waiting():
        signal.pause()
sys.exit(work_in_process(EXPORT, *sys.argv[1:], work))
"""


@pytest.mark.mxnet
async def test_the_open_model_or_marked_ones_are_exported_and_the_key_stays_here(
    new: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "suite.dlbricks"
    stands_for_processes(monkeypatch, "-c", EXPORTS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", *OPEN_ALEXNET, "e", f'"{file}"', "enter")
        await eventually(pilot, lambda: isinstance(pilot.app.screen, SuiteWrittenScreen))
        await settled(pilot)
        shown = words(pilot)

        # Marked models are exported as they are cut.
        stands_for_processes(monkeypatch, "-c", WAITS)
        await press(pilot, "escape", "1", "slash", "escape", "g", "j", "space", "space", "plus")
        await pilot.press("e")
        await press(pilot, f'"{tmp_path}/two.dlbricks"')
        await pilot.press("enter")
        await shows(pilot, "7 of 20 bricks checked, about 12 s left")
        assert isinstance(pilot.app.screen, JobScreen)
        # It goes on without its box, which the same key opens again.
        await pilot.press("escape", "e")
        await shows(pilot, "7 of 20 bricks checked")
        await pilot.press("x")
        await shows(pilot, "cancelled: it was cancelled")
        await pilot.press("escape")
        await eventually(pilot, lambda: told(pilot)[-1:] == ["The export is cancelled; nothing was written."])
        # The next one can begin.
        await press(pilot, "e")
        assert isinstance(pilot.app.screen, ExportSuiteScreen)
    _, job = JobFolders(new.jobs).folders()
    order = EXPORT.request_of(job)
    assert len(order.sources) == 2 and order.options.granularity == 2
    assert stat.S_IMODE(job.path.stat().st_mode) == 0o700
    with open_suite(file) as suite:
        manifest = suite.manifest
    (key_file,) = (new.path / "suites").iterdir()
    key = read_key(key_path(new, manifest.suite))
    assert key_file == key_path(new, manifest.suite) and stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert key.models == ("alexnet",) and len(key.meanings) + len(key.decoys) == len(manifest.bricks)
    assert f"{len(key.meanings)} bricks of yours among {len(key.decoys)} of 3 decoys" in shown
    assert "dlbricks suite run suite.dlbricks -o results.json" in shown and "results.json here: R i" in shown


async def test_an_export_needs_a_model_a_new_file_and_no_run_that_measures(new: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "old.dlbricks").touch()
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", "slash", '"nosuch"', "enter", "e", "1", "escape")
        assert told(pilot) == ["Mark the models to export with space, or open one."]
        await press(pilot, *OPEN_ALEXNET, "e", f'"{tmp_path}/old.dlbricks"', "enter")
        assert "exists already: name a new file" in words(pilot)
        await press(pilot, "ctrl+u", '"/no/such/folder/x.dlbricks"', "enter")
        assert "No such folder: /no/such/folder" in words(pilot)
        await press(pilot, "escape")
        put_run(new, in_the_middle())
        await shows(pilot, "17 of 40 bricks")
        await press(pilot, "e")
        assert isinstance(pilot.app.screen, WorkbenchScreen) and told(pilot)[-1].startswith("A run measures now")
    assert not (new.path / "suites").exists()


async def test_results_of_a_suite_are_imported_like_any_file_unless_they_are_damaged_or_have_no_key(
    new: DataFolder, tmp_path: Path
) -> None:
    (tmp_path / "trio").mkdir()
    trio = Trio(tmp_path / "trio")
    trio.export()
    trio.run()
    async with showing(trio.owner.data, ResultsScreen) as pilot:
        await press(pilot, "i", f'"{trio.results}"', "enter")
        reading, first = told(pilot)
        assert reading == "Reading results.json."
        measurements = trio.owner.contents().measurements
        bricks = len({it.brick for it in measurements})
        assert first.startswith(f"{bricks} new bricks of yours, 0 known; 0 failed there, 0 not measured. ")
        assert f"esc S lists the systems: select {measurements[0].system}" in first
        await press(pilot, "i", f'"{trio.results}"', "enter")
        assert told(pilot)[-1].startswith(f"0 new bricks of yours, {bricks} known; ")
    changed = tmp_path / "changed.json"
    changed.write_text(trio.results.read_text().replace('"minimum_ms": ', '"minimum_ms": 9', 1))
    async with showing(new, ResultsScreen) as pilot:
        for path, why in ((trio.results, "there is no key"), (changed, "it was damaged or changed")):
            await press(pilot, "i", f'"{path}"', "enter")
            assert isinstance(pilot.app.screen, ErrorScreen) and why in words(pilot)
            await press(pilot, "escape")
    assert not new.store.exists()


async def test_a_key_opens_the_scores(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "P")
        assert isinstance(pilot.app.screen, ScoresScreen)
        shown = screen_text(pilot)
        assert "resnet18_v1" in shown and "1 predicted from the results of other models" in shown
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, ScoresScreen)
