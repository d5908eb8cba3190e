"""Copies of panels: all rows as texts, and pictures, in the clipboard and in a file."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from dlbricks_tui.bricks.corpus import compare, model_bricks
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.documents.lines import Span, column, line
from dlbricks_tui.documents.results import RESULT_COLUMNS
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui import saving
from dlbricks_tui.tui.analysis.panels import LayersPanel, WhatIfsPanel
from dlbricks_tui.tui.corpus.panels import GranularitiesPanel, KindsPanel, LikenessPanel, UniquenessPanel
from dlbricks_tui.tui.dialogs.notices import CopyScreen, ErrorScreen
from dlbricks_tui.tui.fleet.panels import FleetModelsPanel, HostsPanel, RankingPanel
from dlbricks_tui.tui.results.panels import HistoryPanel, RecordPanel
from dlbricks_tui.tui.results.screen import ResultsScreen
from dlbricks_tui.tui.results.table import FIRST_COLUMNS, ResultsPanel
from dlbricks_tui.tui.run.screen import BricksPanel, EstimatesPanel, NotesPanel
from dlbricks_tui.tui.scenario.panels import LoadTestsPanel
from dlbricks_tui.tui.systems.screen import DoctorPanel, MachinesPanel, SystemsPanel
from dlbricks_tui.tui.trace.panels import TimelinePanel, TracesPanel
from dlbricks_tui.tui.variants.screen import VariantsPanel
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.text import lines_as_texts
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
from tests.tui.test_analysis_screen import ONE_THREAD, TWO_THREADS
from tests.tui.test_fleet_screen import fleet_screen
from tests.tui.test_run_screens import shows
from tests.tui.test_scenario_screen import scenario_screen, store_load_test
from tests.tui.test_trace_screen import timeline, trace_screen
from tests.tui.test_variants_screen import screen
from tests.tui.traces import ID, store_trace

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


# Rows as texts


def test_lines_have_a_name_if_they_begin_with_a_column() -> None:
    lines = [line(column("takes", 11), "1.5", Span(" ms", "muted")), (), line("A  sentence.")]
    assert lines_as_texts(lines).rows == [["takes", "1.5 ms"], ["", "A sentence."]]


# Every kind of list


async def test_a_copy_of_the_results_has_the_shown_columns_and_all_results(stored: DataFolder) -> None:
    async with showing(stored, ResultsScreen, NARROW) as pilot:
        panel = pilot.app.screen.query_one(ResultsPanel)
        # Not all columns fit, and not all rows.
        assert len(screen_text(pilot).splitlines()) < RESULTS
        heading, rows = table(pilot, ResultsPanel)
        assert heading == tuple("when, UTC" if name == "when" else RESULT_COLUMNS[name].title for name in FIRST_COLUMNS)
        assert len(rows) == RESULTS and panel.shown is not None
        assert column_of((heading, rows), "part") == panel.shown.values("name")
        assert len(table(pilot, HistoryPanel)[1]) == 2 and table(pilot, HistoryPanel)[0] == (
            "when, UTC",
            "ms",
            "change",
        )
        assert "trimmed mean" in column_of(table(pilot, RecordPanel), "fact")


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
        assert {"part", "output", "times", "ms", "share"} <= set(parts[0])
        assert all(column_of(parts, "part"))
        assert any("." in cell for cell in column_of(parts, "ms")) and "█" not in str(parts)
        assert any(name.lower().startswith("sequential") for name in column_of(table(pilot, EstimatePanel), "fact"))
        assert len(table(pilot, DetailsPanel)[1]) > 1
        # The systems estimate the open model.
        await press(pilot, "S")
        systems = table(pilot, SystemsPanel)
        assert systems[0] == ("system", "processor", "cores", "memory", "price", "bricks", "models")
        assert column_of(systems, "system")[0].startswith("this host ")
        assert column_of(systems, "system")[1:] == [OTHER_SYSTEM.id]
        machines = table(pilot, MachinesPanel)
        assert machines[0] == ("system", "latency", "$/million", "by", "remarks") and len(machines[1]) == 2
        await press(pilot, "4")
        doctor = pilot.app.screen.query_one(DoctorPanel)
        findings = table(pilot, DoctorPanel)
        cures = [told for told in column_of(findings, "value") if told.startswith("cure: ")]
        assert cures == [f"cure: {it.text}" for it in doctor._groups if it.text]
        # The keys of the panel still find the lines that are shown.
        assert len(doctor._texts) == doctor.rows.row_count


async def test_copies_of_the_corpus_have_all_models_kinds_and_pairs(measured: DataFolder) -> None:
    expected = compare([model_bricks(decompose(graph_of(name))) for name in LIBRARY])
    async with running(app_on(measured, MEASURED_ONLY), NARROW) as pilot:
        await press(pilot, "U")
        unique = table(pilot, UniquenessPanel)
        assert unique[0] == ("model", "layers", "unique", "share")
        assert sorted(column_of(unique, "model")[:-1]) == sorted(LIBRARY)
        assert column_of(unique, "model")[-1] == "all together"
        assert column_of(unique, "layers")[-1] == f"{expected.layers:,}"
        alike = table(pilot, LikenessPanel)
        names = column_of(alike, "model")
        assert alike[0] == ("model", *names) and sorted(names) == sorted(LIBRARY)
        assert all(alike[1][at][at + 1] == "100.0 %" for at in range(len(names)))
        kinds = table(pilot, KindsPanel)
        assert kinds[0] == ("kind", "layers", "repeated", "share")
        assert column_of(kinds, "repeated") == [f"{it.repeated:,}" for it in expected.repeated_types]
        accuracy = table(pilot, GranularitiesPanel)
        assert accuracy[0] == ("bricks of", "speed-up", "error", "worst", "models", "on")
        assert all(cell.endswith("x") for cell in column_of(accuracy, "speed-up")) and accuracy[1]


async def test_copies_of_the_analysis_have_all_what_ifs_and_layers(new: DataFolder) -> None:
    store_run(new, ["squeezenet1.1"])
    store_run(new, ["squeezenet1.1"], runtime=ONE_THREAD, factor=0.75)
    async with running(app_on(new, TWO_THREADS), NARROW) as pilot:
        await press(pilot, "slash", '"squeezenet1.1"', "enter", "enter", "A")
        what_ifs = table(pilot, WhatIfsPanel)
        assert what_ifs[0] == ("what if", "gain", "95 %", "ms", "proved")
        assert column_of(what_ifs, "what if") == ["run 2 branches at once", "use 1 thread"]
        layers = table(pilot, LayersPanel)
        assert layers[0] == ("layers", "here ms", "best ms", "slower", "fastest")
        assert len(layers[1]) == len(pilot.app.screen.query_one(LayersPanel).found) > NARROW[1]
        assert all(name.startswith("squeezenet1.1_") for name in column_of(layers, "layers"))


async def test_copies_of_a_run_have_all_bricks_estimates_and_notes(measured: DataFolder) -> None:
    put_run(measured, in_the_middle())
    async with running(app_on(measured), NARROW) as pilot:
        await shows(pilot, "17 of 40 bricks")
        await press(pilot, "w")
        bricks = table(pilot, BricksPanel)
        assert bricks[0] == ("brick", "state", "runs", "ms", "±", "reason")
        assert len(bricks[1]) == pilot.app.screen.query_one(BricksPanel).rows.row_count
        assert [bool(reason) for reason in column_of(bricks, "reason")].count(True) >= 1
        assert "failed" in column_of(bricks, "state") and "measured" in column_of(bricks, "state")
        estimates = table(pilot, EstimatesPanel)
        assert {"model", "ms", "parallel", "±", "run"} <= set(estimates[0])
        assert "resnet18_v1" in column_of(estimates, "model")
        notes = table(pilot, NotesPanel)
        assert len(notes[1]) == len(pilot.app.screen.query_one(NotesPanel)._list.notes) and all(
            ":" in when for when in column_of(notes, "fact")
        )


async def test_a_copy_of_the_variants_is_the_matrix_with_the_columns_that_have_no_room(new: DataFolder) -> None:
    async with showing(new, lambda _: screen(MIXED), NARROW) as pilot:
        assert table(pilot, VariantsPanel) == (
            ("runtime", "threads", "batch 1", "8", "16"),
            [
                ["ONNX Runtime", "1", "10.00", "best 70.00", "-"],
                ["OpenVINO", "1", "-", "70.20", "-"],
                ["MXNet", "1", "-", "90.00", "-"],
            ],
        )


@pytest.mark.usefixtures("rough_predictions")
async def test_a_copy_of_the_load_tests_has_all_of_them(new: DataFolder) -> None:
    store_run(new, ["squeezenet1.1"])
    for number in range(20):
        store_load_test(new, uuid=f"{number:032x}")
    async with scenario_screen(new, NARROW) as pilot:
        tests = table(pilot, LoadTestsPanel)
        assert tests[0] == ("when", "scenario", "per second", "ms", "requests", "verdict", "id")
        assert len(tests[1]) == 20
        assert set(column_of(tests, "verdict")) == {"passed"}


async def test_copies_of_traces_have_all_tracks_and_all_traces(new: DataFolder) -> None:
    store_trace(new)
    async with trace_screen(new, NARROW) as pilot:
        state = timeline(pilot).state
        tracks, traces = table(pilot, TimelinePanel), table(pilot, TracesPanel)
        assert state is not None and len(tracks[1]) == len(state.rows) and all(column_of(tracks, "fact"))
        assert traces[0] == ("trace", "when (UTC)", "runtime", "layers", "batch", "size")
        assert column_of(traces, "trace") == [ID[:12]]


async def test_copies_of_a_fleet_have_all_hosts_and_models(new: DataFolder) -> None:
    sample_fleet(new)
    async with fleet_screen(new, NARROW) as pilot:
        hosts = table(pilot, HostsPanel)
        assert hosts[0] == ("host", "state", "system", "bricks", "failed", "disturbed", "left", "reports")
        rows = {row[0]: row[1:] for row in hosts[1]}
        assert rows["c7i"] == ["measuring", "c7i", "45 of 60", "1", "3 rounds", "42 s", ""]
        assert "0.2.0 is needed" in " ".join(rows["old"])
        models = table(pilot, FleetModelsPanel)
        assert models[0] == ("model", "fastest", "ms", "$/million", "order")
        assert column_of(models, "order") == ["sure", "not sure"]
        ranking = table(pilot, RankingPanel)
        assert ranking[0] == ("host", "latency", "95 % interval", "per second", "price") and len(ranking[1]) == 2


# The key


async def test_a_key_copies_the_focused_panel_to_the_clipboard_and_a_file(stored: DataFolder) -> None:
    readers: dict[str, Callable[[str], list[Any]]] = {"md": _markdown_rows, "csv": _csv_rows, "json": json.loads}
    async with showing(stored, ResultsScreen, NARROW) as pilot:
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
