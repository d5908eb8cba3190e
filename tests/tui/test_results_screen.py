"""Marks on rows of one kind, and the screen that compares two of them."""

import re
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from dlbricks_tui.api import store_contents as systems_work
from dlbricks_tui.api import stored_results
from dlbricks_tui.api.open_models import PairKind
from dlbricks_tui.api.pairs import EstimatedSide
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import StoreError
from dlbricks_tui.store.selections import parse_filter
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.comparing import MarkedScreen
from dlbricks_tui.tui.dialogs.notices import ErrorScreen, HiddenMarksScreen
from dlbricks_tui.tui.result_table import FIRST_COLUMNS, DeleteScreen, HistoryPanel, RecordPanel, ResultsPanel
from dlbricks_tui.tui.results import ResultsScreen
from dlbricks_tui.tui.widgets.rows import MARK as MARK_SIGN
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.documents.test_ranking import MIXED
from tests.runs.live_runs import in_the_middle, put_run
from tests.store.samples import form, measurement, provenance, system
from tests.tui import results
from tests.tui.application import MEASURED_ONLY, NARROW, WIDE, app_on, running, showing
from tests.tui.driving import find, press, screen_text, settled, told, words
from tests.tui.snapshots import check_all, check_layout
from tests.tui.stored_results import BRICKS, HERE, RESULTS, THERE
from tests.tui.test_variants_screen import screen


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
        await press(pilot, "R", on=ResultsScreen)
        assert titled(pilot) == f"1 Results {RESULTS}"
        assert column(pilot, "when") == sorted(column(pilot, "when"), reverse=True)
        await press(pilot, *find("relu"), "j", "2", "tab", "shift+tab", "escape", on=WorkbenchScreen)
        await press(pilot, "R")
        assert titled(pilot) == f"1 Results 12 of {RESULTS}"
        assert under_cursor(pilot) == column(pilot, "id")[1:2]


async def test_an_empty_store_shows_what_to_do(new: DataFolder) -> None:
    async with showing(new, ResultsScreen, WIDE) as pilot:
        assert "Nothing was measured or imported yet: " in screen_text(pilot) and "imports a file" in screen_text(pilot)
        await press(pilot, "y", "2", "y", "3", "y")
        assert pilot.app.clipboard == "" and told(pilot) == ["No result is selected."] * 3
        await press(
            pilot, "1", "enter", "space", "a", "b", "d", "e", "C", "v", "=", "s", "c", "escape", on=ResultsScreen
        )
        lacking = [f"There is no result to {what}." for what in ("delete", "export", "compare")]
        assert [it for it in told(pilot) if "There is no" in it] == lacking


