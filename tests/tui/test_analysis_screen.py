"""The screen of how fast the open model could be."""

import asyncio
import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
from textual.pilot import Pilot

from dlbricks_tui.analysis.proving import ProofDone, RoundsDone
from dlbricks_tui.analysis.what_if import Gain, MeasuredGain
from dlbricks_tui.api import analysing as kernels
from dlbricks_tui.api import analysing as lacking
from dlbricks_tui.api.analyses import Analysis, ModelKernel
from dlbricks_tui.api.followed_runs import SnapshotBuilder
from dlbricks_tui.api.open_models import ModelSpec
from dlbricks_tui.api.session import Asked, WorkbenchSession
from dlbricks_tui.config.config import Config
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.errors import WorkerDiedError
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks
from dlbricks_tui.tui import analysis as analysing
from dlbricks_tui.tui.analysis import AnalysisScreen, LayersPanel, RooflineScreen, WhatIfsPanel
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.widgets.screens import NOT_YET
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import MEDIUM, NARROW, WIDE, WRITTEN, app_on, running, showing
from tests.tui.driving import eventually, find, press, screen_text, settled, shows, told
from tests.tui.processes import Process
from tests.tui.results import ONE_THREAD, source_called, store_run
from tests.tui.snapshots import check_all, check_layout, resize
from tests.tui.stored_results import HERE

RUNNING = SnapshotBuilder("r1", ("net",)).snapshot()
MODEL = "squeezenet1.1"
OPEN = (*find(MODEL), "enter", "A")
# With one thread the model is faster: what-ifs are about the number that was chosen.
TWO_THREADS = replace(WRITTEN, threads=2)


PEAKS = Peaks(
    when="2026-01-01T00:00:00+00:00",
    system=HERE,
    threads=2,
    arithmetic=(("avx2", 60.0), ("avx512", 100.0)),
    bandwidth=(("memory", 10.0), ("shared cache", 40.0)),
)
HIGH_PEAKS = replace(PEAKS, arithmetic=(("avx2", 1e5),), bandwidth=(("memory", 1e5),))


@pytest.fixture
def faster(new: DataFolder) -> DataFolder:
    """A data folder with a model that was measured with two threads, and with one that takes three quarters of it."""
    store_run(new, [MODEL])
    store_run(new, [MODEL], runtime=ONE_THREAD, factor=0.75)
    return new


def screen_of(session: WorkbenchSession) -> AnalysisScreen:
    spec = ModelSpec(source_called(MODEL), WRITTEN.level, WRITTEN.cutting)
    return AnalysisScreen(session, lambda: Asked(spec, TWO_THREADS, Config()))


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
        await press(pilot, *find("no such model"), "A")
        assert workbench.is_current
        await press(pilot, "escape", *OPEN)
        await check_all(pilot, "analysis")
        await resize(pilot, WIDE)
        await press(pilot, "escape")
        assert workbench.is_current
        await press(pilot, "1", *find("alexnet"), *OPEN[4:], shows="no other execution has results of all layers")
        await press(pilot, "escape")

        monkeypatch.setattr(analysing, "analyse", analyse)
        updates = pilot.app._runs  # type: ignore[attr-defined]
        updates.take(RUNNING)
        await press(pilot, "A")
        assert len(analysed) == 1 and "the runtime cannot read it" in screen_text(pilot)
        # There is nothing to prove, to draw or to measure.
        assert "v prove" not in screen_text(pilot) and "m measure" not in screen_text(pilot)
        # New results wait for the end of the run.
        updates.take_results()
        await press(pilot, shows=NOT_YET)
        assert len(analysed) == 1
        await press(pilot, "r")
        assert len(analysed) == 2
        updates.take(replace(RUNNING, state=State.FINISHED))
        await press(pilot)
        assert len(analysed) == 3


