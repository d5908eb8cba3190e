"""The box with the kernels that compute the layers of the open model."""

import threading
from collections.abc import Callable
from typing import cast

import pytest

from dlbricks_tui.analysis.kernels import LayerKernel, TimedKernel
from dlbricks_tui.api import analysing as kernels
from dlbricks_tui.api.analysing import Analysis
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runtime.errors import WorkerDiedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.tui.analysis import AnalysisScreen, KernelsScreen
from tests.tui.application import MEDIUM, WIDE, eventually, press, screen_text, settled
from tests.tui.results import store_run
from tests.tui.snapshots import check_all
from tests.tui.test_analysis_screen import MODEL, analysis_screen

REASON = "its output channels are no multiple of the sixteen numbers that a register of AVX-512 holds"


class ToldKernels:
    """Stands for the runtime: the first layer has a narrow kernel, the others have wide ones."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(
        self,
        found: Analysis,
        data: DataFolder,
        tell_waiting: Callable[[str], None],
        check: Callable[[], None],
        started: Callable[[Worker], None],
    ) -> tuple[TimedKernel, ...]:
        self.asked += 1
        narrow = LayerKernel(0, "jit_1x1:avx2", "avx2", ("acdb -> aBcd8b",), (REASON,))
        layers = found.baseline.graph.layers
        wide = [TimedKernel(LayerKernel(it.index, "brgconv:avx512_core", "avx512"), it.name, 0.25) for it in layers[1:]]
        return TimedKernel(narrow, layers[0].name, 5.0), *wide


class HangingWorker:
    """A runtime that loads the model until it is interrupted."""

    def __init__(self) -> None:
        self.begun, self.interrupted = threading.Event(), threading.Event()

    def interrupt(self) -> None:
        self.interrupted.set()

    def __call__(
        self,
        found: object,
        data: object,
        tell_waiting: object,
        check: object,
        started: Callable[[Worker], None],
    ) -> None:
        started(cast("Worker", self))
        self.begun.set()
        self.interrupted.wait()
        raise WorkerDiedError("the worker was killed")


@pytest.fixture
def faster(new: DataFolder) -> DataFolder:
    """A data folder with a measured model."""
    store_run(new, [MODEL])
    return new


async def test_the_box_asks_the_runtime_once_for_each_analysis_and_closing_it_ends_the_wait(
    one_host: None,
    faster: DataFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left, may_start, waits = threading.Event(), threading.Event(), threading.Event()

    def wait(found: object, data: object, tell: Callable[[str], None], check: Callable[[], None], _: object) -> None:
        tell("run r1 of alexnet by ada")
        try:
            while True:
                check()
                # The interface gets the interpreter between two looks.
                left.wait(0.001)
        finally:
            left.set()

    def read_late(*about: object) -> None:
        waits.set()
        may_start.wait()
        late(*about)  # type: ignore[arg-type]

    async with analysis_screen(faster, MEDIUM) as pilot:
        monkeypatch.setattr(kernels, "kernels_of", wait)
        await pilot.press("K")
        await eventually(pilot, lambda: "It waits for run r1 of alexnet by ada." in screen_text(pilot))
        await pilot.press("escape")
        await eventually(pilot, left.is_set)

        # A runtime that loads the model is ended, and so is one that is ready after the box was closed.
        loading, late = HangingWorker(), HangingWorker()
        monkeypatch.setattr(kernels, "kernels_of", loading)
        await pilot.press("K")
        await eventually(pilot, loading.begun.is_set)
        assert isinstance(pilot.app.screen, KernelsScreen)
        loads = "MXNet loads the model, and tells the kernels that it chooses."
        await eventually(pilot, lambda: loads in screen_text(pilot))
        await press(pilot, "escape")
        assert loading.interrupted.is_set()
        assert isinstance(pilot.app.screen, AnalysisScreen) and not pilot.app._notifications
        monkeypatch.setattr(kernels, "kernels_of", read_late)
        await pilot.press("K")
        await eventually(pilot, waits.is_set)
        await pilot.press("escape")
        await eventually(pilot, lambda: isinstance(pilot.app.screen, AnalysisScreen))
        may_start.set()
        await eventually(pilot, late.interrupted.is_set)
        await settled(pilot)

        told = ToldKernels()
        monkeypatch.setattr(kernels, "kernels_of", told)
        await press(pilot, "K", "escape", "K")
        assert told.asked == 1
        await check_all(pilot, "kernels")
        await press(pilot, "escape", "r", "K")
        assert told.asked == 2


async def test_kernels_that_the_runtime_does_not_tell_are_refused_with_one_line(faster: DataFolder) -> None:
    async with analysis_screen(faster, WIDE) as pilot:
        await press(pilot, "K")
        assert f"{MODEL} was measured by mxnet-1.9.1" in screen_text(pilot)
        assert "which is not installed here any more" in screen_text(pilot)
