import json
import shlex
import sys
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.runtime.traits import TRAITS
from tests.runs.runs import FAKE_WORKER

Command = Callable[..., tuple[int, str, str]]
# The runtimes of this interpreter.
OWN = ["default", "default-onnx", *["default-openvino"] * (find_spec("openvino") is not None)]


@pytest.fixture
def dlbricks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `dlbricks runtimes ...`, and return its exit status, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["--data-dir", str(tmp_path / "data"), "runtimes", *arguments])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def interpreter(tmp_path: Path) -> Path:
    """An interpreter that always starts the fake worker."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nshift\nexec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE_WORKER))} "$@"\n')
    path.chmod(0o755)
    return path


def test_a_runtime_is_added_listed_checked_and_removed(dlbricks: Command, interpreter: Path) -> None:
    status, out, told = dlbricks(
        "add", str(interpreter), "--name", "old", "--threads", "2", "--env", "OMP_X=1", "--json"
    )
    assert status == 0
    assert "--runtime old" in told
    (added,) = json.loads(out)
    assert (added["name"], added["framework"], added["version"], added["threads"]) == ("old", "mxnet", "1.9.1", 2)
    assert added["environment"] == {"OMP_X": "1"}
    listed = json.loads(dlbricks("list", "--json")[1])
    assert [it["name"] for it in listed] == [*OWN, "old"]
    assert json.loads(dlbricks("check", "old", "--json")[1]) == [added]
    assert dlbricks("remove", "old")[0] == 0
    assert [it["name"] for it in json.loads(dlbricks("--json")[1])] == OWN


def test_a_runtime_may_run_several_operators_at_once(dlbricks: Command) -> None:
    added = ("add", sys.executable, "--framework", "onnxruntime", "--name", "abreast", "--at-once", "2", "--json")
    status, out, _ = dlbricks(*added, "--env", "ORT_X=1")
    assert status == 0
    assert json.loads(out)[0]["environment"] == {"ORT_X": "1", "ORT_INTER_OP_THREADS": "2"}


def test_the_runtimes_are_listed_in_a_table(dlbricks: Command, interpreter: Path) -> None:
    dlbricks("add", str(interpreter), "--name", "old")
    out = dlbricks()[1]
    assert "mxnet 1.9.1" in out
    assert str(interpreter) in out


def test_a_runtime_that_stopped_working_is_named(dlbricks: Command, interpreter: Path) -> None:
    dlbricks("add", str(interpreter), "--name", "old")
    interpreter.write_text("#!/bin/sh\nexit 3\n")
    status, _, told = dlbricks("check", "old")
    assert status == 1
    assert "old does not work" in told


def test_a_registered_runtime_answers_when_ours_has_no_framework(
    dlbricks: Command,
    interpreter: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", gone)
    dlbricks("add", str(interpreter), "--name", "old")
    assert main(["--data-dir", str(tmp_path / "data"), "tree", "resnet18_v1", "--level", "fused"]) == 2
    assert "a fake fuses nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["add", "/no/such/python"], "/no/such/python"),
        (["add", sys.executable, "--env", "NAME"], "NAME=VALUE"),
        (["add", sys.executable, "--threads", "0"], "--threads"),
        (["add", sys.executable, "--threads", "100000"], "--threads"),
        (["add", sys.executable, "--at-once", "0"], "--at-once"),
        (["check", "nobody"], "nobody"),
        (["remove", "default"], "cannot be removed"),
    ],
)
def test_impossible_options_are_refused(dlbricks: Command, arguments: list[str], complaint: str) -> None:
    status, out, told = dlbricks(*arguments)
    assert (status, out) == (2, "")
    assert complaint in told


@pytest.mark.parametrize("framework", TRAITS)
def test_an_interpreter_can_be_added_for_each_framework(dlbricks: Command, framework: str) -> None:
    status, _, told = dlbricks("add", "/nowhere/python", "--framework", framework)
    assert (status, told.count("\n")) == (2, 1)
    assert "/nowhere/python is not a program" in told


def test_a_list_says_in_one_line_that_scenarios_need_loadgen(
    dlbricks: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    status, _, told = dlbricks("list")
    assert (status, told.count("\n")) == (0, 1)
    assert "pip install 'dlbricks-tui[scenarios]'" in told
