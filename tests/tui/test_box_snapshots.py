"""Snapshots of the boxes that tests of their screens do not look at as a whole."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from dlbricks_tui.answers.analysis.lacking import MeasuringPlan
from dlbricks_tui.answers.suites.exporting import Exported
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.run_folder import StoredRuns
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.share.suites.exporting import Assembled, OmittedBrick
from dlbricks_tui.share.suites.key_file import Meaning, SuiteKey
from dlbricks_tui.share.suites.manifest import Manifest
from dlbricks_tui.tui.analysis.measuring import MeasureScreen
from dlbricks_tui.tui.dialogs.notices import DemonstrationScreen
from dlbricks_tui.tui.dialogs.writing import WritingScreen, whole_numbers
from dlbricks_tui.tui.fleet.boxes import AllFleetsScreen, CancelFleetScreen, HostsFileScreen, StartFleetScreen
from dlbricks_tui.tui.scenario.cancelling import CancelLoadScreen
from dlbricks_tui.tui.trace.cancelling import CancelTraceScreen
from dlbricks_tui.tui.trace.writing import WriteTraceScreen
from dlbricks_tui.tui.workbench.column_box import ModelColumnsScreen
from dlbricks_tui.tui.workbench.suites import ExportSuiteScreen, SuiteWrittenScreen
from tests.tui.application import press, showing
from tests.tui.snapshots import check_all


def exported() -> Exported:
    """Return an export of two models, of which one was left out, with a brick that cannot travel."""
    suite, number = "3f" * 16, iter(range(100))
    meanings = {f"{next(number):032x}": Meaning("b" * 64, "", "", "onnxruntime") for _ in range(28)}
    decoys = frozenset(f"{next(number):032x}" for _ in range(67))
    key = SuiteKey(suite, "0" * 64, Level.FUSED, ("secret",), meanings, decoys)
    omitted = (OmittedBrick("If 1x64x56x56", "has a graph inside"),)
    assembled = Assembled(Manifest(suite, Level.FUSED, Precision.F32, ("onnxruntime",), ()), {}, key, omitted)
    key_file = Path(f"/home/ann/.local/share/dlbricks/suites/{suite}.key.json")
    return Exported(assembled, Path("/home/ann/suite.dlbricks"), key_file, 3, ("broken: its file is damaged",))


BOXES: dict[str, tuple[Callable[[], Screen[Any]], tuple[str, ...]]] = {
    "analysis-measure": (lambda: MeasureScreen(MeasuringPlan("squeezenet1.1", (), (), 20.0, 2)), ()),
    "demonstration": (lambda: DemonstrationScreen("measured on another host on 2026-11-27"), ()),
    "fleet-cancel": (lambda: CancelFleetScreen("20261127-163554-3059", ("squeezenet1.1", "alexnet")), ()),
    "fleet-hosts-file": (HostsFileScreen, ('"ho"',)),
    "fleet-runs": (lambda: AllFleetsScreen(lambda: StoredRuns((), {}), lambda _: None), ()),
    "fleet-start": (lambda: StartFleetScreen(("squeezenet1.1", "alexnet"), ("onnxruntime",)), ("l", "j")),
    "model-columns": (lambda: ModelColumnsScreen(("estimate", "age")), ("j", "space")),
    "scenario-cancel": (lambda: CancelLoadScreen("Test 2 of 4 is in progress."), ()),
    "suite-export": (lambda: ExportSuiteScreen(("squeezenet1.1",)), ('"/no/such/suite.dlbricks"', "enter")),
    "suite-written": (lambda: SuiteWrittenScreen(exported()), ()),
    "trace-cancel": (lambda: CancelTraceScreen("The model is being traced."), ()),
    "trace-write": (lambda: WriteTraceScreen("squeezenet1.1"), ('"tr"',)),
    "writing": (
        lambda: WritingScreen("Batch sizes", "", "1,2,4", "Whole numbers", lambda text: whole_numbers(text, 64)),
        ('"1,x"', "enter"),
    ),
}


@pytest.mark.parametrize("name", BOXES)
async def test_a_box_matches_its_snapshot(
    name: str, new: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("hosts.toml", "traces.pftrace"):
        (tmp_path / file).touch()
    monkeypatch.chdir(tmp_path)
    make, keys = BOXES[name]
    async with showing(new, lambda _: make()) as pilot:
        await press(pilot, *keys)
        await check_all(pilot, name)
