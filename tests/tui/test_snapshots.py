"""Snapshots of screens and boxes; those that need more preparation are compared by the tests of their screens."""

import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.analysis.proving import PROOF, ProofOrder, RoundsDone
from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.api import run_watch
from dlbricks_tui.api import store_contents as work
from dlbricks_tui.api.analysing import MeasuringPlan
from dlbricks_tui.api.fleets import FleetSettings
from dlbricks_tui.api.jobs import ToldJob
from dlbricks_tui.api.open_models import ModelSpec
from dlbricks_tui.api.session import Asked, WorkbenchSession
from dlbricks_tui.api.traces import TraceSettings
from dlbricks_tui.config.config import Config
from dlbricks_tui.estimate.score import PredictionBasis, Score
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.noise import Finding, NoiseVerdict
from dlbricks_tui.host.queue import Place
from dlbricks_tui.jobs.events import EventWriter, Waiting
from dlbricks_tui.jobs.folder import JobFolder, State
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.settings.setting import several, whole
from dlbricks_tui.share.exporting import OmittedBrick, SuiteWritten
from dlbricks_tui.tui.analysis import MeasureScreen
from dlbricks_tui.tui.dialogs.notices import DemonstrationScreen, WritingScreen
from dlbricks_tui.tui.fleet import CancelFleetScreen, HostsFileScreen, StartFleetScreen
from dlbricks_tui.tui.language import OpenLanguageModelScreen
from dlbricks_tui.tui.messages import Failed
from dlbricks_tui.tui.results import ResultsScreen
from dlbricks_tui.tui.run.boxes import CancelWorkScreen, JobScreen, QueueScreen
from dlbricks_tui.tui.scenario import CancelLoadScreen
from dlbricks_tui.tui.systems import SystemsScreen
from dlbricks_tui.tui.trace import CancelTraceScreen, StartTraceScreen, WriteTraceScreen
from dlbricks_tui.tui.workbench.boxes import ExportSuiteScreen, ScoresScreen, SuiteWrittenScreen
from dlbricks_tui.tui.workbench.model_columns import ModelColumnsScreen
from tests.runs.live_runs import in_the_middle, put_run
from tests.tui import results
from tests.tui.application import MEDIUM, NARROW, WRITTEN, AppWithoutWorkbench, app_on, running
from tests.tui.driving import find, press, settled, shows
from tests.tui.snapshots import Shown, check, check_all, check_each, check_layout, check_sixteen_colours, resize
from tests.tui.stored_results import HERE, THERE

FINDINGS = (
    Finding("frequency governor", "performance", NoiseVerdict.QUIET, "cores begin slowly", ""),
    Finding(
        "other load", "the processors are 90 % busy", NoiseVerdict.NOISY, "outliers", "end what computes (see `top`)"
    ),
    Finding("temperature", "unknown", NoiseVerdict.UNKNOWN, "hot cores slow down", "sudo apt install lm-sensors"),
)
SCORES = (
    Score("resnet50_v1", PredictionBasis.HISTORY, 31.0, 27.0, 36.0, 0.4, 30.0, 0.0),
    Score("mobilenet0.25", PredictionBasis.HISTORY, 2.0, 1.5, 2.6, 1.0, 2.9, 0.02),
    Score("squeezenet1.1", PredictionBasis.LEFT_OUT, 5.5, 4.9, 6.2, 0.9, 5.6, 0.0),
)
WAITING = Place(4711, "trace", "alexnet", "", "/their/data", "someone")
MEASURING = Place(4700, "run", "squeezenet1.1", "20261128-1", "/my/data", "me", measures=True, share=0.41)


def written() -> SuiteWritten:
    """Return an export of two models, of which one was left out, with a brick that cannot travel."""
    suite = "3f" * 16
    return SuiteWritten(
        suite=suite,
        path="/home/ann/suite.dlbricks",
        key=f"/home/ann/.local/share/dlbricks/suites/{suite}.key.json",
        bricks=28,
        decoy_bricks=67,
        decoys=3,
        untravelled=(OmittedBrick("If 1x64x56x56", "has a graph inside"),),
        left_out=("broken: its file is damaged",),
    )


