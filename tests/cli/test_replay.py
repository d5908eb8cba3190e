import json
from pathlib import Path

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State
from tests.cli.people import Command, one_line
from tests.runs.live_runs import RUN, ended, in_the_middle, put_run

REPLAY = ("runs", "replay", "last")
FAST = (*REPLAY, "--speed", "100000")


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "data")


def test_a_replay_shows_the_progress_and_ends_with_the_estimates(data: DataFolder, dlbricks: Command) -> None:
    put_run(data, [*in_the_middle(), ended()], State.FINISHED)
    status, out, told = dlbricks(*FAST)
    assert status == 0
    assert "nothing is measured now" in told and f"run {RUN} was finished\n" in told
    assert "left out: broken" in told and "failed: Convolution 3x3" in told
    assert "resnet18_v1    part 12.50 ms" in out and "12.34 to 12.66 ms" in out
    # The run takes half a minute, the replay no time; a line comes after ten seconds of the run.
    assert sum(" of 40 bricks, " in line for line in told.splitlines()) >= 1
    status, out, _ = dlbricks(*FAST, "--json", "--quiet")
    found = json.loads(out)
    assert (found["run"], found["state"], found["runtime"]) == (RUN, "finished", "mxnet-1.9.1 python-3.11 threads-2")
    first = found["models"][0]
    assert (first["model"], first["sequential_ms"], first["measured_ms"]) == ("resnet18_v1", 12.5, 0.05)
    assert (first["measured_layers"], first["layers"]) == (40, 60)


def test_a_run_that_goes_on_is_replayed_up_to_now(data: DataFolder, dlbricks: Command) -> None:
    folder = put_run(data, in_the_middle(), State.RUNNING)
    before = folder.events_file.read_bytes(), folder.state()
    status, _, told = dlbricks(*FAST)
    assert status == 0 and "was running, and may go on" in told
    assert (folder.events_file.read_bytes(), folder.state()) == before
    for speed in ("0", "-3", "nan", "inf", "fast"):
        one_line(dlbricks(*REPLAY, f"--speed={speed}"))


def test_an_interrupt_ends_the_replay(data: DataFolder, dlbricks: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    put_run(data, [*in_the_middle(), ended()], State.FINISHED)

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    status, _, told = dlbricks(*REPLAY, "--speed", "1")
    assert status == 130 and told.endswith("dlbricks: interrupted\n")
