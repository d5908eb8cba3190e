"""`dlbricks run`, `dlbricks runs` and `dlbricks probe`, with an interpreter that always starts the fake worker."""

import io
import json
import os
import re
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from dlbricks_tui.api.demonstration import open_demonstration
from dlbricks_tui.api.measuring import FollowedRun
from dlbricks_tui.cli.progress import ShownProgress
from dlbricks_tui.cli.run import conclude, tell_end
from dlbricks_tui.host.queue import host_queue, this_process
from dlbricks_tui.jobs.events import Waiting
from dlbricks_tui.jobs.folder import JobState, State, Tally
from dlbricks_tui.measure.events import BatchStarted, DriftNoted, RoundRepeated
from dlbricks_tui.measure.method import Method
from dlbricks_tui.runs.control import Control, create_run
from dlbricks_tui.runs.events import LevelLowered, ModelLoading
from dlbricks_tui.runs.run import execute
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement, new_uuid
from tests.cli.people import Command, document, one_line, schema_kept
from tests.host.lines import turn_of
from tests.runs.live_runs import at, ended, estimate, failed, loaded, planned, round_done, started
from tests.runs.live_runs import measured as done
from tests.runs.runs import BRICKS, MODEL, Site, move_results

pytestmark = pytest.mark.usefixtures("data_with_fake", "shared_cache")

# A run on a busy host waits for calm, a minute at a time.
PATIENCE_SECONDS = 240.0
WHEN = "2026-11-27T00:00:00+00:00"
USUAL = (MODEL, "--runtime", "fake", "--level", "written")
TALLY = {"total": BRICKS, "run": BRICKS, "reused": 0, "failed": 0}


def measured(dlbricks: Command, *arguments: str) -> tuple[int, Any, str]:
    """A run of the usual model by the fake, as a document."""
    status, out, told = dlbricks("run", *USUAL, "--json", *arguments)
    return status, json.loads(out), told


def test_a_run_prints_the_estimates_in_json_or_as_text_and_narrates_its_progress(dlbricks: Command) -> None:
    status, found, told = measured(dlbricks, "--end-to-end")
    schema_kept(found, "run")
    assert (status, found["state"], found["bricks"]) == (0, "finished", TALLY)
    assert found["end_to_end"] == {"total": 1, "run": 1, "reused": 0, "failed": 0}
    assert found["seconds"] > 0
    (model,) = found["models"]
    assert (model["model"], model["level"], model["granularity"]) == (MODEL, "written", 1)
    assert model["error"] == pytest.approx(model["sequential_ms"] / model["measured_ms"] - 1)
    assert f"{BRICKS} bricks: 0 known, {BRICKS} to measure" in told and "\x1b" not in told
    assert f"run {found['run']} finished" in told
    status, again, _ = measured(dlbricks, "--end-to-end")
    assert (status, again["bricks"]) == (0, {"total": BRICKS, "run": 0, "reused": BRICKS, "failed": 0})
    assert again["models"] == found["models"]
    schema_kept(again["models"], "estimate")
    schema_kept(document(dlbricks("runs", "--json")), "runs")
    status, out, told = dlbricks("run", *USUAL, "--end-to-end")
    assert status == 0 and "sequential" in out and "end to end" in out
    assert f"{BRICKS} known" in told and f"{BRICKS} known" not in out


def test_a_run_of_whole_models_says_how_many_it_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(tmp_path / "site")
    request = site.request(method=Method.INSIDE, end_to_end=True, bricks=False)
    outcome = execute(create_run(request, site.data), request, site.place, site.queue)
    assert outcome.estimates is not None
    (model,) = outcome.estimates
    # As if nothing predicted its layers.
    one = model.estimate
    without = model._replace(estimate=replace(one, estimate=replace(one.estimate, composed=None)))
    assert conclude(replace(outcome, estimates=(without,)), FollowedRun(), as_json=False) == 0
    shown = capsys.readouterr()
    assert shown.out.endswith(" ms end to end; no layer was measured\n")
    assert "1 model timed end to end" in shown.err