async def test_a_store_that_cannot_be_read_is_said_in_no_box_that_comes_back(
    stored: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise UserError("a newer dlbricks has written the store")

    with monkeypatch.context() as patch:
        patch.setattr(stored_results, "find", refuse)
        patch.setattr(stored_results, "overview", refuse)
        async with showing(stored, ResultsScreen) as pilot:
            await press(pilot, on=ResultsScreen, shows=" a newer dlbricks has written the store")
            patch.undo()
            await press(pilot, "question_mark", "escape")
            assert "newer dlbricks" not in screen_text(pilot) and titled(pilot) == f"1 Results {RESULTS}"


async def test_results_are_found_while_the_user_types_and_sorted_both_ways(stored: DataFolder) -> None:
    async with showing(stored, ResultsScreen) as pilot:
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
        await press(pilot, "escape", "slash", '"colour=red"', shows="there is no column 'colour'")
        await press(pilot, "ctrl+u", '"relu"')
        assert titled(pilot) == f"1 Results 12 of {RESULTS}"
        await press(pilot, "escape", "s")
        assert column(pilot, "models") == sorted(column(pilot, "models"))
        await press(pilot, *"llll", "s")
        assert column(pilot, "trimmed_mean_ms")[:2] == sorted(column(pilot, "trimmed_mean_ms"), reverse=True)[:2]
        await press(pilot, "s")
        assert column(pilot, "trimmed_mean_ms") == sorted(column(pilot, "trimmed_mean_ms"))
        assert "ms↑" in screen_text(pilot)
        await press(pilot, *"hhhh", "s", shows="model↑")
        # Only the results of a brick, or of a model.
        await press(pilot, "b")
        assert len(set(column(pilot, "brick") + column(pilot, "model"))) == 2
        assert titled(pilot).endswith(f" of {RESULTS}")
        await press(pilot, "slash", "escape", *find("of=model"), "b")
        assert set(column(pilot, "name")) == {"resnet50_v1"}


def test_all_example_filters_of_the_panel_are_valid() -> None:
    given = re.findall(r"\w+[=~<>]+[^\s,;]+", f"{ResultsPanel.SEARCH_HINT} {ResultsPanel.ABOUT}")
    assert "ms>5" in given and "system~c5" in given
    for each in given:
        assert parse_filter(each.rstrip(".")).is_cacheable(), each


async def test_columns_are_chosen_moved_and_reached_to_the_right(stored: DataFolder) -> None:
    async with showing(stored, ResultsScreen, WIDE) as pilot:
        await press(pilot, "c", "J", "enter")
        assert headings(pilot) == ["runtime", "model", "threads"]
        await press(pilot, "c", "j", "j", "l", "right", "left", "h", "K", "enter")
        assert headings(pilot) == ["runtime", "threads", "model"]
        await press(pilot, "c", "h", "G", "l", "enter")
        assert headings(pilot) == ["runtime", "threads", "model"]
        # At least one column has to be selected.
        await press(pilot, "c", *["space"] * len(FIRST_COLUMNS), "enter")
        assert not isinstance(pilot.app.screen, ResultsScreen)
    async with showing(stored, ResultsScreen, NARROW) as pilot:
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
    async with showing(stored, ResultsScreen, (200, 110)) as pilot:
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
        await press(pilot, "j", "enter", shows="25 samples, 2026-11-20 08:05 UTC")
        # It stays in view where results are listed anew, until the selected one is read again.
        pilot.app.post_message(messages.ResultsStored())
        await press(pilot, shows="25 samples, 2026-11-20 08:05 UTC")
        await press(pilot, "1", "enter", shows="25 samples, 2026-11-21 08:45 UTC")
        await press(pilot, "1", *find("good=no"), shows="doubtful: drift")
        await press(pilot, *find("of=model system=c5.xlarge"))
        shown = screen_text(pilot)
        assert all(part in shown for part in ("onednn", "6.1.0-13", "SHA-256", "0f0f", "turbo is on"))
        # A result whose samples are damaged keeps its row.
        journal = next(stored.store.glob("journal-*"))
        journal.write_bytes(journal.read_bytes().replace(b'"samples_ms":[', b'"samples_ms":{'))
        await press(pilot, "slash", "escape", "g", shows="Its samples can no longer be read")


async def test_marks_survive_a_search_that_hides_them_and_each_use_asks_about_hidden_ones(stored: DataFolder) -> None:
    async with showing(stored, ResultsScreen) as pilot:
        await press(pilot, *find("linear"), "space", "space", *find("relu"), "a")
        assert border(pilot) == "14 marked, 2 hidden"
        for key in "eC":
            await press(pilot, key, on=HiddenMarksScreen)
            await press(pilot, "escape")
            assert isinstance(pilot.app.screen, ResultsScreen) and "kept:" not in screen_text(pilot)
        await press(pilot, "a", "slash", "escape")
        marked = table(pilot).marked
        assert marked is not None and set(marked.values("kind")) == {"linear"}

        await press(
            pilot, *find("relu"), "space", "space", "space", "d", shows="The search hides 2 of 5 marked results."
        )
        # Hidden ones are kept, if nothing else is said.
        await press(pilot, "enter", on=DeleteScreen, shows=f"3 results of {RESULTS}:")
        await press(pilot, "y")
        assert border(pilot) == "2 marked, 2 hidden"
        await press(pilot, "space", "d", "a", shows=f"3 results of {RESULTS - 3}:")
        await press(pilot, "y")
        assert table(pilot).total == RESULTS - 6
        await press(pilot, "space", *find("nosuchthing"), "d", shows="The search hides all of 1 marked result.")
        await press(pilot, "enter", on=HiddenMarksScreen)
        await press(pilot, "a", shows=f"1 result of {RESULTS - 6}:")


async def test_deleting_asks_first_and_can_be_undone(stored: DataFolder) -> None:
    async with showing(stored, ResultsScreen, NARROW) as pilot:
        before = column(pilot, "id")
        await press(pilot, *find("when=2026-11-20"), "a", "d", on=DeleteScreen)
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


async def test_an_undo_that_fails_can_be_tried_again(stored: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> frozenset[str]:
        raise StoreError("the disk is full")

    async with showing(stored, ResultsScreen, NARROW) as pilot:
        await press(pilot, "d", "y")
        with monkeypatch.context() as full:
            full.setattr(stored_results, "restore", refuse)
            await press(pilot, "u", shows="the disk is full")
        await press(pilot, "escape", "u")
        assert titled(pilot) == f"1 Results {RESULTS}, 1 restored: +"


async def test_found_results_are_exported_to_usable_paths_and_imported_elsewhere(
    stored: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table_file, file = tmp_path / "mine.csv", tmp_path / "mine.json"
    file.write_text("mine")
    (tmp_path / "notes.txt").write_text("milk, bread\n")
    async with showing(stored, ResultsScreen) as pilot:
        await press(pilot, *find(f"system={THERE}"), "e", f'"{tmp_path}/mine.txt"', "enter")
        # The ending selects the format.
        assert "is no format of an export" in " ".join(screen_text(pilot).split())
        pilot.app.screen.query_one(Input).value = str(table_file)
        await press(pilot, "enter")
        assert len(table_file.read_text().splitlines()) == 1 + BRICKS + 1
        assert not (tmp_path / "mine.txt").exists()
        await press(pilot, "e", f'"{tmp_path}"', "enter")
        assert "is a folder" in words(pilot)
        await press(pilot, '"/no/such/file"', "enter", shows="No such folder")
        await press(pilot, "ctrl+u", '"mine.json"', "enter")
        # A file that is there is replaced only when confirmed.
        assert "already exists" in screen_text(pilot) and file.read_text() == "mine"
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, ResultsScreen) and file.read_text() != "mine"
    other = DataFolder(tmp_path / "other")
    async with showing(other, ResultsScreen) as pilot:
        await press(pilot, "i", f'"{tmp_path}"', "enter")
        assert "is a folder" in words(pilot)
        await press(pilot, '"nosuch"', "enter", shows="There is no")
        await press(pilot, "ctrl+u", f'"{tmp_path}/notes.txt"', "enter", on=ErrorScreen)
        assert "nothing was imported" in screen_text(pilot)
        table_file.unlink()
        await press(pilot, "escape", "i", f'"{tmp_path}/mi"', "tab", "enter")
        assert titled(pilot) == f"1 Results {BRICKS + 1}"
        assert set(column(pilot, "system")) == {THERE}


async def test_two_selections_are_compared(stored: DataFolder) -> None:
    async with showing(stored, ResultsScreen, WIDE) as pilot:
        await press(pilot, *find(f"system={HERE} 2026-11-21"), "C", shows=f"kept: system={HERE} 2026-11-21")
        await press(pilot, *find(f"system={THERE}"), "C", on=MarkedScreen)
        assert "17 slower, 6 same" in screen_text(pilot) and "1 result in doubt left out" in screen_text(pilot)
        await press(pilot, "i", shows=("6 same, 17 faster", "B is faster"))
        await press(pilot, *find("same"), "s", "s", shows="Differences 6 of 23, by name")
        # The first escape ends the search.
        await press(pilot, "escape", "escape", on=ResultsScreen)
        await press(pilot, *find("relu"), "C", *find("linear"), "C", shows="no model and no brick in common")
        await press(
            pilot,
            "escape",
            "slash",
            "escape",
            "C",
            *find("relu 2026-11-20"),
            "a",
            "C",
            shows="A all results or B 4 marked results?",
        )


async def test_new_results_are_shown_and_a_compacted_store_is_read_again(stored: DataFolder) -> None:
    async with showing(stored, ResultsScreen) as pilot:
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


MARK, COMPARE = "space", "C"


def marks(pilot: Pilot[None]) -> list[str]:
    assert isinstance(pilot.app, DlbricksApp)
    return [it.name for it in pilot.app.marks.rows]


def shown_marks(pilot: Pilot[None]) -> list[str]:
    """Return the first word after each mark on the screen."""
    return re.findall(rf"{MARK_SIGN} (\S+)", screen_text(pilot))


async def test_two_models_are_marked_and_compared_on_one_screen(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        await press(pilot, COMPARE)
        assert told(pilot)[-1] == "Mark two rows of one kind with space, to compare them."
        await press(pilot, "4", MARK)
        assert told(pilot)[-1].startswith("Nothing here can be marked") and marks(pilot) == []
        await press(pilot, "1", *find("resnet18_v1"), MARK, *find("alexnet"), COMPARE)
        shown = " ".join(screen_text(pilot).split())
        assert "They cannot be compared: alexnet has no latency yet: m on the workbench measures it" in shown
        # Marks stay with their models when the list is sorted and searched.
        await press(pilot, "escape", *find("mobilenet0.25"), MARK)
        assert shown_marks(pilot) == ["mobilenet0.25"]
        await press(pilot, "slash", "escape")
        assert sorted(shown_marks(pilot)) == ["mobilenet0.25", "resnet18_v1"]
        for _ in range(2):
            await press(pilot, "s")
            assert sorted(shown_marks(pilot)) == ["mobilenet0.25", "resnet18_v1"]
        await press(pilot, *find("alexnet"), MARK, COMPARE)
        assert told(pilot)[-1].endswith("to compare them; 3 are marked.")


async def test_two_models_are_compared_on_one_screen(new: DataFolder) -> None:
    results.store_run(new, ["resnet18_v1", "squeezenet1.1"])
    async with running(app_on(new, MEASURED_ONLY)) as pilot:
        await press(pilot, *find("resnet18_v1"), MARK, *find("squeezenet1.1"), MARK, COMPARE, on=MarkedScreen)
        shown = screen_text(pilot)
        assert "Which model is faster: A resnet18_v1 or B squeezenet1.1?" in shown
        assert " is faster: " in shown and "kinds of layers" in shown and "convolution" in shown
        # Sums of layers have no verdicts.
        assert re.search(r"A ms +B ms .*change", shown) and not re.search(r"change +B is", shown)
        assert re.search(r"convolution .* [+-][\d.,]+ % *┃", shown)
        await press(pilot, "i", shows="Which model is faster: A squeezenet1.1 or B resnet18_v1?")
        await press(pilot, "r", "escape", on=WorkbenchScreen)


@pytest.fixture
def _one_host_for_all(one_host: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems_work, "findings", tuple)


async def test_two_systems_match_their_snapshot(stored: DataFolder, _one_host_for_all: None) -> None:
    async with running(app_on(stored, MEASURED_ONLY)) as pilot:
        await press(pilot, "S", MARK, MARK, COMPARE)
        # A message would cover the comparison.
        assert marks(pilot) == [HERE, THERE] and not pilot.app._notifications
        await check_all(pilot, "marked")
        # A narrow terminal shows the verdict and one panel.
        assert "A is faster: B takes" in screen_text(pilot)
        await press(pilot, "2", shows="c6i.large")
        check_layout(pilot.app)


async def test_two_runs_are_marked_in_their_box_and_compared(measured: DataFolder) -> None:
    runs = ("20261120-080000-0001", "20261121-080000-0002")
    for place, run in enumerate(runs):
        put_run(measured, in_the_middle(), State.FINISHED, run=run, seconds=400)
        samples = tuple((1 + place) * (1 + number / 1000) for number in range(25))
        with ResultsDatabase(measured.store) as store:
            store.add(
                form(0, "conv"),
                system("c5.xlarge"),
                results.RUNTIME,
                measurement(
                    brick=form(0, "conv").key,
                    run=run,
                    samples_ms=samples,
                    runtime=results.RUNTIME.id,
                    uuid=f"{place:032x}",
                ),
            )
    async with running(app_on(measured, MEASURED_ONLY), NARROW) as pilot:
        await press(pilot, "J", "g", MARK, MARK, shows=("C compare", "esc close"))
        await press(pilot, COMPARE, on=MarkedScreen)
        assert "Which run is faster" in screen_text(pilot)
        await press(pilot, "escape", on=WorkbenchScreen)
        await press(pilot, "J", "G", MARK)
        assert len(marks(pilot)) == 1


async def test_two_variants_of_a_model_are_compared(new: DataFolder) -> None:
    async with showing(new, lambda _: screen(MIXED)) as pilot:
        await press(pilot, "g", "h", "h", "h", MARK, COMPARE)
        assert told(pilot)[-1].startswith("Mark two cells")
        await press(pilot, "l", COMPARE)
        assert isinstance(pilot.app.screen, MarkedScreen)
        first, second = pilot.app.screen._rows
        assert (first.kind, second.kind) == (PairKind.VARIANT, PairKind.VARIANT)
        assert first.name.startswith("ONNX Runtime, ") and second.name.startswith("ONNX Runtime, ")
        assert first.name != second.name, "variants are told apart by what differs"
        assert isinstance(first.subject, EstimatedSide)
        assert first.subject.found in [it.point.found for it in MIXED.combinations]
