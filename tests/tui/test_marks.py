"""Marks on rows of one kind, and the screen that compares two of them."""

import re

import pytest
from textual.pilot import Pilot

from dlbricks_tui.api import store_contents as systems_work
from dlbricks_tui.api.pairs import EstimatedSide
from dlbricks_tui.api.sides import PairKind
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.comparing import CircumstancesPanel, MarkedScreen, PartsPanel
from dlbricks_tui.tui.results import ResultsScreen
from dlbricks_tui.tui.widgets.rows import MARK as MARK_SIGN
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.documents.test_ranking import MIXED
from tests.runs.live_runs import in_the_middle, put_run
from tests.store.samples import form, measurement, system
from tests.tui import results
from tests.tui.application import MEASURED_ONLY, NARROW, app_on, press, running, screen_text, showing
from tests.tui.snapshots import check_all, check_layout
from tests.tui.stored_results import HERE, THERE
from tests.tui.test_variants_screen import screen

MARK, COMPARE = "space", "C"


def sought(name: str) -> tuple[str, ...]:
    """Return the keys that find one model, and go to it."""
    return ("slash", "ctrl+u", f'"{name}"', "enter")


def marks(pilot: Pilot[None]) -> list[str]:
    assert isinstance(pilot.app, DlbricksApp)
    return [it.name for it in pilot.app.marks.rows]


def marked_ids(pilot: Pilot[None]) -> list[str]:
    assert isinstance(pilot.app, DlbricksApp)
    return [str(it.subject) for it in pilot.app.marks.rows]


def said(pilot: Pilot[None]) -> str:
    return [note.message for note in pilot.app._notifications][-1]


def shown_marks(pilot: Pilot[None]) -> list[str]:
    """Return the first word after each mark on the screen."""
    return re.findall(rf"{MARK_SIGN} (\S+)", screen_text(pilot))


async def test_two_models_are_marked_and_compared_on_one_screen(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        await press(pilot, COMPARE)
        assert said(pilot) == "Mark two rows of one kind with space, to compare them."
        await press(pilot, "4", MARK)
        assert said(pilot).startswith("Nothing here can be marked") and marks(pilot) == []
        await press(pilot, "1", *sought("resnet18_v1"), MARK, *sought("alexnet"), COMPARE)
        shown = " ".join(screen_text(pilot).split())
        assert "They cannot be compared: alexnet has no latency yet: m on the workbench measures it" in shown
        # Marks stay with their models when the list is sorted and searched.
        await press(pilot, "escape", *sought("mobilenet0.25"), MARK)
        assert shown_marks(pilot) == ["mobilenet0.25"]
        await press(pilot, "slash", "escape")
        assert sorted(shown_marks(pilot)) == ["mobilenet0.25", "resnet18_v1"]
        for _ in range(2):
            await press(pilot, "s")
            assert sorted(shown_marks(pilot)) == ["mobilenet0.25", "resnet18_v1"]
        await press(pilot, *sought("alexnet"), MARK, COMPARE)
        assert said(pilot).endswith("to compare them; 3 are marked.")


async def test_two_models_are_compared_on_one_screen(new: DataFolder) -> None:
    results.store_run(new, ["resnet18_v1", "squeezenet1.1"])
    async with running(app_on(new, MEASURED_ONLY)) as pilot:
        await press(pilot, *sought("resnet18_v1"), MARK, *sought("squeezenet1.1"), MARK, COMPARE)
        assert isinstance(pilot.app.screen, MarkedScreen)
        shown = screen_text(pilot)
        assert "Which model is faster: A resnet18_v1 or B squeezenet1.1?" in shown
        assert " is faster: " in shown and "kinds of layers" in shown and "convolution" in shown
        # Sums of layers have no verdicts.
        assert re.search(r"A ms +B ms .*change", shown) and not re.search(r"change +B is", shown)
        assert re.search(r"convolution .* [+-][\d.,]+ % *┃", shown)
        await press(pilot, "i")
        assert "Which model is faster: A squeezenet1.1 or B resnet18_v1?" in screen_text(pilot)
        await press(pilot, "r", "2")
        assert isinstance(pilot.app.screen.focused.parent, CircumstancesPanel)  # type: ignore[union-attr]
        await press(pilot, "1")
        assert isinstance(pilot.app.screen.focused.parent, PartsPanel)  # type: ignore[union-attr]
        await press(pilot, "tab")
        assert isinstance(pilot.app.screen.focused.parent, CircumstancesPanel)
        await press(pilot, "shift+tab")
        assert isinstance(pilot.app.screen.focused.parent, PartsPanel)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)


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
        await press(pilot, "2")
        assert "c6i.large" in screen_text(pilot)
        check_layout(pilot.app)


async def test_two_results_of_one_kind_are_compared(stored: DataFolder) -> None:
    async with running(app_on(stored, MEASURED_ONLY)) as pilot:
        find = ("slash", "ctrl+u")
        await press(pilot, "R", *find, f'"{HERE} 2026-11-21 of=brick"', "enter", "3", MARK, MARK, COMPARE)
        shown = screen_text(pilot)
        assert "2026-11-21" in shown and "2026-11-20" in shown
        assert "They cannot be told apart: B takes 1.1" in shown and "measure both in 3 runs" in " ".join(shown.split())
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, ResultsScreen)
        await press(pilot, "1", *find, '"of=model"', "enter", MARK, *find, '"of=brick"', "enter", MARK, COMPARE)
        assert "compare two models or two bricks" in " ".join(screen_text(pilot).split())
        await press(pilot, "escape", "3")
        with ResultsDatabase(stored.store) as store:
            store.delete([marked_ids(pilot)[0]])
        await press(pilot, COMPARE)
        assert "was deleted: mark another one" in " ".join(screen_text(pilot).split())


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
        await press(pilot, "J", "g", MARK, MARK)
        assert "C compare" in screen_text(pilot) and "esc close" in screen_text(pilot)
        await press(pilot, COMPARE)
        assert isinstance(pilot.app.screen, MarkedScreen)
        assert "Which run is faster" in screen_text(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        await press(pilot, "J", "G", MARK)
        assert len(marks(pilot)) == 1


async def test_two_variants_of_a_model_are_compared(new: DataFolder) -> None:
    async with showing(new, lambda _: screen(MIXED)) as pilot:
        await press(pilot, "g", "h", "h", "h", MARK, COMPARE)
        assert said(pilot).startswith("Mark two cells")
        await press(pilot, "l", COMPARE)
        assert isinstance(pilot.app.screen, MarkedScreen)
        first, second = pilot.app.screen._rows
        assert (first.kind, second.kind) == (PairKind.VARIANT, PairKind.VARIANT)
        assert first.name.startswith("ONNX Runtime, ") and second.name.startswith("ONNX Runtime, ")
        assert first.name != second.name, "variants are told apart by what differs"
        assert isinstance(first.subject, EstimatedSide)
        assert first.subject.found in [it.point.found for it in MIXED.combinations]
