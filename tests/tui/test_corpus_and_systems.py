import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.api import model_reading, store_contents
from dlbricks_tui.api.language_models import language_on_systems
from dlbricks_tui.api.model_reading import ModelReader
from dlbricks_tui.api.open_models import ModelSpec
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.noise import Finding, NoiseVerdict
from dlbricks_tui.language.opening import open_language_model
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.corpus import CorpusScreen, LikenessPanel, UniquenessPanel
from dlbricks_tui.tui.systems import AskedLanguageModel, LanguageMachinesPanel, MachinesPanel, SystemsScreen
from dlbricks_tui.tui.widgets.text import text_of
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.api.test_language_systems import ON_ALL, OPTIONS, stored_systems
from tests.store.samples import measurement, system
from tests.tui.application import LIBRARY, MEDIUM, NARROW, WIDE, app_on, running, showing
from tests.tui.driving import PATIENCE_SECONDS, eventually, find, press, screen_text, settled
from tests.tui.results import OTHER_SYSTEM
from tests.tui.snapshots import resize


async def test_the_corpus_is_shown_as_it_is_read_searched_sorted_and_read_again_otherwise(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_reading, "SECONDS_BETWEEN_TELLING", 0.0)
    read: list[ModelSpec] = []
    go_on, decompose_cached = threading.Event(), ModelReader.decompose_cached

    def slow_glance(reader: ModelReader, wish: ModelSpec) -> Decomposition | None:
        if wish.level is Level.WRITTEN and len(read) == 2:
            assert go_on.wait(PATIENCE_SECONDS)
        read.append(wish)
        return decompose_cached(reader, wish)

    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape")
        try:
            with monkeypatch.context() as patch:
                patch.setattr(ModelReader, "decompose_cached", slow_glance)
                await pilot.press("U")
                reading = f"reading, 2 of {len(LIBRARY)} models; so far: 2 models"
                await eventually(pilot, lambda: reading in screen_text(pilot))
                screen = pilot.app.screen
                assert isinstance(screen, CorpusScreen)
                panel = screen.query_one(UniquenessPanel)
                assert panel.border_title == "1 Unique layers in 2 models"
                assert not any(it[0].text.startswith("  ") for it in screen.head_lines(80)), "it wraps below the blank"
                go_on.set()
                await settled(pilot)
        finally:
            go_on.set()
        shown = screen_text(pilot)
        assert screen._compared is not None
        corpus = screen._compared.corpus
        assert "reading" not in shown and f"{len(LIBRARY)} models, " in shown
        repeated = corpus.layers - corpus.unique_layers
        assert f"{corpus.layers:,} layers: {repeated:,} repeats, {corpus.unique_layers:,} unique" in shown
        assert {it.name for it in corpus.models} == {*LIBRARY} and all(it in shown for it in LIBRARY)
        for kind in corpus.repeated_types[:3]:
            assert f"{kind.kind.value}" in shown and f"{kind.repeated:,}" in shown
        assert "Nothing was measured both end to end and brick by brick." in shown

        await press(pilot, *find("resnet"))
        assert panel.border_title == f"1 Unique layers in 2 of {len(LIBRARY)} models"
        await press(pilot, "slash", "escape")
        for order in ("least unique first", "most layers first", "by name", "as in the library"):
            await press(pilot, "s")
            assert panel.border_subtitle == order

        await press(pilot, "plus", shows=("in sequences of up to 2", " sequences: "))
        await press(pilot, "minus", "minus")
        assert "in sequences" not in screen_text(pilot) and " layers: " in screen_text(pilot)
        await press(pilot, "f", shows="None of these models was read at this level yet.")
        await press(pilot, "s", "n", "i", "3", "l", "h", "enter", "tab", "shift+tab", "2", "4", "1")
        assert screen.is_current
        await press(pilot, "escape", on=WorkbenchScreen)

        # Marked models form the corpus, and are read again.
        await press(pilot, "space", "space", "U", shows="2 models, ")
        await press(pilot, "r", shows="2 models, ")


