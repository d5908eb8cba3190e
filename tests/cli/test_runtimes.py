import json
import shlex
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.runtime.traits import TRAITS
from tests.cli.people import Command, one_line
from tests.runs.runs import FAKE_WORKER

# The runtimes of this interpreter.
OWN = ["default", "default-onnx", *["default-openvino"] * (find_spec("openvino") is not None)]


@pytest.fixture
def runtimes(dlbricks: Command) -> Command:
    """Run `dlbricks runtimes ...`."""
    return lambda *arguments: dlbricks("runtimes", *arguments)


@pytest.fixture
def interpreter(tmp_path: Path) -> Path:
    """An interpreter that always starts the fake worker."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nshift\nexec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE_WORKER))} "$@"\n')
    path.chmod(0o755)
    return path


def test_a_runtime_is_added_listed_checked_and_removed(runtimes: Command, interpreter: Path) -> None:
    status, out, told = runtimes(
        "add", str(interpreter), "--name", "old", "--threads", "2", "--env", "OMP_X=1", "--json"
    )
    assert status == 0
    assert "--runtime old" in told
    (added,) = json.loads(out)
    assert (added["name"], added["framework"], added["version"], added["threads"]) == ("old", "mxnet", "1.9.1", 2)
    assert added["environment"] == {"OMP_X": "1"}
    listed = json.loads(runtimes("list", "--json")[1])
    assert [it["name"] for it in listed] == [*OWN, "old"]
    assert json.loads(runtimes("check", "old", "--json")[1]) == [added]
    out = runtimes()[1]
    assert "mxnet 1.9.1" in out and str(interpreter) in out
    interpreter.write_text("#!/bin/sh\nexit 3\n")
    status, _, told = runtimes("check", "old")
    assert status == 1 and "old does not work" in told
    assert runtimes("remove", "old")[0] == 0
    assert [it["name"] for it in json.loads(runtimes("--json")[1])] == OWN


def test_a_runtime_may_run_several_operators_at_once(runtimes: Command) -> None:
    added = ("add", sys.executable, "--framework", "onnxruntime", "--name", "abreast", "--at-once", "2", "--json")
    status, out, _ = runtimes(*added, "--env", "ORT_X=1")
    assert status == 0
    assert json.loads(out)[0]["environment"] == {"ORT_X": "1", "ORT_INTER_OP_THREADS": "2"}


def test_a_registered_runtime_answers_when_ours_has_no_framework(
    runtimes: Command,
    interpreter: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", gone)
    runtimes("add", str(interpreter), "--name", "old")
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
def test_impossible_options_are_refused(runtimes: Command, arguments: list[str], complaint: str) -> None:
    assert complaint in one_line(runtimes(*arguments))


def test_an_interpreter_can_be_added_for_each_framework(runtimes: Command) -> None:
    for framework in TRAITS:
        told = one_line(runtimes("add", "/nowhere/python", "--framework", framework))
        assert "/nowhere/python is not a program" in told


def test_a_list_says_in_one_line_that_scenarios_need_loadgen(
    runtimes: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    status, _, told = runtimes("list")
    assert (status, told.count("\n")) == (0, 1)
    assert "pip install 'dlbricks-tui[scenarios]'" in told
