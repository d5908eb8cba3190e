"""Copies of panels: all rows as texts, and pictures, in the clipboard and in a file."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.bricks.decomposition import compare, decompose, model_bricks
from dlbricks_tui.documents.results import RESULT_COLUMNS
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui import saving
from dlbricks_tui.tui.analysis import LayersPanel, WhatIfsPanel
from dlbricks_tui.tui.corpus import GranularitiesPanel, KindsPanel, LikenessPanel, UniquenessPanel
from dlbricks_tui.tui.dialogs.notices import CopyScreen, ErrorScreen
from dlbricks_tui.tui.fleet import FleetModelsPanel, HostsPanel, RankingPanel
from dlbricks_tui.tui.result_table import FIRST_COLUMNS, HistoryPanel, RecordPanel, ResultsPanel
from dlbricks_tui.tui.results import ResultsScreen
from dlbricks_tui.tui.run.screen import BricksPanel, EstimatesPanel, NotesPanel
from dlbricks_tui.tui.scenario import LoadTestsPanel
from dlbricks_tui.tui.systems import DoctorPanel, MachinesPanel, SystemsPanel
from dlbricks_tui.tui.trace import TimelinePanel, TracesPanel
from dlbricks_tui.tui.variants import VariantsPanel
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.workbench.estimate import EstimatePanel
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.tree import DetailsPanel, TreePanel
from tests.documents.test_ranking import MIXED
from tests.fleet.sample_fleet import sample_fleet
from tests.runs.live_runs import in_the_middle, put_run
from tests.tui.application import LIBRARY, MEASURED_ONLY, NARROW, app_on, press, running, screen_text, showing
from tests.tui.results import OTHER_SYSTEM, graph_of, store_run
from tests.tui.snapshots import check_all
from tests.tui.stored_results import RESULTS
from tests.tui.test_analysis_screen import ONE_THREAD
from tests.tui.test_analysis_screen import screen_of as analysis_of
from tests.tui.test_fleet_screen import screen_of as fleet_of
from tests.tui.test_run_screens import shows
from tests.tui.test_scenario_screen import predicted_once, store_load_test  # noqa: F401 - a fixture
from tests.tui.test_scenario_screen import screen_of as scenario_of
from tests.tui.test_trace_screen import screen_of as trace_of_model
from tests.tui.test_variants_screen import screen
from tests.tui.traces import store_trace

Table = tuple[tuple[str, ...], list[list[str]]]


def table(pilot: Pilot[None], kind: type[Panel]) -> Table:
    """Return the titles and the rows of a copy of a panel on the screen."""
    found = pilot.app.screen.query_one(kind).as_texts()
    rows = [list(row) for row in found.rows]
    assert all(len(row) == len(found.titles) for row in rows)
    return found.titles, rows


def told(app: App[Any]) -> str:
    return [note.message for note in app._notifications][-1]


def column_of(found: Table, title: str) -> list[str]:
    titles_, rows = found
    return [row[titles_.index(title)] for row in rows]


async def test_copies_of_the_workbench_have_all_models_parts_and_facts(measured: DataFolder) -> None:
    async with running(app_on(measured), NARROW) as pilot:
        await press(pilot, "slash", '"resnet18"', "enter", "enter", "1", "slash", "escape")
        await press(pilot, "2", "asterisk")
        heading, rows = models = table(pilot, ModelsPanel)
        assert heading == ("model", "layers", "unique", "task", "runtime", "age", "ms")
        assert sorted(column_of(models, "model")) == sorted(LIBRARY)
        assert [row[-1] for row in rows if row[0] == "resnet18_v1"] != ["-"]
        parts = table(pilot, TreePanel)
        assert len(parts[1]) == pilot.app.screen.query_one(TreePanel).rows.row_count > NARROW[1]
        assert {"part", "output", "times", "ms", "share"} <= set(parts[0]) and all(column_of(parts, "part"))
        assert any("." in cell for cell in column_of(parts, "ms")) and "█" not in str(parts)
        assert any(name.lower().startswith("sequential") for name in column_of(table(pilot, EstimatePanel), "fact"))
        assert len(table(pilot, DetailsPanel)[1]) > 1
        # The systems estimate the open model.
        await press(pilot, "S")
        systems, machines = table(pilot, SystemsPanel), table(pilot, MachinesPanel)
        assert systems[0] == ("system", "processor", "cores", "memory", "price", "bricks", "models")
        assert column_of(systems, "system")[1:] == [OTHER_SYSTEM.id]
        assert machines[0] == ("system", "latency", "$/million", "by", "remarks") and len(machines[1]) == 2
        await press(pilot, "4")
        doctor = pilot.app.screen.query_one(DoctorPanel)
        cures = [told for told in column_of(table(pilot, DoctorPanel), "value") if told.startswith("cure: ")]
        assert cures == [f"cure: {it.text}" for it in doctor._groups if it.text]
        # The keys of the panel still find the lines that are shown.
        assert len(doctor._texts) == doctor.rows.row_count


async def test_copies_of_the_corpus_and_of_a_run_have_all_rows(measured: DataFolder) -> None:
    expected = compare([model_bricks(decompose(graph_of(name))) for name in LIBRARY])
    async with running(app_on(measured, MEASURED_ONLY), NARROW) as pilot:
        await press(pilot, "U")
        unique, alike, kinds = (table(pilot, it) for it in (UniquenessPanel, LikenessPanel, KindsPanel))
        assert unique[0] == ("model", "layers", "unique", "share")
        assert sorted(column_of(unique, "model")) == sorted((*LIBRARY, "all together"))
        assert column_of(unique, "layers")[-1] == f"{expected.layers:,}"
        assert alike[0] == ("model", *column_of(alike, "model"))
        assert all(row[at + 1] == "100.0 %" for at, row in enumerate(alike[1]))
        assert kinds[0] == ("kind", "layers", "repeated", "share")
        assert column_of(kinds, "repeated") == [f"{it.repeated:,}" for it in expected.repeated_types]
        assert table(pilot, GranularitiesPanel)[0] == ("bricks of", "speed-up", "error", "worst", "models", "on")
        await press(pilot, "escape")
        put_run(measured, in_the_middle())
        await shows(pilot, "17 of 40 bricks")
        await press(pilot, "w")
        bricks, estimates, notes = (table(pilot, it) for it in (BricksPanel, EstimatesPanel, NotesPanel))
        assert bricks[0] == ("brick", "state", "runs", "ms", "±", "reason")
        assert len(bricks[1]) == pilot.app.screen.query_one(BricksPanel).rows.row_count
        assert any(column_of(bricks, "reason")) and {"failed", "measured"} <= {*column_of(bricks, "state")}
        assert {"model", "ms", "parallel", "±", "run"} <= set(estimates[0])
        assert "resnet18_v1" in column_of(estimates, "model")
        assert len(notes[1]) == len(pilot.app.screen.query_one(NotesPanel)._notes)
        assert all(":" in when for when in column_of(notes, "fact"))


def store_load_tests(data: DataFolder) -> None:
    store_run(data, ["squeezenet1.1"])
    for number in range(20):
        store_load_test(data, uuid=f"{number:032x}")


def store_two_runs(data: DataFolder) -> None:
    store_run(data, ["squeezenet1.1"])
    store_run(data, ["squeezenet1.1"], runtime=ONE_THREAD, factor=0.75)


# What is stored, the screen that shows it, and the titles and the number of rows of its panels.
SCREENS: dict[
    str,
    tuple[
        Callable[[DataFolder], object],
        Callable[[WorkbenchSession], Screen[Any]],
        dict[type[Panel], tuple[tuple[str, ...], int]],
    ],
] = {
    "variants": (
        lambda _: None,
        lambda _: screen(MIXED),
        {VariantsPanel: (("runtime", "threads", "batch 1", "8", "16"), 3)},
    ),
    "load tests": (
        store_load_tests,
        scenario_of,
        {LoadTestsPanel: (("when", "scenario", "per second", "ms", "requests", "verdict", "id"), 20)},
    ),
    "traces": (
        store_trace,
        trace_of_model,
        {
            TracesPanel: (("trace", "when (UTC)", "runtime", "layers", "batch", "size"), 1),
            TimelinePanel: (("fact", "value"), 11),
        },
    ),
    "fleet": (
        sample_fleet,
        fleet_of,
        {
            HostsPanel: (("host", "state", "system", "bricks", "failed", "disturbed", "left", "reports"), 3),
            FleetModelsPanel: (("model", "fastest", "ms", "$/million", "order"), 2),
            RankingPanel: (("host", "latency", "95 % interval", "per second", "price"), 2),
        },
    ),
    "analysis": (
        store_two_runs,
        analysis_of,
        {
            WhatIfsPanel: (("what if", "gain", "95 %", "ms", "proved"), 2),
            LayersPanel: (("layers", "here ms", "best ms", "slower", "fastest"), 66),
        },
    ),
}


@pytest.mark.usefixtures("predicted_once")
@pytest.mark.parametrize("name", SCREENS)
async def test_a_copy_has_the_titles_and_all_rows_of_a_panel(name: str, new: DataFolder) -> None:
    store, screen_of, panels = SCREENS[name]
    store(new)
    async with showing(new, screen_of, NARROW) as pilot:
        found = {kind: table(pilot, kind) for kind in panels}
        assert {kind: (titles, len(rows)) for kind, (titles, rows) in found.items()} == panels
        assert all(row[0] for _, rows in found.values() for row in rows)


# The key


async def test_a_key_copies_the_focused_panel_to_the_clipboard_and_a_file(stored: DataFolder) -> None:
    readers: dict[str, Callable[[str], list[Any]]] = {"md": _markdown_rows, "csv": _csv_rows, "json": json.loads}
    async with showing(stored, ResultsScreen, NARROW) as pilot:
        # Not all columns fit, and not all rows.
        titles = tuple("when, UTC" if name == "when" else RESULT_COLUMNS[name].title for name in FIRST_COLUMNS)
        heading, rows = table(pilot, ResultsPanel)
        assert (heading, len(rows)) == (titles, RESULTS) and len(screen_text(pilot).splitlines()) < RESULTS
        assert table(pilot, HistoryPanel)[0] == ("when, UTC", "ms", "change")
        assert "trimmed mean" in column_of(table(pilot, RecordPanel), "fact")
        await press(pilot, "slash", '"kind=convolution"', "enter", "Y", "escape")
        assert isinstance(pilot.app.screen, ResultsScreen) and pilot.app.clipboard == ""
        assert not stored.pictures.exists()
        for steps, (ending, read) in zip(("", "j", "j"), readers.items(), strict=True):
            # The last choice is the default of the next copy.
            await press(pilot, "1", "Y", *steps)
            assert isinstance(pilot.app.screen, CopyScreen) and "Copy: Results" in screen_text(pilot)
            await press(pilot, "enter")
            file = stored.path / f"copied.{ending}"
            assert pilot.app.clipboard == file.read_text()
            assert told(pilot.app).startswith("Copied: 12 rows as ") and str(file) in told(pilot.app)
            assert len(read(file.read_text())) == 12
            # The same key again copies, too.
            file.unlink()
            await press(pilot, "3", "Y", "Y")
            assert file.exists() and told(pilot.app).startswith("Copied: 2 rows as ")
        await press(pilot, "1", "Y", "j", "enter")
        (panel,) = stored.pictures.iterdir()
        assert str(panel) in told(pilot.app) and panel.read_text().startswith("<svg")
        assert "Results" in panel.read_text() and "quit" not in panel.read_text()
        panel.unlink()
        await press(pilot, "Y", "j", "enter")
        (whole,) = stored.pictures.iterdir()
        assert "Results" in whole.read_text() and "quit" in whole.read_text()


async def test_a_copy_too_long_for_terminals_is_only_in_the_file(
    stored: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(saving, "_MOST_IN_CLIPBOARD", 1000)
    async with showing(stored, ResultsScreen) as pilot:
        await press(pilot, "Y")
        await check_all(pilot, "copy")
        await press(pilot, "enter")
        assert pilot.app.clipboard == "" and (stored.path / "copied.md").stat().st_size > 1000
        assert told(pilot.app).startswith(f"The copy is in {stored.path / 'copied.md'}: {RESULTS} rows as Markdown.")
        # Nothing is lost silently.
        (stored.path / "copied.md").unlink()
        (stored.path / "copied.md").mkdir()
        await press(pilot, "Y", "enter")
        assert (tmp_path / "dlbricks-copied.md").stat().st_size > 1000
        assert str(tmp_path / "dlbricks-copied.md") in told(pilot.app)
        (tmp_path / "dlbricks-copied.md").unlink()
        (tmp_path / "dlbricks-copied.md").mkdir()
        await press(pilot, "Y", "enter")
        assert isinstance(pilot.app.screen, ErrorScreen) and "cannot be written" in screen_text(pilot)


def _markdown_rows(text: str) -> list[str]:
    return text.splitlines()[2:]


def _csv_rows(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))[1:]
