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
from dlbricks_tui.store.selections import parse_filter
from dlbricks_tui.store.statistics import summarise
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.comparing import MarkedScreen
from dlbricks_tui.tui.dialogs.notices import ErrorScreen, HiddenMarksScreen
from dlbricks_tui.tui.result_table import FIRST_COLUMNS, DeleteScreen, HistoryPanel, RecordPanel, ResultsPanel
from dlbricks_tui.tui.results import ResultsScreen
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.store.samples import end_to_end, form, measurement, provenance
from tests.tui.application import MEDIUM, NARROW, WIDE, app_on, press, running, screen_text, settled, showing, told
from tests.tui.stored_results import BRICKS, HERE, RESULTS, THERE
from tests.tui.test_suites import words

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


CONCAT = '"1x64x56x5 when=2026-11-21 system=c5.xlarge"'


def border(pilot: Pilot[None]) -> str:
    """Return what the table tells of its marks."""
    return str(table(pilot).border_subtitle)


def under_cursor(pilot: Pilot[None]) -> list[Any]:
    selected = table(pilot).under_cursor
    assert selected is not None
    return selected.values("id")


def heading_line(pilot: Pilot[None]) -> str:
    """Return the titles of the columns, below the question, the answer and the border."""
    return next(it for it in screen_text(pilot).splitlines() if "threads" in it or "good" in it)


def headings(pilot: Pilot[None]) -> list[str]:
    return heading_line(pilot).split()[1:4]