async def test_panels_are_searched_sorted_and_copied_and_the_roofline_needs_peaks(
    one_host: None, faster: DataFolder
) -> None:
    async with showing(faster, screen_of, NARROW) as pilot:
        screen = pilot.app.screen
        await press(pilot, "G", "y")
        assert not faster.copied.exists() and "? unexplained" in screen_text(pilot)
        await press(pilot, "g", "y")
        assert faster.copied.read_text() == "dlbricks doctor --peaks --threads 2"

        await press(pilot, "2")
        what_ifs = screen.query_one(WhatIfsPanel)
        assert [it.what_if.id for it in what_ifs.found] == ["parallel-2", "threads-1"]
        await press(pilot, *find("OMP threads-1"), "y")
        assert [it.what_if.id for it in what_ifs.found] == ["threads-1"]
        assert faster.copied.read_text() == "OMP_NUM_THREADS=1"
        await press(pilot, "escape", "s", shows="What-ifs 2, by gain")
        await resize(pilot, WIDE)
        await press(pilot, "G", shows="The change: use 1 thread")
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
        await press(pilot, "s", shows="most to gain first")
        saved = [it.latency_ps - it.best_ps for it in layers.found]
        assert saved == sorted(saved, reverse=True)

        await press(pilot, "b")
        assert screen.is_current
        with ResultsDatabase(faster.store) as store:
            store.add(PEAKS)
        await press(pilot, "r", "b", on=RooflineScreen)
        await check_all(pilot, "roofline")
        # The same picture stands above the layers.
        await press(pilot, "escape", "4", shows="GFLOP/s by FLOP/byte")


REASON = "its output channels are no multiple of the sixteen numbers that a register of AVX-512 holds"


