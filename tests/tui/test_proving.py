"""Proofs and measurements that the analysis screen starts; a small script stands for the process that proves."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.answers.analysis import lacking
from dlbricks_tui.answers.analysis.analysing import MeasuredGain
from dlbricks_tui.answers.analysis.proof_process import ProofDone, ProofWaits, RoundsDone, encode
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.peaks import PeaksError
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks
from dlbricks_tui.tui.analysis import proving
from dlbricks_tui.tui.analysis.roofline import RooflineScreen
from dlbricks_tui.tui.analysis.screen import AnalysisScreen
from dlbricks_tui.tui.analysis.what_ifs import WhatIfsPanel
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.run.follower import SnapshotBuilder
from dlbricks_tui.tui.run.runs import Runs
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import NARROW, WIDE, app_on, eventually, press, running, screen_text, settled
from tests.tui.results import store_run
from tests.tui.snapshots import check_layout
from tests.tui.test_analysis_screen import MODEL, ONE_THREAD, OPEN, TWO_THREADS, analysis_screen

# It takes the order, writes each line of a file, and then waits until a second file is there.
SCRIPT = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
sys.stdin.buffer.read()
(folder / "pid").write_text(str(os.getpid()))
for name in ("first", "second"):
    while not (folder / name).exists():
        time.sleep(0.005)
    os.write(1, (folder / name).read_bytes())
sys.exit((folder / "fails").read_text() if (folder / "fails").exists() else 0)
"""
PROVED = MeasuredGain(9.0, 0.42, (0.40, 0.44), 15.6, "2026-11-27T00:00:00+00:00")
ROUNDS = RoundsDone("parallel-2", 7, Gain(0.41, 0.38, 0.44), 12.0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder with what the process writes."""
    path = tmp_path / "process"
    path.mkdir()
    monkeypatch.setattr(proving, "proof_command", lambda _: [sys.executable, "-S", "-c", SCRIPT, str(path)])
    yield path
    # It outlives the program.
    if (path / "pid").exists() and not ended(path):
        os.kill(int((path / "pid").read_text()), signal.SIGKILL)


@pytest.fixture
def faster(new: DataFolder) -> DataFolder:
    """A data folder with a model that was measured with two threads and with one."""
    store_run(new, [MODEL])
    store_run(new, [MODEL], runtime=ONE_THREAD, factor=0.75)
    return new


def writes(folder: Path, name: str, *messages: object) -> None:
    """Let the process write messages; the file appears at once with all of them."""
    part = folder / "part"
    part.write_bytes(b"".join(encode(it) for it in messages))  # type: ignore[arg-type]
    part.rename(folder / name)


def ended(folder: Path) -> bool:
    try:
        os.kill(int((folder / "pid").read_text()), 0)
    except ProcessLookupError:
        return True
    return False


async def shows(pilot: Pilot[None], words: str) -> None:
    await eventually(pilot, lambda: words in screen_text(pilot))


def told(pilot: Pilot[None]) -> list[str]:
    """Return the messages of the program, the newest last."""
    return [note.message for note in pilot.app._notifications]


async def tells(pilot: Pilot[None], words: str) -> None:
    await eventually(pilot, lambda: any(words in it for it in told(pilot)))


async def test_a_key_proves_the_selected_what_if_and_its_gain_appears_in_the_row(
    faster: DataFolder, folder: Path
) -> None:
    async with analysis_screen(faster, WIDE) as pilot:
        await press(pilot, "2")
        await pilot.press("p")
        await shows(pilot, "loading the model twice")
        writes(folder, "first", ROUNDS)
        await shows(pilot, "7 rounds, +41.0 % (+38 to +44) so far, about 12 s left")
        assert "running" in screen_text(pilot)
        check_layout(pilot.app)
        writes(folder, "second", ProofDone("parallel-2", PROVED, ""))
        await settled(pilot)
        shown = screen_text(pilot)
        # The prediction and the proof are in one row.
        assert re.search(r"parallel-2 .*\+43 to \+44 +8\.646 +\+42\.0 %", shown)
        for words in ("15.60 ms before and 9.000 ms after the change", "The proof agrees with the prediction"):
            assert words in shown
        assert "Largest gain: parallel-2, +42.0 % (+40 to +44), proved" in shown
        assert "so far" not in shown and "running" not in shown


async def test_a_key_cancels_the_proof(faster: DataFolder, folder: Path) -> None:
    async with running(app_on(faster, TWO_THREADS), NARROW) as pilot:
        await press(pilot, *OPEN, "3")
        await pilot.press("p")
        writes(folder, "first", ProofWaits("run r1 of a colleague"))
        await shows(pilot, "waits for run r1 of a colleague")
        await pilot.press("p")
        await tells(pilot, "parallel-2 is being proved: c cancels it.")
        await press(pilot, "c")
        assert isinstance(pilot.app.screen, AnalysisScreen)
        assert ended(folder) and "The proof is cancelled; those before it are kept." in told(pilot)


async def test_a_proof_survives_its_screen_and_the_program_and_is_shown_again(faster: DataFolder, folder: Path) -> None:
    async with running(app_on(faster, TWO_THREADS), WIDE) as pilot:
        await press(pilot, *OPEN, "3")
        await pilot.press("p")
        await eventually(pilot, (folder / "pid").exists)
        await pilot.press("escape")
        await eventually(pilot, lambda: isinstance(pilot.app.screen, WorkbenchScreen))
        await tells(pilot, "The proof goes on in the background")
    assert not ended(folder)
    async with running(DlbricksApp(Session(faster, faster.path / "samples"), TWO_THREADS), WIDE) as pilot:
        await press(pilot, *OPEN[:-1])
        await pilot.press(OPEN[-1])
        writes(folder, "first", ROUNDS)
        await shows(pilot, "7 rounds, +41.0 % (+38 to +44) so far")
        writes(folder, "second", ProofDone("parallel-2", PROVED, ""))
        await settled(pilot)
        assert "Largest gain: parallel-2, +42.0 % (+40 to +44), proved" in screen_text(pilot)
        assert not list(faster.jobs.iterdir())


async def test_a_key_proves_all_what_ifs_without_a_proof(faster: DataFolder, folder: Path) -> None:
    async with analysis_screen(faster, WIDE) as pilot:
        await press(pilot, "2", "j")
        await pilot.press("P")
        writes(folder, "first", ProofDone("parallel-2", PROVED, ""))
        await shows(pilot, "loading the model twice, before and after the change 2 of 2")
        writes(folder, "second", ProofDone("threads-1", None, "the worker was lost"))
        await settled(pilot)
        assert "failed     the worker was lost" in screen_text(pilot)
        panel = pilot.app.screen.query_one(WhatIfsPanel)
        assert [it.proof for it in panel.found] == [PROVED, None]


async def test_a_process_that_fails_says_why(faster: DataFolder, folder: Path) -> None:
    (folder / "fails").write_text("the disk is full")
    for name in ("first", "second"):
        writes(folder, name)
    async with analysis_screen(faster, WIDE) as pilot:
        await press(pilot, "2", "p")
        assert "parallel-2 was not proved: the disk is full" in screen_text(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, AnalysisScreen)


async def test_nothing_is_read_while_a_proof_measures(faster: DataFolder, folder: Path) -> None:
    async with analysis_screen(faster, WIDE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, AnalysisScreen)
        await pilot.press("p")
        await eventually(pilot, (folder / "pid").exists)
        before = screen._document
        screen.post_message(NewResults())
        await pilot.press("r")
        await tells(pilot, "parallel-2 is being proved")
        assert screen._document is before and screen._is_outdated
        await press(pilot, "c")
        assert not screen._is_outdated and screen._document is not before


async def test_a_key_starts_all_runs_that_the_what_ifs_lack_and_each_waits_in_line(
    faster: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[RunRequest] = []
    followed: list[str] = []

    def start(_: Runs, request: RunRequest) -> str:
        started.append(request)
        return f"r{len(started)}"

    monkeypatch.setattr(Runs, "start", start)
    monkeypatch.setattr(lacking, "peaks_process", PeaksProcess)
    app = app_on(faster)
    monkeypatch.setattr(app._runs, "follow", followed.append)
    async with running(app, WIDE) as pilot:
        await press(pilot, *OPEN, "m")
        assert f"{MODEL} was not measured in " in screen_text(pilot) and "batch 8" in screen_text(pilot)
        assert not started
        await pilot.press("enter")
        await eventually(pilot, lambda: followed)
        assert followed == ["r1"]
        assert len({json.dumps(str(it)) for it in started}) == len(started) > 1
        screen = pilot.app.screen
        assert isinstance(screen, AnalysisScreen)
        screen._measures_peaks = False
        screen.show_run(replace(SnapshotBuilder("r1", (MODEL,)).snapshot(), state=State.RUNNING))
        await pilot.pause()
        assert "A run measures; its end brings the analysis up to date." in screen_text(pilot)


PEAKS = Peaks(
    when="2026-11-27T00:00:00+00:00",
    system="",
    threads=2,
    arithmetic=(("avx2", 1e5),),
    bandwidth=(("memory", 1e5),),
)


class PeaksProcess:
    """Stands for the process that measures peaks; it waits until the test lets it go on."""

    def __init__(self, threads: int, data: DataFolder, refusal: str = "") -> None:
        self.may_end = asyncio.Event()
        self.told: list[str] = []
        self._threads, self._data, self._refusal = threads, data, refusal

    async def follow(self, take: Callable[[str], None]) -> None:
        for ahead in self.told:
            take(ahead)
        await self.may_end.wait()
        if self._refusal:
            raise PeaksError(self._refusal)
        with ResultsDatabase(self._data.store) as store:
            store.add(replace(PEAKS, system=fingerprint().id, threads=self._threads))


async def test_a_key_measures_the_peaks_for_the_roofline(faster: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def process(threads: int, data: DataFolder) -> PeaksProcess:
        made = PeaksProcess(threads, data)
        made.may_end.set()
        return made

    monkeypatch.setattr(lacking, "lacks_of", lambda *_: ())
    monkeypatch.setattr(lacking, "peaks_process", process)
    async with analysis_screen(faster, WIDE) as pilot:
        await press(pilot, "x")
        assert told(pilot)[-1].endswith("m measures them.")
        assert "Missing: the peaks with 2 threads" in screen_text(pilot)
        await press(pilot, "m")
        shown = screen_text(pilot)
        assert "The peaks of this host are not known; that takes about 4 s." in shown
        assert "the peaks of this host with 2 threads" in shown and "run" not in shown.split("4 s.")[1].split("esc")[0]
        await press(pilot, "enter")
        assert "Missing:" not in screen_text(pilot)
        await press(pilot, "m")
        assert told(pilot)[-1] == "The what-ifs lack nothing that this host can measure."
        await press(pilot, "x")
        assert isinstance(pilot.app.screen, RooflineScreen)


async def test_the_head_tells_what_peaks_wait_for_while_runs_are_started(
    faster: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes, started = list[PeaksProcess](), list[RunRequest]()

    def process(threads: int, data: DataFolder) -> PeaksProcess:
        processes.append(PeaksProcess(threads, data, "the disk is full"))
        processes[-1].told.append("run r1 of alexnet by ada")
        return processes[-1]

    monkeypatch.setattr(lacking, "peaks_process", process)
    monkeypatch.setattr(Runs, "start", lambda _, request: started.append(request) or "r1")  # type: ignore[func-returns-value]
    app = app_on(faster)
    monkeypatch.setattr(app._runs, "follow", lambda _: None)
    async with running(app, WIDE) as pilot:
        await press(pilot, *OPEN, "m")
        assert re.search(r"roofline +the peaks of this host with \d+ thread", screen_text(pilot))
        await pilot.press("enter")
        await shows(pilot, "The peaks of this host wait for run r1 of alexnet by ada.")
        await eventually(pilot, lambda: started)
        await pilot.press("m")
        await tells(pilot, "The peaks are measured: what is missing can be measured once that has ended.")
        processes[0].may_end.set()
        await tells(pilot, "the disk is full")
