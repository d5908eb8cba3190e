import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import parse_filter
from dlbricks_tui.store.statistics import summarise
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.dialogs.notices import ErrorScreen, HiddenMarksScreen
from dlbricks_tui.tui.results.columns import FIRST_COLUMNS
from dlbricks_tui.tui.results.comparison import ContrastScreen
from dlbricks_tui.tui.results.dialogs import DeleteScreen
from dlbricks_tui.tui.results.record import HistoryPanel, RecordPanel
from dlbricks_tui.tui.results.screen import ResultsScreen
from dlbricks_tui.tui.results.table import ResultsPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.store.samples import end_to_end, form, measurement, provenance
from tests.tui.application import MEDIUM, NARROW, WIDE, app_on, press, running, screen_text, settled, showing
from tests.tui.stored_results import BRICKS, HERE, RESULTS, THERE

# At the time of the tests.
AN_HOUR_AGO = "2026-11-21T13:30:00+00:00"


@asynccontextmanager
async def results_screen(data: DataFolder, size: tuple[int, int] = MEDIUM) -> AsyncIterator[Pilot[None]]:
    """Run the application with the screen of results alone."""
    async with showing(data, ResultsScreen, size) as pilot:
        yield pilot


def table(pilot: Pilot[None]) -> ResultsPanel:
    return pilot.app.screen.query_one(ResultsPanel)


def column(pilot: Pilot[None], name: str) -> list[Any]:
    shown = table(pilot).shown
    return shown.values(name) if shown else []


def titled(pilot: Pilot[None]) -> str:
    return str(table(pilot).border_title)


async def test_the_newest_results_come_first(stored: DataFolder) -> None:
    async with running(app_on(stored)) as pilot:
        await press(pilot, "6")
        assert isinstance(pilot.app.screen, ResultsScreen)
        assert titled(pilot) == f"1 Results {RESULTS}"
        assert column(pilot, "when") == sorted(column(pilot, "when"), reverse=True)


async def test_an_empty_store_shows_what_to_do(new: DataFolder) -> None:
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", "6")
        assert "Nothing was measured or imported yet." in screen_text(pilot) and "imports a file" in screen_text(pilot)
        await press(pilot, "enter", "space", "a", "b", "d", "e", "v", "=", "s", "c", "escape")
        assert isinstance(pilot.app.screen, ResultsScreen)