async def test_the_newest_results_come_first_and_the_screen_keeps_its_state(stored: DataFolder) -> None:
    async with running(app_on(stored)) as pilot:
        await press(pilot, "R")
        assert isinstance(pilot.app.screen, ResultsScreen)
        assert titled(pilot) == f"1 Results {RESULTS}"
        assert column(pilot, "when") == sorted(column(pilot, "when"), reverse=True)
        await press(pilot, "slash", '"relu"', "enter", "j", "2", "tab", "shift+tab", "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        await press(pilot, "R")
        assert titled(pilot) == f"1 Results 12 of {RESULTS}"
        assert under_cursor(pilot) == column(pilot, "id")[1:2]


async def test_an_empty_store_shows_what_to_do(new: DataFolder) -> None:
    async with results_screen(new, WIDE) as pilot:
        assert "Nothing was measured or imported yet: " in screen_text(pilot) and "imports a file" in screen_text(pilot)
        await press(pilot, "y", "2", "y", "3", "y")
        assert pilot.app.clipboard == "" and told(pilot) == ["No result is selected."] * 3
        await press(pilot, "1", "enter", "space", "a", "b", "d", "e", "v", "=", "s", "c", "escape")
        assert isinstance(pilot.app.screen, ResultsScreen)


async def test_results_are_found_while_the_user_types_and_sorted_both_ways(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", '"kind=convolution"')
        assert titled(pilot) == f"1 Results 12 of {RESULTS}"
        await press(pilot, "space", '"c6i"')
        assert titled(pilot) == f"1 Results 4 of {RESULTS}"
        await press(pilot, "escape")
        assert titled(pilot) == f"1 Results {RESULTS}"
        await press(pilot, "slash")
        for sought, count in SOUGHT:
            table(pilot).search_line.seek(sought)
            await settled(pilot)
            assert len(column(pilot, "id")) == count, sought
        await press(pilot, "escape", "slash", '"colour=red"')
        assert "there is no column 'colour'" in screen_text(pilot)
        await press(pilot, "ctrl+u", '"relu"')
        assert titled(pilot) == f"1 Results 12 of {RESULTS}"
        await press(pilot, "escape", "s")
        assert column(pilot, "models") == sorted(column(pilot, "models"))
        await press(pilot, *"llll", "s")
        assert column(pilot, "trimmed_mean_ms")[:2] == sorted(column(pilot, "trimmed_mean_ms"), reverse=True)[:2]
        await press(pilot, "s")
        assert column(pilot, "trimmed_mean_ms") == sorted(column(pilot, "trimmed_mean_ms"))
        assert "ms↑" in screen_text(pilot)
        await press(pilot, *"hhhh", "s")
        assert "model↑" in screen_text(pilot)
        # Only the results of a brick, or of a model.
        await press(pilot, "b")
        assert len(set(column(pilot, "brick") + column(pilot, "model"))) == 2
        assert titled(pilot).endswith(f" of {RESULTS}")
        await press(pilot, "slash", "escape", "slash", '"of=model"', "enter", "b")
        assert set(column(pilot, "name")) == {"resnet50_v1"}


def test_all_example_filters_of_the_panel_are_valid() -> None:
    given = re.findall(r"\w+[=~<>]+[^\s,;]+", f"{ResultsPanel.SEARCH_HINT} {ResultsPanel.ABOUT}")
    assert "ms>5" in given and "system~c5" in given
    for each in given:
        assert parse_filter(each.rstrip(".")).is_cacheable(), each


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


async def test_columns_are_chosen_moved_and_reached_to_the_right(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "c", "J", "enter")
        assert headings(pilot) == ["runtime", "model", "threads"]
        await press(pilot, "c", "j", "j", "l", "right", "left", "h", "K", "enter")
        assert headings(pilot) == ["runtime", "threads", "model"]
        await press(pilot, "c", "h", "G", "l", "enter")
        assert headings(pilot) == ["runtime", "threads", "model"]
        # At least one column has to be selected.
        await press(pilot, "c", *["space"] * len(FIRST_COLUMNS), "enter")
        assert not isinstance(pilot.app.screen, ResultsScreen)
    async with results_screen(stored, NARROW) as pilot:
        assert "good" not in heading_line(pilot)
        await press(pilot, *["l"] * 12)
        assert "good" in heading_line(pilot)
        await press(pilot, *["h"] * 12)
        assert "model" in heading_line(pilot)
        # Model and runtime are hidden, and the threads come first.
        await press(pilot, "c", "space", "space", "K", "enter")
        assert headings(pilot) == ["threads", "batch", "ms"]
        await press(pilot, "c", "escape")
        assert headings(pilot) == ["threads", "batch", "ms"]


async def test_the_selected_result_is_shown_in_full_with_its_origin_and_its_history(stored: DataFolder) -> None:
    with ResultsDatabase(stored.store) as store:
        store.add(provenance(run="r1", models=(("ab" * 32, "0f" * 32),), evaluation="nightly", unmet=("turbo is on",)))
    # High enough for all of it.
    async with results_screen(stored, (200, 110)) as pilot:
        await press(pilot, "slash", CONCAT, "enter", "y")
        shown = screen_text(pilot)
        assert "25 samples, 2026-11-21 08:45 UTC" in shown and re.search(r"noise +.*load 0.25", shown)
        assert pilot.app.clipboard == form(5, "concat").key
        assert told(pilot)[-1].startswith(f"Copied: {form(5, 'concat').key}. ")
        pilot.app.copy_to_clipboard("")
        await press(pilot, "enter")
        assert pilot.app.screen.query_one(RecordPanel).has_class("-current")
        await press(pilot, "y")
        assert pilot.app.clipboard == form(5, "concat").key
        history = pilot.app.screen.query_one(HistoryPanel)
        assert history.border_title == "3 History 2 runs" and "-9." in screen_text(pilot)
        await press(pilot, "3", "y")
        assert pilot.app.clipboard == column(pilot, "id")[0]
        await press(pilot, "j", "enter")
        assert "25 samples, 2026-11-20 08:05 UTC" in screen_text(pilot)
        await press(pilot, "1", "slash", "ctrl+u", '"good=no"', "enter")
        assert "doubtful: drift" in screen_text(pilot)
        await press(pilot, "slash", "ctrl+u", '"of=model system=c5.xlarge"', "enter")
        shown = screen_text(pilot)
        assert all(part in shown for part in ("onednn", "6.1.0-13", "SHA-256", "0f0f", "turbo is on"))
        # A result whose samples are damaged keeps its row.
        journal = next(stored.store.glob("journal-*"))
        journal.write_bytes(journal.read_bytes().replace(b'"samples_ms":[', b'"samples_ms":{'))
        await press(pilot, "slash", "escape", "g")
        assert "Its samples can no longer be read" in screen_text(pilot)


async def test_marks_survive_a_search_that_hides_them_and_each_use_asks_about_hidden_ones(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", '"linear"', "enter", "space", "space", "slash", "ctrl+u", '"relu"', "enter", "a")
        assert border(pilot) == "14 marked, 2 hidden"
        for key in "eC":
            await press(pilot, key)
            assert isinstance(pilot.app.screen, HiddenMarksScreen)
            await press(pilot, "escape")
            assert isinstance(pilot.app.screen, ResultsScreen) and "kept:" not in screen_text(pilot)
        await press(pilot, "a", "slash", "escape")
        marked = table(pilot).marked
        assert marked is not None and set(marked.values("kind")) == {"linear"}

        await press(pilot, "slash", '"relu"', "enter", "space", "space", "space", "d")
        assert "The search hides 2 of 5 marked results." in screen_text(pilot)
        # Hidden ones are kept, if nothing else is said.
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, DeleteScreen) and f"3 results of {RESULTS}:" in screen_text(pilot)
        await press(pilot, "y")
        assert border(pilot) == "2 marked, 2 hidden"
        await press(pilot, "space", "d", "a")
        assert f"3 results of {RESULTS - 3}:" in screen_text(pilot)
        await press(pilot, "y")
        assert table(pilot).total == RESULTS - 6
        await press(pilot, "space", "slash", "ctrl+u", '"nosuchthing"', "enter", "d")
        assert "The search hides all of 1 marked result." in screen_text(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, HiddenMarksScreen)
        await press(pilot, "a")
        assert f"1 result of {RESULTS - 6}:" in screen_text(pilot)


async def test_deleting_asks_first_and_can_be_undone(stored: DataFolder) -> None:
    async with results_screen(stored, NARROW) as pilot:
        before = column(pilot, "id")
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
        # Without marks it is the selected result.
        await press(pilot, "slash", "escape", "G")
        (deleted,) = list(table(pilot).under_cursor or ())
        await press(pilot, "d", "y", "g")
        assert titled(pilot) == f"1 Results {RESULTS - BRICKS - 1}"
        await press(pilot, "u")
        assert titled(pilot) == f"1 Results {RESULTS - BRICKS}, 1 restored: +"
        # It is marked, and in sight.
        (found,) = list(table(pilot).under_cursor or ())
        assert found == deleted
        assert [line for line in screen_text(pilot).splitlines() if "+" in line[:4] and deleted.name in line]
        await press(pilot, "u")
        assert titled(pilot) == f"1 Results {RESULTS}, {BRICKS} restored: +"
        assert sorted(column(pilot, "id")) == sorted(before)
        pilot.app.clear_notifications()
        await press(pilot, "u")
        assert told(pilot) == ["Nothing was deleted in this session."]
        await press(pilot, "d", "y")
        assert "restored" not in titled(pilot)


async def test_found_results_are_exported_to_usable_paths_and_imported_elsewhere(
    stored: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table_file, file = tmp_path / "mine.csv", tmp_path / "mine.json"
    file.write_text("mine")
    (tmp_path / "notes.txt").write_text("milk, bread\n")
    async with results_screen(stored) as pilot:
        await press(pilot, "slash", f'"system={THERE}"', "enter", "e", f'"{tmp_path}/mine.txt"', "enter")
        # The ending selects the format.
        assert "is no format of an export" in " ".join(screen_text(pilot).split())
        pilot.app.screen.query_one(Input).value = str(table_file)
        await press(pilot, "enter")
        assert len(table_file.read_text().splitlines()) == 1 + BRICKS + 1
        assert not (tmp_path / "mine.txt").exists()
        await press(pilot, "e", f'"{tmp_path}"', "enter")
        assert "is a folder" in words(pilot)
        await press(pilot, '"/no/such/file"', "enter")
        assert "No such folder" in screen_text(pilot)
        await press(pilot, "ctrl+u", '"mine.json"', "enter")
        # A file that is there is replaced only when confirmed.
        assert "already exists" in screen_text(pilot) and file.read_text() == "mine"
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, ResultsScreen) and file.read_text() != "mine"
    other = DataFolder(tmp_path / "other")
    async with results_screen(other) as pilot:
        await press(pilot, "i", f'"{tmp_path}"', "enter")
        assert "is a folder" in words(pilot)
        await press(pilot, '"nosuch"', "enter")
        assert "There is no" in screen_text(pilot)
        await press(pilot, "ctrl+u", f'"{tmp_path}/notes.txt"', "enter")
        assert isinstance(pilot.app.screen, ErrorScreen)
        assert "nothing was imported" in screen_text(pilot)
        table_file.unlink()
        await press(pilot, "escape", "i", f'"{tmp_path}/mi"', "tab", "enter")
        assert titled(pilot) == f"1 Results {BRICKS + 1}"
        assert set(column(pilot, "system")) == {THERE}


async def test_two_selections_are_compared(stored: DataFolder) -> None:
    async with results_screen(stored, WIDE) as pilot:
        await press(pilot, "slash", f'"system={HERE} 2026-11-21"', "enter", "C")
        assert f"kept: system={HERE} 2026-11-21" in screen_text(pilot)
        await press(pilot, "slash", "ctrl+u", f'"system={THERE}"', "enter", "C")
        assert isinstance(pilot.app.screen, MarkedScreen)
        assert "17 slower, 6 same" in screen_text(pilot) and "1 result in doubt left out" in screen_text(pilot)
        await press(pilot, "i")
        assert "6 same, 17 faster" in screen_text(pilot) and "B is faster" in screen_text(pilot)
        await press(pilot, "slash", '"same"', "enter", "s", "s")
        assert "Differences 6 of 23, by name" in screen_text(pilot)
        # The first escape ends the search.
        await press(pilot, "escape", "escape")
        assert isinstance(pilot.app.screen, ResultsScreen)
        await press(pilot, "slash", "ctrl+u", '"relu"', "enter", "C", "slash", "ctrl+u", '"linear"', "enter", "C")
        assert "no model and no brick in common" in screen_text(pilot)
        await press(pilot, "escape", "slash", "escape", "C", "slash", '"relu 2026-11-20"', "enter", "a", "C")
        assert "A all results or B 4 marked results?" in screen_text(pilot)


async def test_new_results_are_shown_and_a_compacted_store_is_read_again(stored: DataFolder) -> None:
    async with results_screen(stored) as pilot:
        await press(pilot, "j", "j", "j")
        before = under_cursor(pilot)
        with ResultsDatabase(stored.store) as store:
            store.add(measurement(when="2026-11-22T08:00:00+00:00"))
        pilot.app.post_message(messages.ResultsStored())
        await settled(pilot)
        assert titled(pilot) == f"1 Results {RESULTS + 1}"
        # The cursor stays on its result.
        assert under_cursor(pilot) == before
        await press(pilot, "space")
        with ResultsDatabase(stored.store) as store:
            store.compact()
        pilot.app.post_message(messages.ResultsStored())
        await settled(pilot)
        assert titled(pilot) == f"1 Results {RESULTS + 1}" and table(pilot).marked is None
