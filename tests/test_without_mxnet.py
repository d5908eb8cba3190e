"""dlbricks in an interpreter without MXNet, as on Python 3.13, with the real ONNX Runtime."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dlbricks_tui.folders import SAMPLE_MODELS
from tests.models.onnx_models import saved
from tests.share.onnx_network import network

ROOT = Path(__file__).parents[1]
MXNET_FILE = next(SAMPLE_MODELS.glob("gluon/vgg11-symbol.json*"))

Ran = subprocess.CompletedProcess[str]
Command = Callable[..., Ran]


@pytest.fixture
def dlbricks(python_without_mxnet: Path, tmp_path: Path) -> Command:
    """Run a command in a data folder of its own."""
    command = [str(python_without_mxnet), "-m", "dlbricks_tui", "--data-dir", str(tmp_path / "data")]
    return lambda *arguments: subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)


def test_the_interpreter_has_no_mxnet(python_without_mxnet: Path) -> None:
    ran = subprocess.run([python_without_mxnet, "-c", "import mxnet"], capture_output=True, text=True)
    assert "No module named 'mxnet'" in ran.stderr


def test_a_sample_is_measured_and_estimated_by_onnx_runtime(dlbricks: Command) -> None:
    ran = dlbricks("run", "squeezenet1.1", "--end-to-end", "--fixed-runs", "3", "--calibrate", "never", "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    (measured,) = found["models"]
    assert measured["runtime"].startswith("onnxruntime-")
    assert (measured["coverage"]["missing"], found["bricks"]["failed"]) == (0, 0)
    assert measured["sequential_ms"] > 0 < measured["measured_ms"]
    (estimated,) = json.loads(dlbricks("estimate", "squeezenet1.1", "--json").stdout)
    assert estimated["sequential_ms"] == measured["sequential_ms"]


def test_only_runtimes_that_can_run_are_listed_and_checked(dlbricks: Command) -> None:
    for arguments in (["runtimes"], ["runtimes", "check"]):
        ran = dlbricks(*arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        assert {"default", "default-onnx"} & {it["name"] for it in json.loads(ran.stdout)} == {"default-onnx"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", str(MXNET_FILE)], "no runtime here runs MXNet models: pip install mxnet, on Python 3.12 or older"),
        (["run", str(MXNET_FILE), "--runtime", "default"], "runtime default is MXNet in "),
        (["suite", "export", str(MXNET_FILE), "-o", "suite"], "no runtime here runs MXNet models: "),
    ],
)
def test_a_command_that_needs_mxnet_says_so_at_once(dlbricks: Command, arguments: list[str], told: str) -> None:
    ran = dlbricks(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"dlbricks: error: {told}")
    assert len(ran.stderr.splitlines()) == 1
    assert "dlbricks runtimes add PATH" in ran.stderr


def test_a_configured_mxnet_that_is_missing_stops_no_run(dlbricks: Command) -> None:
    quick = ("--level", "written", "--fixed-runs", "1", "--calibrate", "never", "--json")
    ran = dlbricks("--set", "run.runtime=default", "run", "tabular_network", *quick)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["models"][0]["runtime"].startswith("onnxruntime-")


@pytest.mark.soak
def test_the_tour_prints_estimates_of_two_models(python_without_mxnet: Path, tmp_path: Path) -> None:
    command = ["make", "tour", f"BIN={python_without_mxnet.parent}", f"TOUR={tmp_path / 'tour'}"]
    ran = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    *_, table = ran.stdout.split("MODEL")
    assert "squeezenet1.1" in table and "mobilenet0.5" in table
    assert "onnxruntime" in ran.stdout


@pytest.mark.soak
def test_a_suite_of_an_onnx_model_is_measured_without_mxnet(dlbricks: Command, tmp_path: Path) -> None:
    mine, decoy = (saved(tmp_path, network(widths, name), name) for widths, name in (((8,), "mine"), ((6,), "decoy")))
    suite, results = str(tmp_path / "suite.dlbricks"), str(tmp_path / "results.json")
    asked = ("--runtime", "onnxruntime", "--decoys", "1", "--decoys-from", str(decoy), "--json")
    exported = dlbricks("suite", "export", str(mine), "-o", suite, *asked)
    assert exported.returncode == 0, exported.stderr
    ran = dlbricks("suite", "run", suite, "-o", results, "--threads", "1", "--target-ci", "0.9", "--json")
    assert ran.returncode == 0, ran.stderr
    brought = json.loads(dlbricks("suite", "import", results, "--json").stdout)
    # Owner and vendor have one store here, which knows the results already.
    assert (brought["known"], brought["missing"]) == (json.loads(exported.stdout)["bricks"], 0)
