"""Proofs and measurements that the analysis screen starts; a small script stands for the process that proves."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from dlbricks_tui.analysis.proving import ProofDone, RoundsDone
from dlbricks_tui.analysis.what_if import Gain, MeasuredGain
from dlbricks_tui.api import analysing as lacking
from dlbricks_tui.api.followed_runs import SnapshotBuilder
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.events import Waiting
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks
from dlbricks_tui.tui.analysis import AnalysisScreen, RooflineScreen, WhatIfsPanel
from dlbricks_tui.tui.messages import NewResults
from tests.tui.application import NARROW, WIDE, AppWithoutWorkbench, eventually, press, screen_text, settled, told
from tests.tui.processes import Process, all_seen
from tests.tui.results import store_run
from tests.tui.snapshots import check_layout
from tests.tui.test_analysis_screen import MODEL, ONE_THREAD, TWO_THREADS, analysis_screen, screen_of
from tests.tui.test_run_screens import shows

PROVED = MeasuredGain(9.0, 0.42, (0.40, 0.44), 15.6, "2026-11-27T00:00:00+00:00")
ROUNDS = RoundsDone("parallel-2", 7, Gain(0.41, 0.38, 0.44), 12.0)


@pytest.fixture
def faster(new: DataFolder) -> DataFolder:
    """A data folder with a model that was measured with two threads and with one."""
    store_run(new, [MODEL])
    store_run(new, [MODEL], runtime=ONE_THREAD, factor=0.75)
    return new


async def tells(pilot: Pilot[None], words: str) -> None:
    await eventually(pilot, lambda: any(words in it for it in told(pilot)))


async def test_keys_prove_what_ifs_and_cancel_and_gains_and_failures_appear_in_the_rows(
    faster: DataFolder, process: Process
) -> None:
    async with analysis_screen(faster, WIDE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, AnalysisScreen)
        await press(pilot, "3", "2")
        before = screen._document
        await pilot.press("v")
        process.write(Waiting(holder="run r1 of a colleague"))
        await shows(pilot, "waits for run r1 of a colleague")
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

        # All that are marked, one after the other.
        await press(pilot, "j", "a")
        await pilot.press("v")
        process.write(ProofDone("parallel-2", PROVED, ""), number=2)
        await shows(pilot, "loading the model twice, before and after the change 2 of 2")
        process.write(ProofDone("threads-1", None, "the worker was lost"), number=2)
        process.end(number=2)
        await settled(pilot)
        assert "failed     the worker was lost" in screen_text(pilot)
        assert [it.proof for it in screen.query_one(WhatIfsPanel).found] == [PROVED, None]

        process.write(b"", number=3)
        process.end("the disk is full", number=3)
        await press(pilot, "a", "v")
        assert "not proved: use 1 thread: the disk is full" in screen_text(pilot)

        await press(pilot, "escape", "k")
        await pilot.press("v")
        await shows(pilot, "loading the model twice")
        process.write(ROUNDS, number=4)
        await shows(pilot, "7 rounds, +41.0 % (+38 to +44) so far, about 12 s left")
        assert "running" in screen_text(pilot)
        check_layout(pilot.app)
        process.write(ProofDone("parallel-2", PROVED, ""), number=4)
        process.end(number=4)
        await settled(pilot)
        shown = screen_text(pilot)
        # The prediction and the proof are in one row.
        assert re.search(r"run 2 branches at once .*\+43 to \+44 +8\.646 +\+42\.0 %", shown)
        for words in ("15.60 ms before and 9.000 ms after the change", "The proof agrees with the prediction"):
            assert words in shown
        assert "largest gain: run 2 branches at once, +42.0 % (+40 to +44), proved" in shown
        assert "so far" not in shown and "running" not in shown


async def test_a_proof_survives_its_screen_and_the_program_and_is_shown_again(
    faster: DataFolder, process: Process
) -> None:
    async with analysis_screen(faster, NARROW) as pilot:
        await pilot.press("2", "v")
        await eventually(pilot, process.has_begun)
        await pilot.press("escape")
        await eventually(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await tells(pilot, "The proof goes on in the background")
    assert not process.has_ended()
    session = WorkbenchSession(faster)
    async with AppWithoutWorkbench(session, TWO_THREADS).run_test(size=WIDE) as pilot:
        pilot.app.push_screen(screen_of(session))
        process.write(ROUNDS)
        await shows(pilot, "7 rounds, +41.0 % (+38 to +44) so far")
        process.write(ProofDone("parallel-2", PROVED, ""))
        process.end()
        await settled(pilot)
        assert "largest gain: run 2 branches at once, +42.0 % (+40 to +44), proved" in screen_text(pilot)
        assert all_seen(faster)


PEAKS = Peaks(
    when="2026-11-27T00:00:00+00:00",
    system="",
    threads=2,
    arithmetic=(("avx2", 1e5),),
    bandwidth=(("memory", 1e5),),
)


class PeaksProcess:
    """Stands for the process that measures peaks; it waits until the test lets it go on."""

    def __init__(self, threads: int, data: DataFolder, failure: str = "") -> None:
        self.may_end = asyncio.Event()
        self._threads, self._data, self.failure = threads, data, failure
        self.waits_for = ""

    async def follow(self, changed: Callable[[], None]) -> None:
        self.waits_for = "run r1 of alexnet by ada"
        changed()
        await self.may_end.wait()
        if self.failure:
            return
        with ResultsDatabase(self._data.store) as store:
            store.add(replace(PEAKS, system=fingerprint().id, threads=self._threads))


async def test_a_key_starts_all_runs_that_the_what_ifs_lack_and_measures_the_peaks(
    faster: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes, started, followed = list[PeaksProcess](), list[RunRequest](), list[str]()

    def process(threads: int, data: DataFolder) -> PeaksProcess:
        refusal = "" if processes else "the disk is full"
        processes.append(PeaksProcess(threads, data, refusal))
        return processes[-1]

    def start(request: RunRequest, _: DataFolder) -> str:
        started.append(request)
        return f"r{len(started)}"

    monkeypatch.setattr("dlbricks_tui.tui.analysis.peaks_job", process)
    monkeypatch.setattr("dlbricks_tui.api.jobs.start_run", start)
    async with analysis_screen(faster, WIDE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, AnalysisScreen)
        monkeypatch.setattr(pilot.app._runs.watch, "follow", followed.append)  # type: ignore[attr-defined]
        await press(pilot, "b")
        assert told(pilot)[-1].endswith("m measures them.")
        assert "Missing: the peaks with 2 threads" in screen_text(pilot)
        await press(pilot, "m")
        shown = screen_text(pilot)
        assert f"{MODEL} was not measured in " in shown and "batch 8" in shown
        assert re.search(r"roofline +the peaks of this host with \d+ thread", shown)
        assert not started
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
        screen.show_run(replace(SnapshotBuilder("r1", (MODEL,)).snapshot(), state=State.RUNNING))
        await pilot.pause()
        assert "A run measures; its end brings the analysis up to date." in screen_text(pilot)
        screen.show_run(replace(SnapshotBuilder("r1", (MODEL,)).snapshot(), state=State.FINISHED))

        # Where only the peaks are missing, no run starts.
        monkeypatch.setattr(lacking, "lacks_of", lambda *_: ())
        await press(pilot, "m")
        shown = screen_text(pilot)
        assert "The peaks of this host are not known; that takes about 4 s." in shown
        assert "the peaks of this host with 2 threads" in shown and "one after the other" not in shown
        before = len(started)
        await pilot.press("enter")
        await eventually(pilot, lambda: len(processes) == 2)
        processes[1].may_end.set()
        await settled(pilot)
        assert "Missing:" not in screen_text(pilot) and len(started) == before
        await press(pilot, "m")
        assert told(pilot)[-1] == "The what-ifs lack nothing that this host can measure."
        await press(pilot, "b")
        assert isinstance(pilot.app.screen, RooflineScreen)
