"""The screen of how fast the open model could be."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from dlbricks_tui.api.followed_runs import SnapshotBuilder
from dlbricks_tui.api.open_models import ModelSpec
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.config.config import Config
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks
from dlbricks_tui.tui import analysis as analysing
from dlbricks_tui.tui.analysis import AnalysisScreen, LayersPanel, RooflineScreen, WhatIfsPanel
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import NARROW, WIDE, WRITTEN, app_on, press, running, screen_text, showing
from tests.tui.results import RUNTIME, source_called, store_run
from tests.tui.snapshots import check_all, resize
from tests.tui.stored_results import HERE

RUNNING = SnapshotBuilder("r1", ("net",)).snapshot()
MODEL = "squeezenet1.1"
OPEN = ("slash", f'"{MODEL}"', "enter", "enter", "A")
# With one thread the model is faster: what-ifs are about the number that was chosen.
TWO_THREADS = replace(WRITTEN, threads=2)
ONE_THREAD = replace(RUNTIME, id="mxnet-1.9.1 threads-1", name="mxnet, 1 thread", threads=1)


@pytest.fixture
def faster(new: DataFolder) -> DataFolder:
    """A data folder with a model that was measured with two threads, and with one that takes three quarters of it."""
    store_run(new, [MODEL])
    store_run(new, [MODEL], runtime=ONE_THREAD, factor=0.75)
    return new


@asynccontextmanager
async def analysis_screen(data: DataFolder, size: tuple[int, int]) -> AsyncIterator[Pilot[None]]:
    """Run the application with the screen of the analysis alone, as if the model had been opened."""
    async with showing(data, screen_of, size) as pilot:
        yield pilot


def screen_of(session: WorkbenchSession) -> AnalysisScreen:
    spec = ModelSpec(source_called(MODEL), WRITTEN.level, WRITTEN.cutting)
    return AnalysisScreen(session, spec, TWO_THREADS, Config(), None)


async def test_a_key_analyses_the_open_model_once_during_a_run_and_again_if_the_user_asks(
    one_host: None, faster: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysed: list[object] = []

    def analyse(*asked: object) -> None:
        analysed.append(asked)
        raise UserError("the runtime cannot read it")

    store_run(faster, ["alexnet"])
    async with running(app_on(faster, TWO_THREADS)) as pilot:
        workbench = pilot.app.screen
        assert isinstance(workbench, WorkbenchScreen)
        # Nothing is open and nothing selected: no model has this name.
        await press(pilot, "slash", '"no such model"', "enter", "A")
        assert workbench.is_current
        await press(pilot, "escape", *OPEN)
        await check_all(pilot, "analysis")
        await resize(pilot, WIDE)
        await press(pilot, "escape")
        assert workbench.is_current
        await press(pilot, "1", "slash", "ctrl+u", '"alexnet"', *OPEN[2:])
        assert "no other execution has results of all layers" in screen_text(pilot)
        await press(pilot, "escape")

        monkeypatch.setattr(analysing, "analyse", analyse)
        workbench._run = RUNNING
        await press(pilot, "A")
        assert len(analysed) == 1 and "the runtime cannot read it" in screen_text(pilot)
        # New results wait for the end of the run.
        pilot.app.screen.post_message(NewResults())
        await press(pilot)
        assert len(analysed) == 1
        await press(pilot, "r")
        assert len(analysed) == 2
        shown_screen = pilot.app.screen
        assert isinstance(shown_screen, AnalysisScreen)
        shown_screen.show_run(replace(RUNNING, state=State.FINISHED))
        await press(pilot)
        assert len(analysed) == 3


async def test_a_model_without_results_says_what_to_do(new: DataFolder) -> None:
    async with analysis_screen(new, WIDE) as pilot:
        shown = screen_text(pilot)
        assert f"{MODEL}: ~" in shown and "Not all layers were measured" in shown
        assert "m runs what is missing" in shown and f"dlbricks run {MODEL}" in shown


async def test_panels_are_searched_sorted_and_copied_and_the_roofline_needs_peaks(
    one_host: None, faster: DataFolder
) -> None:
    async with analysis_screen(faster, NARROW) as pilot:
        screen = pilot.app.screen
        await press(pilot, "G", "y")
        assert not faster.copied.exists() and "? unexplained" in screen_text(pilot)
        await press(pilot, "g", "y")
        assert faster.copied.read_text() == "dlbricks doctor --peaks --threads 2"

        await press(pilot, "2")
        what_ifs = screen.query_one(WhatIfsPanel)
        assert [it.what_if.id for it in what_ifs.found] == ["parallel-2", "threads-1"]
        await press(pilot, "slash", '"OMP threads-1"', "enter", "y")
        assert [it.what_if.id for it in what_ifs.found] == ["threads-1"]
        assert faster.copied.read_text() == "OMP_NUM_THREADS=1"
        await press(pilot, "escape", "s")
        assert "What-ifs 2, by gain" in screen_text(pilot)
        await resize(pilot, WIDE)
        await press(pilot, "G")
        assert "The change: use 1 thread" in screen_text(pilot)
        await press(pilot, "g", "enter")
        assert isinstance(pilot.app.focused, LineRows)
        await press(pilot, "y")
        assert faster.copied.read_text() == "MXNET_CPU_WORKER_NTHREADS=2 OMP_NUM_THREADS=1"

        await resize(pilot, NARROW)
        await press(pilot, "4")
        layers = screen.query_one(LayersPanel)
        times = [it.latency_ps for it in layers.found]
        assert times == sorted(times, reverse=True)
        assert f"Layers of {MODEL}_" in screen_text(pilot)
        assert re.search(r"conv\d+_fwd +\S+ +\S+ +\+33\.3 % +MXNet unfused on 1 thread", screen_text(pilot))
        await press(pilot, "s")
        assert "most to gain first" in screen_text(pilot)
        saved = [it.latency_ps - it.best_ps for it in layers.found]
        assert saved == sorted(saved, reverse=True)

        await press(pilot, "b")
        assert screen.is_current
        known = Peaks(
            when="2026-01-01T00:00:00+00:00",
            system=HERE,
            threads=2,
            arithmetic=(("avx2", 60.0), ("avx512", 100.0)),
            bandwidth=(("memory", 10.0), ("shared cache", 40.0)),
        )
        with ResultsDatabase(faster.store) as store:
            store.add(known)
        await press(pilot, "r", "b")
        assert isinstance(pilot.app.screen, RooflineScreen)
        await check_all(pilot, "roofline")
        shown = screen_text(pilot)
        for words in ("GFLOP/s by FLOP/byte", "memory 10 GB/s", "of the time is in layers bound by memory"):
            assert words in shown
        await press(pilot, "escape", "4")
        # The same picture stands above the layers.
        assert "GFLOP/s by FLOP/byte" in screen_text(pilot)
