import re
import threading
from dataclasses import replace

import pytest

from dlbricks_tui.bricks.corpus import compare, model_bricks
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.tui.corpus import work
from dlbricks_tui.tui.corpus.likeness import LikenessPanel
from dlbricks_tui.tui.corpus.panels import UniquenessPanel
from dlbricks_tui.tui.corpus.screen import CorpusScreen
from dlbricks_tui.tui.model_reader import ModelReader
from dlbricks_tui.tui.open_model import ModelSpec
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import (
    LIBRARY,
    PATIENCE_SECONDS,
    WRITTEN,
    app_on,
    eventually,
    press,
    running,
    screen_text,
    settled,
    showing,
)
from tests.tui.results import graph_of

WIDE = (200, 50)


async def test_the_corpus_screen_shows_layers_unique_layers_and_repeated_kinds(new: DataFolder) -> None:
    expected = compare([model_bricks(decompose(graph_of(name))) for name in LIBRARY])
    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape", "7")
        assert f"{expected.layers:,} layers: {expected.unique_layers:,} unique" in screen_text(pilot)
        for model in expected.models:
            assert model.name in screen_text(pilot)
        for kind in expected.repeated_types[:3]:
            assert f"{kind.kind.value}" in screen_text(pilot) and f"{kind.repeated:,}" in screen_text(pilot)
        assert "Nothing was measured both end to end and brick by brick." in screen_text(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)


async def test_models_are_shown_as_they_are_read_with_their_count(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "SECONDS_BETWEEN_TELLING", 0.0)
    read: list[ModelSpec] = []
    go_on, decompose_cached = threading.Event(), ModelReader.decompose_cached

    def slow_glance(reader: ModelReader, wish: ModelSpec) -> Decomposition | None:
        if wish.level is Level.WRITTEN and len(read) == 2:
            assert go_on.wait(PATIENCE_SECONDS)
        read.append(wish)
        return decompose_cached(reader, wish)

    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape")
        monkeypatch.setattr(ModelReader, "decompose_cached", slow_glance)
        try:
            await pilot.press("7")
            reading = f"reading, 2 of {len(LIBRARY)} models; so far: 2 models"
            await eventually(pilot, lambda: reading in screen_text(pilot))
            assert pilot.app.screen.query_one(UniquenessPanel).border_title == "1 Unique layers in 2 models"
        finally:
            go_on.set()
        await settled(pilot)
        assert "reading" not in screen_text(pilot) and f"{len(LIBRARY)} models, " in screen_text(pilot)


async def test_marked_models_form_the_corpus_and_are_read_again(new: DataFolder) -> None:
    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape", "space", "space", "7")
        assert "2 models, " in screen_text(pilot)
        await press(pilot, "r")
        assert "2 models, " in screen_text(pilot)


async def test_the_models_of_the_corpus_can_be_searched_and_sorted(new: DataFolder) -> None:
    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape", "7", "slash", '"resnet"', "enter")
        panel = pilot.app.screen.query_one(UniquenessPanel)
        assert panel.border_title == f"1 Unique layers in 2 of {len(LIBRARY)} models"
        await press(pilot, "slash", "escape")
        for order in ("least unique first", "most layers first", "by name", "as in the library"):
            await press(pilot, "s")
            assert panel.border_subtitle == order


async def test_every_cell_of_the_grid_names_both_models_and_their_likeness(new: DataFolder) -> None:
    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape", "7", "3")
        corpus = pilot.app.screen.query_one(LikenessPanel)._grid.corpus
        assert corpus is not None
        for row, keys in enumerate(((), ("j",), ("j",))):
            await press(pilot, *keys, *["h"] * len(LIBRARY))
            for column in range(3):
                one, other = corpus.models[row], corpus.models[column]
                assert f"{one.name} and {other.name}" in screen_text(pilot)
                assert f"{100 * corpus.jaccard[row][column]:.1f} % alike" in screen_text(pilot)
                await press(pilot, "l")