async def test_the_box_asks_the_runtime_once_for_each_analysis_and_closing_it_ends_the_wait(
    one_host: None, faster: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, begun, interrupted = threading.Event(), threading.Event(), threading.Event()
    asked = list[object]()

    def wait(found: object, data: object, tell: Callable[[str], None], check: Callable[[], None], _: object) -> None:
        tell("run r1 of alexnet by ada")
        try:
            while True:
                check()
                # The interface gets the interpreter between two looks.
                left.wait(0.001)
        finally:
            left.set()

    def load(*_: object) -> None:
        started = _[-1]
        assert callable(started)
        started(SimpleNamespace(interrupt=interrupted.set))
        begun.set()
        interrupted.wait()
        raise WorkerDiedError("the worker was killed")

    def read(found: Analysis, *_: object) -> tuple[ModelKernel, ...]:
        """Tell a narrow kernel of the first layer, and wide ones of the others."""
        asked.append(found)
        first, *others = found.baseline.graph.layers
        narrow = ModelKernel(first.name, 5.0, "jit_1x1:avx2", "avx2", ("acdb -> aBcd8b",), (REASON,))
        return narrow, *(ModelKernel(it.name, 0.25, "brgconv:avx512_core", "avx512") for it in others)

    async with showing(faster, screen_of, MEDIUM) as pilot:
        monkeypatch.setattr(kernels, "kernels_of", wait)
        await pilot.press("K")
        await shows(pilot, "It waits for run r1 of alexnet by ada.")
        await pilot.press("escape")
        await eventually(pilot, left.is_set)
        # A runtime that loads the model is ended.
        monkeypatch.setattr(kernels, "kernels_of", load)
        await pilot.press("K")
        await eventually(pilot, begun.is_set)
        await shows(pilot, "MXNet loads the model, and tells the kernels that it chooses.")
        await press(pilot, "escape", on=AnalysisScreen)
        assert interrupted.is_set() and not pilot.app._notifications
        monkeypatch.setattr(kernels, "kernels_of", read)
        await press(pilot, "K", "escape", "K")
        assert len(asked) == 1
        await check_all(pilot, "kernels")
        await press(pilot, "escape", "r", "K")
        assert len(asked) == 2


async def test_kernels_that_the_runtime_does_not_tell_are_refused_with_one_line(faster: DataFolder) -> None:
    async with showing(faster, screen_of, WIDE) as pilot:
        await press(pilot, "K", shows=f"{MODEL} was measured by mxnet-1.9.1")
        assert "which is not installed here any more" in screen_text(pilot)


PROVED = MeasuredGain(9.0, 0.42, (0.40, 0.44), 15.6, "2026-11-27T00:00:00+00:00")


async def tells(pilot: Pilot[None], words: str) -> None:
    await eventually(pilot, lambda: any(words in it for it in told(pilot)))


async def test_keys_prove_what_ifs_and_cancel_and_gains_and_failures_appear_in_the_rows(
    faster: DataFolder, process: Process
) -> None:
    async with showing(faster, screen_of, WIDE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, AnalysisScreen)
        await press(pilot, "3", "2")
        before = screen._document
        await pilot.press("v")
        await eventually(pilot, process.has_begun)
        await shows(pilot, "loading the model twice")
        await pilot.press("v")
        await tells(pilot, "The proof goes on (run 2 branches at once): x cancels it.")
        # Nothing is read while a proof measures.
        screen.post_message(NewResults())
        await pilot.press("r")
        await eventually(pilot, lambda: sum("The proof goes on" in it for it in told(pilot)) == 2)
        assert screen._document is before and screen._is_outdated
        await press(pilot, "x")
        assert process.has_ended() and "The proof is cancelled; those before it are kept." in told(pilot)
        assert screen.is_current and not screen._is_outdated and screen._document is not before

        # Those that a search hides only if the user says so.
        await press(pilot, "j", "a", *find("OMP threads-1"), "v", shows="The search hides 1 of 2 marked what-ifs.")
        await press(pilot, "escape", "escape", on=AnalysisScreen)
        # All that are marked, one after the other.
        await pilot.press("v")
        process.write(ProofDone("parallel-2", PROVED, ""), number=2)
        await shows(pilot, "loading the model twice, before and after the change 2 of 2")
        process.write(ProofDone("threads-1", None, "the worker was lost"), number=2)
        process.end(number=2)
        await settled(pilot)
        assert "failed     the worker was lost" in screen_text(pilot)
        assert [it.proof for it in screen.query_one(WhatIfsPanel).found] == [PROVED, None]

        await press(pilot, "a", "k")
        await pilot.press("v")
        await shows(pilot, "loading the model twice")
        process.write(RoundsDone("parallel-2", 7, Gain(0.41, 0.38, 0.44), 12.0), number=3)
        await shows(pilot, "7 rounds, +41.0 % (+38 to +44) so far, about 12 s left")
        assert "running" in screen_text(pilot)
        check_layout(pilot.app)
        process.write(ProofDone("parallel-2", PROVED, ""), number=3)
        process.end(number=3)
        await settled(pilot)
        shown = screen_text(pilot)
        assert "largest gain: run 2 branches at once, +42.0 % (+40 to +44), proved" in shown
        assert "so far" not in shown and "running" not in shown


class PeaksProcess:
    """Stands for the process that measures peaks; it waits until the test lets it go on."""

    waits_for = "run r1 of alexnet by ada"

    def __init__(self, data: DataFolder, failure: str) -> None:
        self.may_end, self.failure, self._data = asyncio.Event(), failure, data

    async def follow(self, changed: Callable[[], None]) -> None:
        changed()
        await self.may_end.wait()
        with ResultsDatabase(self._data.store) as store:
            store.add(*[] if self.failure else [replace(HIGH_PEAKS, system=fingerprint().id)])


async def test_a_key_starts_all_runs_that_the_what_ifs_lack_and_measures_the_peaks(
    faster: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes, started, followed = list[PeaksProcess](), list[RunRequest](), list[str]()

    def process(_: int, data: DataFolder) -> PeaksProcess:
        processes.append(PeaksProcess(data, "" if processes else "the disk is full"))
        return processes[-1]

    def start(request: RunRequest, _: DataFolder) -> str:
        started.append(request)
        return f"r{len(started)}"

    monkeypatch.setattr("dlbricks_tui.tui.analysis.peaks_job", process)
    monkeypatch.setattr("dlbricks_tui.api.jobs.start_run", start)
    async with showing(faster, screen_of, WIDE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, AnalysisScreen)
        monkeypatch.setattr(pilot.app._runs.watch, "follow", followed.append)  # type: ignore[attr-defined]
        await press(pilot, "b")
        assert told(pilot)[-1].endswith("m measures them.")
        assert "Missing: the peaks with 2 threads" in screen_text(pilot)
        await press(pilot, "m")
        assert f"{MODEL} was not measured in " in screen_text(pilot) and not started
        await pilot.press("enter")
        await shows(pilot, "The peaks of this host wait for run r1 of alexnet by ada.")
        await eventually(pilot, lambda: followed)
        # Each run waits in line.
        assert followed == ["r1"]
        assert len({json.dumps(str(it)) for it in started}) == len(started) > 1
        await pilot.press("m")
        await tells(pilot, "The peaks are measured: what is missing can be measured once that has ended.")
        processes[0].may_end.set()
        await tells(pilot, "the disk is full")

        # Where only the peaks are missing, no run starts.
        monkeypatch.setattr(lacking, "lacks_of", lambda *_: ())
        await press(pilot, "m", shows="The peaks of this host are not known; that takes about 4 s.")
        before = len(started)
        await pilot.press("enter")
        await eventually(pilot, lambda: len(processes) == 2)
        processes[1].may_end.set()
        await settled(pilot)
        assert "Missing:" not in screen_text(pilot) and len(started) == before
        await press(pilot, "m")
        assert told(pilot)[-1] == "The what-ifs lack nothing that this host can measure."
        await press(pilot, "b", on=RooflineScreen)