def proofs() -> JobFolder:
    """Return a job in progress."""
    data = DataFolder(Path(tempfile.mkdtemp()))
    job = PROOF.create(data, ("squeezenet1.1",), ProofOrder(ModelSource("squeezenet1.1", Path("/s.onnx")), ()))
    job.set_state(replace(job.state(), state=State.RUNNING, started="2026-11-21T08:00:00+00:00"))
    with closing(EventWriter(job.events_file)) as writer:
        writer.tell(Waiting(holder="run 20261121-075000-aa of alexnet"))
        writer.tell(RoundsDone("threads-1", 7, Gain(0.41, 0.38, 0.44), 12.0))
    return job


BOXES: Shown = {
    "analysis-measure": (lambda: MeasureScreen(MeasuringPlan("squeezenet1.1", (), (), 20.0, 2)), ()),
    "demonstration": (lambda: DemonstrationScreen("measured on another host on 2026-11-27"), ()),
    "fleet-cancel": (lambda: CancelFleetScreen("20261127-163554-3059", ("squeezenet1.1", "alexnet")), ()),
    "fleet-hosts-file": (HostsFileScreen, ('"ho"',)),
    "fleet-start": (
        lambda: StartFleetScreen(("squeezenet1.1", "alexnet"), ("onnxruntime",), FleetSettings()),
        ("l", "j"),
    ),
    "job": (lambda: JobScreen(ToldJob(proofs()), DataFolder(Path())), ()),
    "model-columns": (lambda: ModelColumnsScreen(("estimate", "age")), ("j", "space")),
    "queue": (lambda: QueueScreen((MEASURING, WAITING), DataFolder(Path("/my/data"))), ()),
    "queue-cancel": (lambda: CancelWorkScreen(WAITING), ()),
    "scenario-cancel": (lambda: CancelLoadScreen(), ()),
    "scores": (lambda: ScoresScreen(lambda: SCORES), ()),
    "suite-export": (
        lambda: ExportSuiteScreen("Export the bricks of squeezenet1.1"),
        ('"/no/such/suite.dlbricks"', "enter"),
    ),
    "suite-written": (lambda: SuiteWrittenScreen(written()), ()),
    "trace-cancel": (lambda: CancelTraceScreen(), ()),
    "trace-start": (
        lambda: StartTraceScreen(
            "squeezenet1.1", TraceSettings(registered=("default", "default-openvino"), runtime="default", threads=1)
        ),
        (),
    ),
    "language-open": (lambda: OpenLanguageModelScreen(), ('"m"',)),
    "trace-write": (lambda: WriteTraceScreen("Write the trace of squeezenet1.1 to a file"), ('"tr"',)),
    "writing": (
        lambda: WritingScreen("Batch sizes", "", "Whole numbers", several(whole(1, 64)).read),
        ('"1,x"', "enter"),
    ),
}
# On the screen of results.
RESULTS: dict[str, tuple[str, ...]] = {
    "results": (*find("kind=convolution"), "space"),
    "results-columns": ("c",),
    "results-delete": (*find("2026-11-20"), "a", "d"),
    "results-hidden-marks": (*find("2026-11-20"), "a", *find("relu"), "d"),
    "results-refused": ("slash", '"colour=red"'),
    "results-compared": (*(*find(f"{HERE} 2026-11-21"), "C"), *(*find(THERE), "=")),
    "results-import": ("i", '"m"', "down"),
    "results-export": ("e", '"m"'),
}
ERRORS: dict[str, Exception] = {
    "error": ModelError("nets/broken-symbol.json: it says nothing of the shape of: data; " * 3 + "give it with n"),
    "fault": KeyError("data"),
}
OPENED = (*find("res"), "enter")


@pytest.fixture
def one_host(one_host: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "findings", lambda: FINDINGS)


@pytest.fixture
def same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show the times of Greenwich, and no load of this host."""
    monkeypatch.setattr(run_watch, "SECONDS_BETWEEN_LOADS", math.inf)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the process, with files that boxes suggest."""
    folder = tmp_path / "here"
    for name in ("more", "resnets"):
        (folder / name).mkdir(parents=True)
    for name in ("hosts.toml", "traces.pftrace", "mine.json", "resnext-symbol.json"):
        (folder / name).touch()
    monkeypatch.chdir(folder)
    return folder


async def test_boxes_match_their_snapshots(new: DataFolder, here: Path) -> None:
    async with AppWithoutWorkbench(WorkbenchSession(new), WRITTEN).run_test(size=MEDIUM) as pilot:
        await check_each(pilot, BOXES)