def test_a_run_with_a_target_says_how_many_bricks_it_did_not_need_and_predicts_them_unless_the_settings_say_no(
    dlbricks: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, found, told = measured(dlbricks, "--target", "60%")
    (model,) = found["models"]
    count = found["bricks"]["run"]
    assert status == 0 and 0 < count < BRICKS
    assert f"{count} bricks measured, 0 known before, 0 failed, {BRICKS - count} not needed" in told
    assert model["coverage"]["predicted"] > 0
    # The same once more has nothing to do, and that is no failure.
    status, _, told = measured(dlbricks, "--target", "60%")
    assert (status, "nothing was measured" in told) == (0, False) and f"{BRICKS - count} not needed" in told
    monkeypatch.setenv("DLBRICKS_ESTIMATE_PREDICTIONS", "off")
    for found in (measured(dlbricks, "--target", "60%")[1], document(dlbricks("runs", "watch", "last", "--json"))):
        assert found["models"][0]["coverage"]["predicted"] == 0


def test_a_run_that_misses_its_target_says_so(dlbricks: Command) -> None:
    assert "was not reached" not in measured(dlbricks, "--target", "60%")[2]
    status, _, told = measured(dlbricks, "--target", "0.1%")
    assert status == 0
    assert re.search(rf"{MODEL}: the target of 0.1 % was not reached, the interval is \+-\d+\.\d %", told)


def test_a_run_without_time_for_its_target_says_of_no_brick_that_it_was_not_needed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    spent = "its time budget of 5 s is spent"
    state = JobState("1", State.FINISHED, this_process(), (), WHEN, WHEN, bricks=Tally(9, measured=2), message=spent)
    asked = SimpleNamespace(bricks=True, target=0.05)
    assert tell_end(cast("Any", SimpleNamespace(request=asked, state=state, estimates=())), FollowedRun()) == 0
    told = capsys.readouterr().err
    assert "2 bricks measured" in told and spent in told and "not needed" not in told


def test_a_run_waits_in_line_says_for_what_and_keeps_its_budget(
    dlbricks: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = turn_of(host_queue(), "20261121-1", tmp_path)
    monkeypatch.setattr("dlbricks_tui.runs.control.Control._nap", lambda _: other.leave())
    _, found, told = measured(dlbricks, "--time-budget", "100")
    assert (found["state"], found["bricks"]) == ("finished", TALLY)
    assert "waiting for run 20261121-1 of alexnet by " in told
    assert "place 1 in the line" in told


def test_what_cannot_be_measured_is_refused_before_it_waits(dlbricks: Command, tmp_path: Path) -> None:
    other = turn_of(host_queue(), "other", tmp_path)
    by_the_fake = ("run", MODEL, "--level", "written", "--runtime", "fake")
    for options in (("--input", "foo=1,2"), ("--precision", "int8")):
        status, _, told = dlbricks(*by_the_fake, *options)
        assert (status, options[1][:3] in told) == (2, True)
        assert "waiting" not in told
    other.leave()


def test_a_failed_program_is_named_sets_the_status_and_is_tried_again_on_request(
    dlbricks: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MANNERS", '{"Flatten": "crash on load"}')
    status, found, told = measured(dlbricks, "--quiet", "--no-end-to-end")
    (line,) = told.splitlines()
    assert status == 1 and line.startswith("failed: flatten") and "crashed" in line
    assert found["bricks"] == {"total": BRICKS, "run": BRICKS - 1, "reused": 0, "failed": 1}
    assert found["models"][0]["coverage"]["unmeasurable"] == 1
    status, _, told = dlbricks("runs", "watch", "last", "--quiet")
    assert (status, told.splitlines()) == (1, [line])
    monkeypatch.setenv("FAKE_MANNERS", "{}")
    status, found, told = measured(dlbricks, "--no-end-to-end")
    assert (status, found["bricks"]["failed"]) == (1, 1)
    assert "--retry-failed" in told
    status, _, told = measured(dlbricks, "--no-end-to-end", "--retry-failed", "--quiet")
    assert (status, told) == (0, "")


def test_a_model_that_cannot_be_fused_is_measured_as_written_and_one_that_cannot_be_read_is_left_out(
    dlbricks: Command, tmp_path: Path
) -> None:
    broken = tmp_path / "broken-symbol.json"
    broken.write_text("{}")
    how = ("--runtime", "fake", "--fixed-runs", "1")
    status, out, told = dlbricks("run", broken, MODEL, *how, "--json")
    (model,) = json.loads(out)["models"]
    assert (status, model["model"], model["level"]) == (1, MODEL, "written")
    assert "left out: broken" in told
    assert f"cannot fuse {MODEL} (" in told
    # The runtime that the command names decides how the model is fused.
    status, out, told = dlbricks("estimate", MODEL, "--runtime", "fake", "--level", "fused", "--json")
    (model,) = json.loads(out)
    assert (status, model["level"], model["complete"]) == (0, "written", True)
    assert f"estimated as written: {MODEL} cannot be fused" in told


def test_impossible_options_are_refused_before_a_run_begins(dlbricks: Command) -> None:
    refused: dict[tuple[str, ...], str] = {
        ("--runtime", "no-such-runtime"): "no runtime is called no-such-runtime",
        ("--target-ci", "0.01", "--fixed-runs", "3"): "not allowed with",
        ("--again", "--target", "5%"): "leave one of them out",
        ("--fixed-runs", "10001", "--runtime", "no-such-runtime"): "give a whole number from 1 to 10,000",
        ("--precision", "bf16", "--runtime", "fake"): "computes in f32 and not in bf16",
        ("--optimisation", "basic", "--runtime", "fake"): "MXNet (fake) has no choice of optimisation levels",
        ("--runtime", "fake,"): "give the name of a runtime that `dlbricks runtimes` lists, or several with commas",
    }
    for options, complaint in refused.items():
        told = one_line(dlbricks("run", MODEL, *options))
        assert told.startswith("dlbricks: error: ") and complaint in told
    assert "no model" in one_line(dlbricks("run", "no-such-model"))
    assert dlbricks("runs", "list", "--json")[1] == "[]\n"


def test_a_run_without_results_is_reported_as_a_failure(dlbricks: Command) -> None:
    status, found, told = measured(dlbricks, "--time-budget", "0.001")
    assert status == 1
    assert (found["bricks"]["run"], found["unfinished"]) == (0, 0)
    assert "nothing was measured: its time budget of 0.001 s is spent" in told
    run = found["run"]
    assert f"`dlbricks runs resume {run} --time-budget S` gives it another" in told
    assert dlbricks("runs", "watch", run)[0] == 1
    assert dlbricks("runs", "resume", run)[0] == 1, "it has the same budget again"
    status, out, told = dlbricks("runs", "resume", run, "--time-budget", "inf", "--json")
    assert (status, json.loads(out)["bricks"]["run"]) == (0, BRICKS)
    assert "time budget" not in told
    status, _, told = measured(dlbricks, "--time-budget", "1000")
    assert (status, "nothing was measured" in told) == (0, False), "everything is known"


def test_threads_make_another_runtime_and_more_than_there_are_cores_cause_a_warning(dlbricks: Command) -> None:
    _, found, told = measured(dlbricks, "--fixed-runs", "1")
    assert "threads on " not in told
    _, other, told = measured(dlbricks, "--fixed-runs", "1", "--threads", "1000")
    assert other["bricks"]["run"] == BRICKS
    assert found["models"][0]["runtime"] != other["models"][0]["runtime"]
    assert "1000 threads on " in told


def test_several_threads_are_measured_in_one_run_and_shown_and_estimated_in_one_table(dlbricks: Command) -> None:
    several = ("--threads", "1,2", "--fixed-runs", "5")
    status, found, _ = measured(dlbricks, *several)
    assert (status, found["bricks"]["run"]) == (0, 2 * BRICKS)
    assert [(it["model"], it["threads"], it["batch"]) for it in found["models"]] == [(MODEL, 1, 1), (MODEL, 2, 1)]
    status, out, _ = dlbricks("run", *USUAL, *several)
    assert (status, out.splitlines()[2].split()[:3]) == (0, ["THREADS", "BATCH", "ESTIMATE"])
    assert "ms by threads" in out and "Per second by threads" in out
    assert [it["threads"] for it in document(dlbricks("runs", "watch", "last", "--json"))["models"]] == [1, 2]
    # An estimate names the run that is missing.
    plain = ("estimate", MODEL, "--runtime", "fake", "--level", "written")
    asked = (*plain, "--measured-only")
    command = f"dlbricks run {MODEL} --level written --runtime fake --threads 3"
    status, out, _ = dlbricks(*asked, "--threads", "1,3", "--bound-ms", "1e6")
    assert status == 1 and f"not measured: {command}" in out
    assert "best under 1e+06 ms: 1 thread" in out
    found = document(dlbricks(*asked, "--threads", "1,3", "--json"), 1)
    assert [(it["threads"], it["per_second"] is None) for it in found] == [(1, False), (3, True)]
    # Results of other threads do not stand in for threads that are asked for.
    status, out, told = dlbricks(*asked, "--threads", "3")
    assert (status, out) == (1, "") and f"`{command}`" in told
    # A prediction does, and is marked.
    status, out, told = dlbricks(*plain, "--threads", "1,3")
    assert status == 0 and f"`{command}`" in told
    one, three = (line for line in out.splitlines() if line.split()[:2] in (["1", "1"], ["3", "1"]))
    assert "~" not in one and "~" in three


def test_a_detached_run_is_paused_resumed_cancelled_listed_and_watched_by_its_id(
    dlbricks: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = tmp_path / "slow"
    slow.touch()
    monkeypatch.setenv("FAKE_NAP", "0.1")
    monkeypatch.setenv("FAKE_SLOW", str(slow))
    for action in ("watch", "pause", "cancel", "resume"):
        assert "no run is called '2019'" in one_line(dlbricks("runs", action, "2019"))
    run = document(dlbricks("run", *USUAL, "--detach", "--json"))["run"]

    def becomes(wanted: str) -> None:
        give_up = time.monotonic() + PATIENCE_SECONDS
        while (state := document(dlbricks("runs", "--json"))[0]["state"]) != wanted:
            assert time.monotonic() < give_up, f"it is {state}"
            time.sleep(0.01)

    becomes("running")
    assert dlbricks("runs", "pause", "last")[0] == 0
    becomes("paused")
    assert dlbricks("runs", "resume", run[:-1])[0] == 0
    becomes("running")
    assert "running already" in one_line(dlbricks("runs", "resume", run))
    assert dlbricks("runs", "cancel", run)[0] == 0
    becomes("cancelled")
    slow.unlink()
    bricks = document(dlbricks("runs", "resume", run, "--json"))["bricks"]
    assert bricks["run"] + bricks["reused"] == BRICKS
    (listed,) = json.loads(dlbricks("runs", "list", "--json")[1])
    assert (listed["run"], listed["state"], listed["bricks"], listed["models"]) == (run, "finished", bricks, [MODEL])
    assert "is finished, and nothing of it is missing" in one_line(dlbricks("runs", "resume", run))
    assert document(dlbricks("runs", "list", "--json")) == [listed], "its tally stays"
    status, out, told = dlbricks("runs", "watch", run, "--json")
    assert (status, json.loads(out)["bricks"]) == (0, bricks)
    assert f"run {run} finished" in told
    assert "nothing to pause" in one_line(dlbricks("runs", "pause", run))


def test_a_keyboard_interrupt_prints_how_to_resume(dlbricks: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(control: Control) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        checkpoint(control)

    checkpoint = Control.checkpoint
    monkeypatch.setattr(Control, "checkpoint", interrupted)
    status, _, told = dlbricks("run", *USUAL)
    assert status == 130
    assert "dlbricks runs resume" in told and "Traceback" not in told


@pytest.mark.parametrize(("end_to_end", "advised"), [(True, 0), (False, 1)])
def test_a_run_advises_nothing_that_it_has_just_tried(
    end_to_end: bool, advised: int, capsys: pytest.CaptureFixture[str]
) -> None:
    estimate = SimpleNamespace(model="nope", obstacle="1 of 2 layers cannot be measured by themselves")
    outcome: Any = SimpleNamespace(
        request=SimpleNamespace(end_to_end=end_to_end),
        state=JobState("1", State.FINISHED, this_process(), (), WHEN, WHEN),
        estimates=[(None, SimpleNamespace(estimate=estimate, end_to_end=None))],
    )
    assert tell_end(outcome, FollowedRun(quiet=True)) == 1
    told = capsys.readouterr().err
    assert (told.count("run it with --end-to-end"), told.count("use --end-to-end")) == (advised, advised)
    assert "no estimate of nope is possible: 1 of 2 layers" in told


BEGINNING = [
    started(),
    ModelLoading(when=at(1), model="squeezenet1.1", number=1, of=1),
    LevelLowered(when=at(1), model="squeezenet1.1", reason="its branches disagree"),
    planned(1),
    BatchStarted(when=at(2), number=1, of=1, programs=2),
    loaded(1),
    round_done([1], 0),
    estimate("squeezenet1.1", 0.04, missing=1),
]


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_a_terminal_progress_is_an_occasional_line_and_one_per_important_event(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    shown = ShownProgress(FollowedRun(), None, clock)
    for event in BEGINNING:
        shown.take(event)
    assert capsys.readouterr().err.splitlines() == [
        "run 20261121-080000-ab12 of 2 models, process 4711",
        "cannot fuse squeezenet1.1 (its branches disagree); its layers are measured as written in the file",
        "40 bricks: 8 known, 32 to measure; 2 of 2 models to time end to end; about 60 s",
        "8 of 40 bricks, 0 of 2 models, 59 s left",
    ]
    clock.now = 11.0
    shown.take(failed(1, seconds=24))
    assert capsys.readouterr().err.splitlines() == [
        "failed: Convolution 3x3 1x8x56x56 (b001): crashed: the worker died (SIGSEGV)",
        "9 of 40 bricks, 0 of 2 models, 1 failed, 20 s left; "
        "squeezenet1.1 12.50 ms (12.00 to 13.00, without 1 of its layers)",
    ]


def test_a_quiet_display_shows_failures_only(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ShownProgress(FollowedRun(quiet=True), None)
    repeated = RoundRepeated(when=at(5), reason="others took the processor", seconds=0.5, seconds_left=9.0)
    drift = DriftNoted(when=at(6), reference_ms=1.08, usual_ms=1.0)
    for event in [*BEGINNING, Waiting(holder="run x of ada"), repeated, drift, failed(1), ended()]:
        shown.take(event)
    assert capsys.readouterr().err.splitlines() == [
        "cannot fuse squeezenet1.1 (its branches disagree); its layers are measured as written in the file",
        "failed: Convolution 3x3 1x8x56x56 (b001): crashed: the worker died (SIGSEGV)",
    ]


def test_on_a_terminal_a_progress_display_is_drawn_and_erased() -> None:
    screen = io.StringIO()
    clock = Clock()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)
    shown = ShownProgress(FollowedRun(), console, clock)
    for event in BEGINNING:
        clock.now += 1.0
        shown.take(event)
    picture = screen.getvalue()
    assert "running" in picture
    assert "8 of 40 bricks, 0 of 2 models, 40 s left; Convolution 3x3 1x8x56x56, 1 sample so far" in picture
    assert "12.50 ms" in picture
    shown.take(done(1))
    shown.close()
    # The last code wipes the picture.
    assert screen.getvalue().endswith("\x1b[2K")


ELSEWHERE = ("c5.xlarge", "c5.2xlarge")
HOW = ("--runtime", "fake")
MEASURING = ("--level", "written", "--method", "alone", "--fixed-runs", "5")
# The store that the first test has made: a run serves all.
MEASURED: list[Path] = []


@pytest.fixture
def known(dlbricks: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the results of two other systems, and none of this host."""
    folder = tmp_path / "data" / "store"
    if not MEASURED:
        assert dlbricks("run", MODEL, *HOW, *MEASURING)[0] == 0
        # This host is no other system.
        assert NO_OTHERS in one_line(dlbricks("probe", MODEL, *HOW))
        move_results(folder, *ELSEWHERE)
        MEASURED.append(tmp_path_factory.mktemp("measured") / "store")
        shutil.copytree(folder, MEASURED[0])
    shutil.copytree(MEASURED[0], folder, dirs_exist_ok=True)
    return folder


NO_OTHERS = "the store has no results of another system to compare this one with"


def test_a_probe_estimates_all_models_of_the_store_from_few_ordinary_results(dlbricks: Command, known: Path) -> None:
    status, out, told = dlbricks("probe", *HOW, "--bricks", "6", "--json")
    found = json.loads(out)
    assert (status, found["bricks"], sorted(found["known_systems"])) == (0, 6, sorted(ELSEWHERE))
    assert found["system"] not in ELSEWHERE
    (model,) = found["models"]
    assert (model["model"], model["level"], model["system"]) == (MODEL, "written", found["system"])
    assert model["coverage"]["predicted"] + model["coverage"]["measured"] == 21
    low_ms, high_ms = model["interval_ms"]
    assert 0 < low_ms < model["sequential_ms"] < high_ms
    assert "compared with" in told and "6 bricks measured" in told
    (again,) = document(dlbricks("estimate", MODEL, *HOW, "--json"))
    assert again["sequential_ms"] == model["sequential_ms"]
    compared = {it["system"]: it for it in document(dlbricks("systems", "compare", MODEL, "--json"))}
    (probed,) = [it for name, it in compared.items() if name not in ELSEWHERE]
    assert len(compared) == 3 and not probed["complete"] and 0 < probed["predicted_share"] < 1


def test_a_probe_of_a_model_with_an_input_shape_is_a_table_that_marks_predictions(
    dlbricks: Command, known: Path
) -> None:
    # The fake worker cannot infer the shapes of other batch sizes.
    assert f"{MODEL} (batch 8)" in dlbricks("probe", MODEL, *HOW, "--batch", "8")[2]
    status, out, told = dlbricks("probe", MODEL, *HOW, "--input", "data=1,3,224,224", "--bricks", "6")
    row = next(row for row in out.splitlines() if row.startswith(MODEL))
    assert status == 0 and "~" in row and " to " in row and "%" in row
    assert "6 bricks measured" in told


def test_an_empty_store_and_numbers_that_make_no_sense_are_refused_in_one_line(dlbricks: Command) -> None:
    for arguments in ((), (MODEL,)):
        line = one_line(dlbricks("probe", *arguments, *HOW))
        assert NO_OTHERS in line
        assert "dlbricks results export" in line
        assert "dlbricks results import FILE" in line


def test_a_number_of_bricks_is_refused_where_a_probe_measures_inside_of_networks(dlbricks: Command) -> None:
    with open_demonstration() as found:
        line = one_line(dlbricks("probe", "squeezenet1.1", "--bricks", "6", folder=found.data.path))
    assert "a number of bricks is for method alone" in line


def test_other_systems_with_another_runtime_are_named(dlbricks: Command, known: Path) -> None:
    line = one_line(dlbricks("probe", MODEL, *HOW, "--threads", "7"))
    assert "threads-7; there are results by mxnet-1.9.1" in line
    assert "(level written, method alone): choose one of these runtimes with its threads" in line
    told = dlbricks("probe", MODEL, *HOW, "--level", "fused", "--method", "alone")[2]
    assert ", level fused, method alone; there are results by" in told


def test_results_of_other_versions_are_no_basis_of_a_probe(dlbricks: Command, known: Path) -> None:
    with ResultsDatabase(known) as store:
        found = store.records(Measurement)
        store.delete(it.uuid for it in found)
        store.add(*[replace(it, protocol="hot-1", uuid=new_uuid()) for it in found])
    line = one_line(dlbricks("probe", MODEL, *HOW))
    assert "by methods of other versions of dlbricks" in line
    assert "measure there with this version" in line
