import json
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runs.run_folder import State
from tests.runs.live_runs import RUN, ended, in_the_middle, put_run

FAST = ("--speed", "100000")


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "data")


def replay(data: DataFolder, *options: str) -> int:
    return main(["--data-dir", str(data.path), "runs", "replay", "last", *options])


def test_a_replay_shows_the_progress_and_ends_with_the_estimates(
    data: DataFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    put_run(data, [*in_the_middle(), ended()], State.FINISHED)
    assert replay(data, *FAST) == 0
    shown = capsys.readouterr()
    assert "nothing is measured now" in shown.err and f"run {RUN} was finished\n" in shown.err
    assert "left out: broken" in shown.err and "failed: Convolution 3x3" in shown.err
    assert "resnet18_v1    part: 12.50 ms" in shown.out and "12.34 to 12.66 ms" in shown.out


def test_lines_come_after_ten_seconds_of_the_run(data: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    put_run(data, [*in_the_middle(), ended()], State.FINISHED)
    assert replay(data, *FAST) == 0
    # The run takes half a minute, the replay no time.
    assert sum(" of 40 bricks, " in line for line in capsys.readouterr().err.splitlines()) >= 1


def test_the_document_has_what_the_events_tell(data: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    put_run(data, [*in_the_middle(), ended()], State.FINISHED)
    assert replay(data, "--json", "--quiet", *FAST) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["run"], found["state"], found["runtime"]) == (RUN, "finished", "mxnet-1.9.1 python-3.11 threads-2")
    first = found["models"][0]
    assert (first["model"], first["sequential_ms"], first["measured_ms"]) == ("resnet18_v1", 12.5, 0.05)
    assert (first["measured_layers"], first["layers"]) == (40, 60)


def test_a_run_that_goes_on_is_replayed_up_to_now(data: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put_run(data, in_the_middle(), State.RUNNING)
    before = folder.events_file.read_bytes(), folder.state()
    assert replay(data, *FAST) == 0
    assert "was running, and may go on" in capsys.readouterr().err
    assert (folder.events_file.read_bytes(), folder.state()) == before


@pytest.mark.parametrize("speed", ["0", "-3", "nan", "inf", "fast"])
def test_a_wrong_speed_is_one_line(speed: str, data: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    put_run(data, in_the_middle(), State.RUNNING)
    assert replay(data, f"--speed={speed}") == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1


def test_an_interrupt_ends_the_replay(
    data: DataFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_run(data, [*in_the_middle(), ended()], State.FINISHED)

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    assert replay(data, "--speed", "1") == 130
    assert capsys.readouterr().err.endswith("dlbricks: interrupted\n")