async def test_the_grid_names_both_models_and_goes_to_the_most_similar_one(new: DataFolder) -> None:
    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape", "U", "3")
        grid = pilot.app.screen.query_one(LikenessPanel)
        names, alike = grid._grid.names, grid._grid.alike
        for row, keys in enumerate(((), ("j",))):
            await press(pilot, *keys)
            for column in range(2):
                assert f"{names[row]} and {names[column]}" in screen_text(pilot)
                assert f"{100 * alike[row][column]:.1f} % alike" in screen_text(pilot)
                await press(pilot, "h" if column else "l")
        await press(pilot, "1", *find("resnet50"), "enter", shows="resnet50_v1 and resnet18_v1")
        await press(pilot, "i", shows="resnet18_v1 and resnet50_v1")
        await press(pilot, "n", shows="resnet18_v1 and resnet50_v1")
        await press(pilot, *find("vgg"), shows="vgg16 and resnet50_v1")
        for size in (MEDIUM, NARROW):
            await resize(pilot, size)
            assert "alike: " in screen_text(pilot) and "resnet" in screen_text(pilot)
        # A narrow grid scrolls to the selected column.
        await resize(pilot, (30, 24))
        await press(pilot, *["l"] * len(LIBRARY))
        assert [span.text.strip() for span in grid.heading(28)][-1] == f"{len(LIBRARY)}"
        await press(pilot, *["h"] * len(LIBRARY))
        assert [span.text.strip() for span in grid.heading(28)][3] == "1"


FINDINGS = (
    Finding("turbo", "off", NoiseVerdict.QUIET, "samples drift", ""),
    Finding("other load", "90 % busy", NoiseVerdict.NOISY, "outliers", "end what computes"),
    Finding("temperature", "unknown", NoiseVerdict.UNKNOWN, "cores slow down", "install lm-sensors"),
)


@pytest.fixture(autouse=True)
def _same_findings_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_contents, "findings", lambda: FINDINGS)


@asynccontextmanager
async def systems_screen(data: DataFolder, size: tuple[int, int] = WIDE) -> AsyncIterator[Pilot[None]]:
    """Run the application with the screen of systems alone, without a model."""
    async with showing(data, lambda session: SystemsScreen(session, None), size) as pilot:
        yield pilot


async def test_models_are_estimated_on_every_system_and_one_is_chosen_for_the_estimates(measured: DataFolder) -> None:
    (measured.path / "prices.toml").write_text(f'[dollars_per_hour]\n"{OTHER_SYSTEM.id}" = 0.17\n')
    async with running(app_on(measured), WIDE) as pilot:
        workbench = pilot.app.screen
        assert isinstance(workbench, WorkbenchScreen)
        await press(pilot, *find("vgg16"), "enter", "S")
        assert "Nothing was measured of it yet: esc m measures." in screen_text(pilot).splitlines()[1]
        assert "R i on the workbench imports results of other hosts, F measures there." in screen_text(pilot)
        await press(pilot, "escape")
        assert workbench.is_current and workbench.choices.system is None

        await press(pilot, "1", *find("resnet18"), "enter", "S")
        shown = screen_text(pilot)
        assert "3 Which machine for resnet18_v1" in shown
        asked, answered, *lines = shown.splitlines()
        assert asked.strip() == "Which system is quickest and cheapest for resnet18_v1?"
        assert f"{OTHER_SYSTEM.id} (" in answered and " is the quickest of 2 systems" in answered
        assert "is the cheapest: $ " in answered
        # The list of systems begins with this one.
        assert "this host" in lines[2] and OTHER_SYSTEM.id in lines[3]
        quickest = next(line for line in lines if "quickest" in line)
        cheapest = next(line for line in lines if "cheapest" in line)
        assert quickest != cheapest and OTHER_SYSTEM.id[:8] in cheapest
        await press(pilot, "j", shows=(OTHER_SYSTEM.cpu, "protocol hot-1"))
        machines = pilot.app.screen.query_one(MachinesPanel)
        assert [it.estimate.way.system == OTHER_SYSTEM.id for it in machines.found] == [False, True]
        await press(pilot, "3", "s")
        assert [it.estimate.way.system == OTHER_SYSTEM.id for it in machines.found] == [True, False]
        await press(pilot, "g", "enter")
        assert workbench.is_current and workbench.choices.system == OTHER_SYSTEM.id
        workbench.choices = replace(workbench.choices, system=None)
        await press(pilot, "S", "j", "enter")
        assert workbench.is_current and workbench.choices.system == OTHER_SYSTEM.id