async def test_results_are_found_while_the_user_types(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", '"kind=convolution"')
        assert titled(pilot) == f"1 Results 12 of {RESULTS}"
        await press(pilot, "space", '"c6i"')
        assert titled(pilot) == f"1 Results 4 of {RESULTS}"
        await press(pilot, "escape")
        assert titled(pilot) == f"1 Results {RESULTS}"


SOUGHT = (
    ("2026-11-20", BRICKS),
    ("when<2026-11-21", BRICKS),
    (f"system={THERE}", BRICKS + 1),
    ("system=", RESULTS),
    ("trimmed_mean_ms>5", 2),
    ("ms>5", 2),
    ("n=25", RESULTS),
    ("good=no", 1),
    ("1x64x56x7", 3),
    (form(0, "conv").key[:9], 3),
    ('run="20261121-080000-0001" relu', 8),
    ('run="20261120-080000', 0),
    ("nosuchthing", 0),
)


async def test_every_column_can_be_searched(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "slash")
        for sought, count in SOUGHT:
            table(pilot).search_line.seek(sought)
            await settled(pilot)
            assert len(column(pilot, "id")) == count, sought


def test_all_example_filters_of_the_panel_are_valid() -> None:
    given = re.findall(r"\w+[=~<>]+[^\s,;]+", f"{ResultsPanel.SEARCH_HINT} {ResultsPanel.ABOUT}")
    assert "ms>5" in given and "system~c5" in given
    for each in given:
        assert parse_filter(each.rstrip(".")).is_cacheable(), each


async def test_an_invalid_filter_is_reported_until_it_is_corrected(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", '"colour=red"')
        assert "there is no column 'colour'" in screen_text(pilot)
        await press(pilot, "ctrl+u", '"relu"')
        assert titled(pilot) == f"1 Results 12 of {RESULTS}"


async def test_the_underlined_column_is_sorted_both_ways(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "s")
        assert column(pilot, "name") == sorted(column(pilot, "name"))
        await press(pilot, *["l"] * 4, "s")
        assert column(pilot, "trimmed_mean_ms")[:2] == sorted(column(pilot, "trimmed_mean_ms"), reverse=True)[:2]
        await press(pilot, "s")
        assert column(pilot, "trimmed_mean_ms") == sorted(column(pilot, "trimmed_mean_ms"))
        assert "ms↑" in screen_text(pilot)
        await press(pilot, *["h"] * 4, "s")
        assert "name↑" in screen_text(pilot)


async def test_results_of_one_name_are_told_apart_on_80_columns(new: DataFolder) -> None:
    with ResultsDatabase(new.store) as store:
        for threads, batch in ((1, 1), (2, 1), (2, 8)):
            identity = f"onnxruntime-1.32.0 python-3.11 threads-{threads}"
            store.add(end_to_end(runtime=identity, batch_size=batch, run=f"run {threads} {batch}", when=AN_HOUR_AGO))
    async with results_screen(new, NARROW) as pilot:
        heading, *rows = screen_text(pilot).splitlines()[1:5]
    assert heading.split()[1:7] == ["name", "runtime", "threads", "batch", "ms", "age↑"]
    told = sorted(tuple(row.split()[-7:-4]) for row in rows)
    assert told == [
        ("onnxruntime-1.32.0", "1", "1"),
        ("onnxruntime-1.32.0", "2", "1"),
        ("onnxruntime-1.32.0", "2", "8"),
    ]
    assert all(" 1 h " in row for row in rows)


async def test_a_run_has_one_result_of_each_brick_and_model(new: DataFolder) -> None:
    layers = [(f"fire{number}", (latency_ms,) * 9) for number, latency_ms in enumerate((1.0, 3.0), start=1)]
    with ResultsDatabase(new.store) as store:
        for place, (layer, samples_ms) in enumerate(layers):
            taken: dict[str, Any] = {"samples_ms": samples_ms, "statistics": summarise(samples_ms), "context": ""}
            where: dict[str, Any] = {"occurrence": (("layer", layer),), "uuid": f"{place:032x}", "when": AN_HOUR_AGO}
            store.add(form(1, "conv"), measurement(brick=form(1, "conv").key, **taken, **where))
        # The latency at first, and that in the rounds of the bricks.
        for minute, samples_ms in enumerate(((20.0,) * 9, (21.0,) * 9)):
            when = f"2026-11-21T13:0{minute}:00+00:00"
            store.add(end_to_end(samples_ms=samples_ms, statistics=summarise(samples_ms), when=when))
    async with results_screen(new, WIDE) as pilot:
        assert titled(pilot) == "1 Results 2"
        assert sorted(column(pilot, "trimmed_mean_ms")) == [2.0, 21.0]
        await press(pilot, "slash", '"of=brick"', "enter")
        assert "Mean of 2 layers" in screen_text(pilot) and "fire2" in screen_text(pilot)
        assert "18 samples" in screen_text(pilot)
        await press(pilot, "slash", "ctrl+u", '"of=model"', "enter")
        assert pilot.app.screen.query_one(HistoryPanel).border_title == "3 History 1 run"
        await press(pilot, "slash", "escape", "a", "d", "y")
        assert titled(pilot) == "1 Results 0"
        with ResultsDatabase(new.store) as store:
            assert not store.select()
        await press(pilot, "u")
        with ResultsDatabase(new.store) as store:
            assert len(store.select()) == 4 and len(store.results()) == 2


async def test_columns_that_do_not_fit_are_reached_to_the_right(stored: DataFolder) -> None:
    async with results_screen(stored, NARROW) as pilot:
        assert "good" not in screen_text(pilot).splitlines()[1]
        await press(pilot, *["l"] * 12)
        assert "good" in screen_text(pilot).splitlines()[1]
        await press(pilot, *["h"] * 12)
        assert "name" in screen_text(pilot).splitlines()[1]


async def test_columns_can_be_selected_and_ordered(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "c", "space", "space", "K", "enter")
        # Name and runtime are hidden, and the threads come first.
        assert screen_text(pilot).splitlines()[1].split()[1:4] == ["threads", "batch", "ms"]
        await press(pilot, "c", "escape")
        assert screen_text(pilot).splitlines()[1].split()[1:4] == ["threads", "batch", "ms"]


async def test_a_column_can_be_moved_in_both_directions(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "c", "J", "enter")
        assert screen_text(pilot).splitlines()[1].split()[1:4] == ["runtime", "name", "threads"]
        await press(pilot, "c", "j", "j", "l", "right", "left", "h", "K", "enter")
        assert screen_text(pilot).splitlines()[1].split()[1:4] == ["runtime", "threads", "name"]
        await press(pilot, "c", "h", "G", "l", "enter")
        assert screen_text(pilot).splitlines()[1].split()[1:4] == ["runtime", "threads", "name"]


async def test_at_least_one_column_has_to_be_selected(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "c", *["space"] * len(FIRST_COLUMNS), "enter")
        assert not isinstance(pilot.app.screen, ResultsScreen)


async def test_the_selected_result_is_shown_in_full(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "slash", '"1x64x56x5 when=2026-11-21 system=c5.xlarge"', "enter")
        assert "25 samples, 2026-11-21 08:45 UTC" in screen_text(pilot)
        assert re.search(r"noise +.*load 0.25", screen_text(pilot))
        await press(pilot, "enter")
        assert pilot.app.screen.query_one(RecordPanel).has_class("-current")
        await press(pilot, "y")
        assert pilot.app.clipboard == form(5, "concat").key


@pytest.mark.parametrize("panel", ["1", "2"])
async def test_copying_shows_the_copied_text(panel: str, stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "slash", '"1x64x56x5 when=2026-11-21 system=c5.xlarge"', "enter", panel, "y")
        assert pilot.app.clipboard == form(5, "concat").key
        assert any(it.message.startswith(f"Copied: {form(5, 'concat').key}. ") for it in pilot.app._notifications)


async def test_the_id_of_an_older_measurement_can_be_copied(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "slash", '"1x64x56x5 when=2026-11-21 system=c5.xlarge"', "enter", "3", "y")
        assert pilot.app.clipboard == column(pilot, "id")[0]


async def test_copying_nothing_is_reported(new: DataFolder) -> None:
    async with results_screen(new, WIDE) as pilot:
        await press(pilot, "y", "2", "y", "3", "y")
        assert pilot.app.clipboard == ""
        assert [it.message for it in pilot.app._notifications] == ["No result is selected."] * 3


async def test_the_selected_result_is_shown_with_where_it_comes_from(stored: DataFolder) -> None:
    with ResultsDatabase(stored.store) as store:
        store.add(provenance(run="r1", models=(("ab" * 32, "0f" * 32),), evaluation="nightly", unmet=("turbo is on",)))
    # High enough for all of it.
    async with results_screen(stored, (120, 110)) as pilot:
        await press(pilot, "slash", '"of=model system=c5.xlarge"', "enter")
        shown = screen_text(pilot)
        assert all(part in shown for part in ("onednn", "6.1.0-13", "SHA-256", "0f0f", "turbo is on"))


async def test_a_flagged_result_shows_its_flags(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "slash", '"good=no"', "enter")
        assert "doubtful: drift" in screen_text(pilot)


async def test_each_measurement_in_the_history_of_a_brick_can_be_read(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "slash", '"1x64x56x5 when=2026-11-21 system=c5.xlarge"', "enter")
        history = pilot.app.screen.query_one(HistoryPanel)
        assert history.border_title == "3 History 2 runs"
        assert "-9." in screen_text(pilot)
        await press(pilot, "3", "j", "enter")
        assert "25 samples, 2026-11-20 08:05 UTC" in screen_text(pilot)


async def test_only_the_results_of_a_brick_can_be_shown(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "b")
        assert len(set(column(pilot, "brick") + column(pilot, "model"))) == 2
        assert titled(pilot).endswith(f" of {RESULTS}")
        await press(pilot, "slash", "escape", "slash", '"of=model"', "enter", "b")
        assert set(column(pilot, "name")) == {"resnet50_v1"}


async def test_marks_survive_another_search(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", '"linear"', "enter", "space", "space", "slash", "ctrl+u", '"relu"', "enter", "a")
        assert table(pilot).border_subtitle == "14 marked, 2 hidden"
        await press(pilot, "a", "slash", "escape")
        marked = table(pilot).marked
        assert marked is not None and set(marked.values("kind")) == {"linear"}


async def test_deleting_asks_first(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", '"when=2026-11-20"', "enter", "a", "d")
        assert isinstance(pilot.app.screen, DeleteScreen)
        assert f"{BRICKS} results of {RESULTS}:" in screen_text(pilot)
        await press(pilot, "escape")
        assert titled(pilot) == f"1 Results {BRICKS} of {RESULTS}"
        await press(pilot, "d", "y")
        assert titled(pilot) == f"1 Results 0 of {RESULTS - BRICKS}"
        assert table(pilot).marked is None
    with ResultsDatabase(stored.store) as store:
        assert len(store.select()) == RESULTS - BRICKS


async def test_hidden_marked_results_are_kept_by_default(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", '"linear"', "enter", "space", "space", "slash", "ctrl+u", '"relu"', "enter")
        await press(pilot, "space", "space", "space")
        assert table(pilot).border_subtitle == "5 marked, 2 hidden"
        await press(pilot, "d")
        assert "The search hides 2 of 5 marked results." in screen_text(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, DeleteScreen) and f"3 results of {RESULTS}:" in screen_text(pilot)
        await press(pilot, "y")
        assert table(pilot).border_subtitle == "2 marked, 2 hidden"
        await press(pilot, "slash", "escape")
        assert titled(pilot) == f"1 Results {RESULTS - 3}" and table(pilot).border_subtitle == "2 marked"


async def test_hidden_marked_results_are_deleted_on_request(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", '"linear"', "enter", "a", "slash", "ctrl+u", '"relu"', "enter", "space", "d", "a")
        assert f"13 results of {RESULTS}:" in screen_text(pilot)
        await press(pilot, "y")
        assert table(pilot).total == RESULTS - 13


async def test_enter_does_not_use_marks_that_are_all_hidden(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "space", "slash", '"nosuchthing"', "enter", "d")
        assert "The search hides all of 1 marked result." in screen_text(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, HiddenMarksScreen)
        await press(pilot, "a")
        assert f"1 result of {RESULTS}:" in screen_text(pilot)


@pytest.mark.parametrize("key", ["e", "v"])
async def test_export_and_keep_ask_about_hidden_marks(key: str, stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "space", "slash", '"relu 2026-11-20"', "enter", "space", key)
        assert isinstance(pilot.app.screen, HiddenMarksScreen)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, ResultsScreen) and "to compare with" not in screen_text(pilot)


async def test_deletions_can_be_undone_one_after_another(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        before = column(pilot, "id")
        await press(pilot, "d", "y", "a", "d", "y")
        assert titled(pilot) == "1 Results 0"
        await press(pilot, "u")
        assert titled(pilot) == f"1 Results {RESULTS - 1}, {RESULTS - 1} restored: +"
        await press(pilot, "u")
        assert titled(pilot) == f"1 Results {RESULTS}, 1 restored: +"
        assert sorted(column(pilot, "id")) == sorted(before)
        pilot.app.clear_notifications()
        await press(pilot, "u")
        (said,) = pilot.app._notifications
        assert said.message == "Nothing was deleted in this session."


async def test_restored_results_are_marked_and_in_sight(stored: DataFolder) -> None:
    async with results_screen(stored, NARROW) as pilot:
        await press(pilot, "G")
        (deleted,) = list(table(pilot).under_cursor or ())
        await press(pilot, "d", "y", "g", "u")
        (under_cursor,) = list(table(pilot).under_cursor or ())
        assert under_cursor == deleted
        assert [line for line in screen_text(pilot).splitlines() if "+" in line[:4] and deleted.name in line]
        await press(pilot, "k", "d", "y")
        assert "restored" not in titled(pilot)


async def test_without_marks_the_selected_result_is_deleted(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "d", "y")
        assert titled(pilot) == f"1 Results {RESULTS - 1}"


async def test_found_results_can_be_exported_and_imported_elsewhere(stored: DataFolder, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", f'"system={THERE}"', "enter", "e", f'"{file}"', "enter")
    other = DataFolder(tmp_path / "other")
    async with results_screen(other) as pilot:
        await press(pilot, "i", f'"{tmp_path}/mi"', "tab", "enter")
        assert titled(pilot) == f"1 Results {BRICKS + 1}"
        assert set(column(pilot, "system")) == {THERE}


async def test_the_ending_of_an_exported_file_selects_its_format(stored: DataFolder, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", f'"system={THERE}"', "enter", "e", f'"{tmp_path}/mine.txt"', "enter")
        assert "is no format of an export" in " ".join(screen_text(pilot).split())
        pilot.app.screen.query_one(Input).value = str(file)
        await press(pilot, "enter")
    assert len(file.read_text().splitlines()) == 1 + BRICKS + 1
    assert not (tmp_path / "mine.txt").exists()


async def test_an_existing_file_is_replaced_only_after_confirmation(
    stored: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.json"
    file.write_text("mine")
    async with results_screen(stored) as pilot:
        await press(pilot, "space", "e", '"mine.json"', "enter")
        assert "already exists" in screen_text(pilot) and file.read_text() == "mine"
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, ResultsScreen) and file.read_text() != "mine"


async def test_unusable_paths_are_reported(stored: DataFolder, tmp_path: Path) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "e", f'"{tmp_path}"', "enter")
        assert "is a folder" in screen_text(pilot)
        await press(pilot, '"/no/such/file"', "enter")
        assert "No such folder" in screen_text(pilot)
        await press(pilot, "escape", "i", f'"{tmp_path}"', "enter")
        assert "is a folder" in screen_text(pilot)
        await press(pilot, '"nosuch"', "enter")
        assert "There is no" in screen_text(pilot)


async def test_a_file_without_results_is_refused_with_a_reason(stored: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk, bread\n")
    async with results_screen(stored) as pilot:
        await press(pilot, "i", f'"{tmp_path}/notes.txt"', "enter")
        assert isinstance(pilot.app.screen, ErrorScreen)
        assert "nothing was imported" in screen_text(pilot)


async def test_two_systems_are_compared(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "slash", f'"system={HERE} 2026-11-21"', "enter", "v")
        assert f"to compare with: system={HERE} 2026-11-21" in screen_text(pilot)
        await press(pilot, "slash", "ctrl+u", f'"system={THERE}"', "enter", "=")
        assert isinstance(pilot.app.screen, ContrastScreen)
        # The flagged result of the first selection is left out.
        assert all(words in screen_text(pilot) for words in ("18 slower", "6 alike", "only in B 1"))
        assert "resnet50_v1" in screen_text(pilot).splitlines()[6]
        await press(pilot, "x")
        assert "18 faster" in screen_text(pilot) and "only in A 1" in screen_text(pilot)
        await press(pilot, "slash", '"alike"', "enter", "s", "s")
        assert "In both 6 of 24, by name" in screen_text(pilot)
        # The first escape ends the search.
        await press(pilot, "escape", "escape")
        assert isinstance(pilot.app.screen, ResultsScreen)


async def test_marked_results_are_compared_if_there_are_any(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "v", "slash", '"relu 2026-11-20"', "enter", "a", "=")
        assert "A: all results" in screen_text(pilot) and "B: 4 marked results" in screen_text(pilot)


async def test_comparing_selections_without_common_results_says_so(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "slash", '"relu"', "enter", "v", "slash", "ctrl+u", '"linear"', "enter", "=")
        assert "no brick in the same context and no model in common" in screen_text(pilot)


async def test_comparing_without_kept_results_shows_what_to_do(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "=")
        assert isinstance(pilot.app.screen, ResultsScreen)
        assert any("find them and press v" in note.message for note in pilot.app._notifications)


async def test_new_results_are_shown_and_the_cursor_stays_on_its_result(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "j", "j", "j")
        cursor_settled = table(pilot).under_cursor
        assert cursor_settled is not None
        before = cursor_settled.values("id")
        with ResultsDatabase(stored.store) as store:
            store.add(measurement(when="2026-11-22T08:00:00+00:00"))
        pilot.app.post_message(messages.ResultsStored())
        await settled(pilot)
        assert titled(pilot) == f"1 Results {RESULTS + 1}"
        cursor_settled = table(pilot).under_cursor
        assert cursor_settled is not None and cursor_settled.values("id") == before


async def test_a_compacted_store_is_read_again_and_clears_the_marks(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "space")
        with ResultsDatabase(stored.store) as store:
            store.compact()
        pilot.app.post_message(messages.ResultsStored())
        await settled(pilot)
        assert titled(pilot) == f"1 Results {RESULTS}" and table(pilot).marked is None


async def test_the_results_screen_keeps_its_state(stored: DataFolder) -> None:
    async with running(app_on(stored)) as pilot:
        await press(pilot, "6", "slash", '"relu"', "enter", "j", "2", "tab", "shift+tab", "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        await press(pilot, "6")
        assert titled(pilot) == f"1 Results 12 of {RESULTS}"
        cursor_settled = table(pilot).under_cursor
        assert cursor_settled is not None and cursor_settled.values("id") == column(pilot, "id")[1:2]


async def test_a_result_with_damaged_samples_keeps_its_row(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        journal = next(stored.store.glob("journal-*"))
        journal.write_bytes(journal.read_bytes().replace(b'"samples_ms":[', b'"samples_ms":{'))
        await press(pilot, "j")
        assert "Its samples can no longer be read" in screen_text(pilot)
