import threading

import pytest

from dlbricks_tui.api import model_reading as work
from dlbricks_tui.api.model_reading import ModelReader
from dlbricks_tui.api.open_models import ModelSpec
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.tui.corpus import CorpusScreen, LikenessPanel, UniquenessPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import (
    LIBRARY,
    MEDIUM,
    NARROW,
    PATIENCE_SECONDS,
    WIDE,
    app_on,
    eventually,
    press,
    running,
    screen_text,
    settled,
)
from tests.tui.snapshots import resize


async def test_the_corpus_is_shown_as_it_is_read_searched_sorted_and_read_again_otherwise(
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

        await press(pilot, "slash", '"resnet"', "enter")
        assert panel.border_title == f"1 Unique layers in 2 of {len(LIBRARY)} models"
        await press(pilot, "slash", "escape")
        for order in ("least unique first", "most layers first", "by name", "as in the library"):
            await press(pilot, "s")
            assert panel.border_subtitle == order

        await press(pilot, "plus")
        assert "in sequences of up to 2" in screen_text(pilot) and " sequences: " in screen_text(pilot)
        await press(pilot, "minus", "minus")
        assert "in sequences" not in screen_text(pilot) and " layers: " in screen_text(pilot)
        await press(pilot, "f")
        assert "None of these models was read at this level yet." in screen_text(pilot)
        await press(pilot, "s", "n", "i", "3", "l", "h", "enter", "tab", "shift+tab", "2", "4", "1")
        assert screen.is_current
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)

        # Marked models form the corpus, and are read again.
        await press(pilot, "space", "space", "U")
        assert "2 models, " in screen_text(pilot)
        await press(pilot, "r")
        assert "2 models, " in screen_text(pilot)


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
        await press(pilot, "1", "slash", '"resnet50"', "enter", "enter")
        assert "resnet50_v1 and resnet18_v1" in screen_text(pilot)
        await press(pilot, "i")
        assert "resnet18_v1 and resnet50_v1" in screen_text(pilot)
        await press(pilot, "n")
        assert "resnet18_v1 and resnet50_v1" in screen_text(pilot)
        await press(pilot, "slash", '"vgg"', "enter")
        assert "vgg16 and resnet50_v1" in screen_text(pilot)
        for size in (MEDIUM, NARROW):
            await resize(pilot, size)
            assert "alike: " in screen_text(pilot) and "resnet" in screen_text(pilot)
        # A narrow grid scrolls to the selected column.
        await resize(pilot, (30, 24))
        await press(pilot, *["l"] * len(LIBRARY))
        assert [span.text.strip() for span in grid.heading(28)][-1] == f"{len(LIBRARY)}"
        await press(pilot, *["h"] * len(LIBRARY))
        assert [span.text.strip() for span in grid.heading(28)][3] == "1"