async def test_systems_are_searched_and_the_doctor_is_asked_again(
    stored: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with systems_screen(stored, NARROW) as pilot:
        await press(pilot, "4")
        lines = screen_text(pilot).splitlines()[2:]
        # Disturbances come first, with their cures.
        assert "noisy   other load: 90 % busy" in lines[1] and "1 noisy" in lines[-3]
        assert "cure: end what computes" in lines[3]
        await press(pilot, "j", "y")
        assert pilot.app.clipboard == "end what computes"
        await press(pilot, "G", "y")
        assert pilot.app.clipboard == "end what computes"
        await resize(pilot, WIDE)
        assert "other load" in screen_text(pilot) and "new.large" not in screen_text(pilot)
        cured = (Finding("other load", "2 % busy", NoiseVerdict.QUIET, "outliers", ""),)
        monkeypatch.setattr(store_contents, "findings", lambda: cured)
        with ResultsDatabase(stored.store) as store:
            store.add(system("new.large"), measurement(system="new.large"))
        await press(pilot, "r")
        assert "2 % busy" in screen_text(pilot) and "temperature" not in screen_text(pilot)
        assert "new.large" in screen_text(pilot)
        await press(pilot, "1", *find("8375c"))
        assert "c6i.large" in screen_text(pilot).splitlines()[4]
        await press(pilot, "slash", "ctrl+u", '"nosuch"', shows="No system matches the search.")


async def test_without_results_only_this_host_is_listed_and_invalid_prices_are_reported(
    new: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A short path stands in one line on every machine.
    monkeypatch.chdir(tmp_path)
    async with systems_screen(DataFolder(Path(new.path.name))) as pilot:
        assert "Nothing was measured on it yet." in screen_text(pilot)
        assert "Open a model on the workbench" in screen_text(pilot)
        await press(pilot, "enter", "3", "enter", "s", "2", "tab", "shift+tab", "1", on=SystemsScreen)
        new.path.mkdir(exist_ok=True)
        (new.path / "prices.toml").write_text("nonsense")
        await press(pilot, "r", shows="prices.toml")


async def test_a_language_model_is_compared_on_every_system(tmp_path: Path) -> None:
    data = stored_systems(tmp_path)
    rows = language_on_systems([open_language_model("llama-3.2-1b")], OPTIONS, data, ON_ALL)
    asked = AskedLanguageModel("llama-3.2-1b", lambda: rows)
    async with showing(data, lambda session: SystemsScreen(session, None, asked), WIDE) as pilot:
        await press(pilot, "3")
        shown = screen_text(pilot)
        question, answered, *_ = shown.splitlines()
        assert question.strip() == "Which system is quickest and cheapest for llama-3.2-1b?"
        assert "fast is the quickest: " in answered and "fast is the cheapest: $ " in answered
        panel = pilot.app.screen.query_one(LanguageMachinesPanel)
        assert [it.system for it in panel.found] == ["fast", "peaked", "silent"]
        await press(pilot, "s")
        assert panel.order == "cost"
        # Estimates of other models are not taken from here, and no key offers it.
        await press(pilot, "enter", "1", "enter", on=SystemsScreen)
        assert "enter use" not in screen_text(pilot)
        # What is not looked up yet is not unknown.
        screen = SystemsScreen(WorkbenchSession(data), None, asked)
        assert [text_of(it) for it in screen.answer()] == ["Predicting."]