async def test_the_screens_of_results_and_of_systems_match_their_snapshots(
    stored: DataFolder, here: Path, one_host: None
) -> None:
    session = WorkbenchSession(stored)
    async with AppWithoutWorkbench(session, WRITTEN).run_test(size=MEDIUM) as pilot:
        await check_each(pilot, {name: (lambda: ResultsScreen(session), keys) for name, keys in RESULTS.items()})
        await check_each(pilot, {"systems": (lambda: SystemsScreen(session, None), ())})


async def test_the_machines_for_a_model_and_the_corpus_match_their_snapshots(new: DataFolder, one_host: None) -> None:
    results.store_run(new, ["squeezenet1.1"])
    new.path.joinpath("prices.toml").write_text(f'[dollars_per_hour]\n"{HERE}" = 0.17\n')
    async with running(app_on(new)) as pilot:
        await press(pilot, "U")
        await check_all(pilot, "corpus")
        await resize(pilot, MEDIUM)
        await press(pilot, "3", "l")
        check(pilot.app, "likeness")
        spec = ModelSpec(results.source_called("squeezenet1.1"), WRITTEN.level, WRITTEN.cutting)
        pilot.app.push_screen(SystemsScreen(pilot.app._session, lambda: Asked(spec, WRITTEN, Config())))  # type: ignore[attr-defined]
        await settled(pilot)
        await press(pilot, "3")
        check(pilot.app, "systems-machines")


async def test_the_grid_of_likeness_is_readable_without_colours(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", "U", "3", "l", "j", "j")
        check(pilot.app, "likeness-no-color")


async def test_the_welcome_box_matches_its_snapshot(new: DataFolder) -> None:
    async with running(app_on(new)) as pilot:
        await check_all(pilot, "welcome")


async def test_the_workbench_and_the_boxes_above_it_match_their_snapshots(measured: DataFolder, here: Path) -> None:
    # Screens show paths of the data folder, which have to be the same on every host.
    measured.path.rename(here / "measured")
    async with running(app_on(DataFolder(Path("measured")))) as pilot:
        check(pilot.app, "start")
        await press(pilot, "slash", '"nosuch"')
        check(pilot.app, "nothing-found")
        await press(pilot, "escape")
        for name, keys in (
            ("help", ("question_mark",)),
            ("commands", ("colon", '"cut"')),
            ("open", ("o", '"re"')),
            ("config", ("comma", "j", "j")),
        ):
            await press(pilot, *keys)
            await check_all(pilot, name)
            pilot.app.pop_screen()
            await resize(pilot, MEDIUM)
        for name, error in ERRORS.items():
            pilot.app.post_message(Failed(error))
            await settled(pilot)
            await check_all(pilot, name)
            pilot.app.pop_screen()
            await resize(pilot, MEDIUM)
        await press(pilot, *OPENED)
        await check_all(pilot, "model")
        await resize(pilot, MEDIUM)
        await press(pilot, "1", "i")
        await check_all(pilot, "shapes")
        pilot.app.pop_screen()
        await resize(pilot, MEDIUM)
        theme, pilot.app.theme = pilot.app.theme, "light"
        await press(pilot, "4")
        check(pilot.app, "light")
        pilot.app.theme = theme
        await press(pilot, "down", "down")
        check(pilot.app, "estimate")
        pilot.app.theme = "terminal"
        await resize(pilot, NARROW)
        for panel in "1234":
            await press(pilot, panel)
            check_layout(pilot.app)
            check_sixteen_colours(pilot.app)


async def test_the_screens_of_runs_match_their_snapshots(measured: DataFolder, same_everywhere: None) -> None:
    put_run(measured, in_the_middle(), State.CANCELLED, run="20261120-080000-0001", seconds=400)
    async with running(app_on(measured)) as pilot:
        # While a run measures nobody looks through the library: what is known of it is to be there before.
        put_run(measured, in_the_middle())
        await shows(pilot, "17 of 40 bricks, 1 of 2 models")
        check(pilot.app, "run-bar")
        await resize(pilot, NARROW)
        check_layout(pilot.app)
        await resize(pilot, MEDIUM)
        await press(pilot, "J")
        await check_all(pilot, "run-all")
        await resize(pilot, MEDIUM)
        pilot.app.pop_screen()
        await press(pilot, "w")
        await check_all(pilot, "run-screen")
        await resize(pilot, MEDIUM)
        await press(pilot, "x")
        await check_all(pilot, "run-cancel")
        pilot.app.pop_screen()
        await resize(pilot, MEDIUM)
        await press(pilot, "escape", *find("alexnet"), "enter", "m")
        await check_all(pilot, "run-start")