async def test_the_grid_goes_to_the_most_similar_model(new: DataFolder) -> None:
    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape", "7", "slash", '"resnet50"', "enter", "enter")
        assert "resnet50_v1 and resnet18_v1" in screen_text(pilot)
        await press(pilot, "x")
        assert "resnet18_v1 and resnet50_v1" in screen_text(pilot)
        await press(pilot, "n")
        assert "resnet18_v1 and resnet50_v1" in screen_text(pilot)
        await press(pilot, "slash", '"vgg"', "enter")
        assert "vgg16 and resnet50_v1" in screen_text(pilot)


async def test_a_narrow_grid_scrolls_to_the_selected_column(new: DataFolder) -> None:
    async with running(app_on(new), (30, 24)) as pilot:
        await press(pilot, "escape", "7", "3", *["l"] * len(LIBRARY))
        grid = pilot.app.screen.query_one(LikenessPanel)
        assert [span.text.strip() for span in grid.heading(28)][-1] == f"{len(LIBRARY)}"
        await press(pilot, *["h"] * len(LIBRARY))
        assert [span.text.strip() for span in grid.heading(28)][3] == "1"


async def test_another_granularity_counts_sequences(new: DataFolder) -> None:
    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape", "7", "plus")
        assert "in sequences of up to 2" in screen_text(pilot) and " sequences: " in screen_text(pilot)
        await press(pilot, "minus", "minus")
        assert "in sequences" not in screen_text(pilot) and " layers: " in screen_text(pilot)


async def test_an_unread_level_shows_the_key_that_reads_the_models(new: DataFolder) -> None:
    async with running(app_on(new), WIDE) as pilot:
        await press(pilot, "escape", "7", "f")
        assert "None of these models was read at this level yet." in screen_text(pilot)
        await press(pilot, "s", "n", "x", "3", "l", "h", "enter", "tab", "shift+tab", "2", "4", "1")
        assert isinstance(pilot.app.screen, CorpusScreen)


async def test_speed_up_and_accuracy_come_from_the_store(measured: DataFolder) -> None:
    async with running(app_on(measured), WIDE) as pilot:
        await press(pilot, "7")
        (row,) = [line for line in screen_text(pilot).splitlines() if "c5.xlarge" in line]
        # All bricks of resnet18_v1 were measured, and the model took 2 % longer than their sum.
        assert "-2.2 %" in row or "-2.0 %" in row
        assert "x" in row


async def test_models_are_read_during_a_run_too(new: DataFolder) -> None:
    app = app_on(new)
    async with running(app, WIDE) as pilot:
        await press(pilot, "escape")
        workbench = app.screen
        assert isinstance(workbench, WorkbenchScreen)
        specs = workbench._library.specs
        await app.push_screen(CorpusScreen(workbench.session, specs, WRITTEN, measuring=True))
        await settled(pilot)
        assert f"{len(LIBRARY)} models, " in screen_text(pilot)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_corpus_fits_small_terminals(size: tuple[int, int], new: DataFolder) -> None:
    async with running(app_on(new), size) as pilot:
        await press(pilot, "escape", "7", "3", "l")
        assert "alike: " in screen_text(pilot) and "resnet" in screen_text(pilot)


TRANSLATIONS = ("Apple-to-Orange", "Monet-to-Photo")
ALIKE = [f"CycleGAN {it} Translation Trained on {data} Data" for it in TRANSLATIONS for data in ("One", "Two")]


@pytest.mark.parametrize("columns", [80, 120, 200])
async def test_names_that_begin_alike_differ_in_the_list_and_in_the_grid(
    columns: int, new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    bricks = model_bricks(decompose(graph_of("squeezenet1.1")))
    compared = work.ComparedModels(compare([replace(bricks, name=name) for name in ALIKE]), len(ALIKE), ())
    monkeypatch.setattr(work, "compare_models", lambda *_, **__: iter([compared]))

    def corpus(session: Session) -> CorpusScreen:
        return CorpusScreen(session, lambda _: [], WRITTEN, measuring=False)

    async with showing(new, corpus, (columns, 40)) as pilot:
        for panel, beyond in (("1", r" +66 +38 "), ("3", r" [=█]{2}")):
            await press(pilot, panel)
            # The panel with the focus has thick borders.
            rows = re.findall(rf"┃. *[1-4] +(.+?){beyond}", screen_text(pilot))
            assert len(rows) == len({*rows}) == len(ALIKE) and all(it.startswith("Cyc") for it in rows), rows
