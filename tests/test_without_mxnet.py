"""dlbricks in an interpreter without MXNet, as on Python 3.13, with the real ONNX Runtime."""

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.folders import SAMPLE_MODELS
from tests.models.onnx_models import saved
from tests.share.onnx_network import network

ROOT = Path(__file__).parents[1]
MXNET_FILE = str(next(SAMPLE_MODELS.glob("gluon/vgg11-symbol.json*")))
# Does as `python -m dlbricks_tui` for each of some command lines: starting a process for each takes most of the time.
IN_TURN = """
import contextlib, io, json, os, sys
from importlib.util import find_spec
from dlbricks_tui.cli.main import main

if __name__ == "__main__":
    assert find_spec("mxnet") is None
    os.fsync = lambda _: None
    answers = []
    for line in json.loads(sys.argv[2]):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as told:
            status = main(["--data-dir", sys.argv[1], *line])
        answers.append([status, out.getvalue(), told.getvalue()])
    print(json.dumps(answers))
"""

Command = Callable[..., subprocess.CompletedProcess[str]]
Answers = Callable[..., list[tuple[int, str, str]]]


@pytest.fixture
def dlbricks(python_without_mxnet: Path, tmp_path: Path) -> Command:
    """Run a command in a data folder of its own."""
    command = [str(python_without_mxnet), "-m", "dlbricks_tui", "--data-dir", str(tmp_path / "data")]
    return lambda *arguments: subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.fixture
def in_turn(python_without_mxnet: Path, tmp_path: Path) -> Answers:
    """Run commands one after another, and return the status, output and narration of each."""

    def run(*lines: Sequence[str]) -> list[tuple[int, str, str]]:
        command = [str(python_without_mxnet), "-c", IN_TURN, str(tmp_path / "data"), json.dumps(lines)]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return [tuple(answer) for answer in json.loads(ran.stdout)]

    return run


def document(answer: tuple[int, str, str]) -> Any:
    status, out, told = answer
    assert status == 0, told
    return json.loads(out)


def test_a_model_is_measured_and_estimated_by_onnx_runtime_although_mxnet_is_configured(in_turn: Answers) -> None:
    quick = ("--level", "written", "--end-to-end", "--fixed-runs", "1", "--json")
    ran, estimate = in_turn(
        ("--set", "run.runtime=default", "run", "tabular_network", *quick),
        ("estimate", "tabular_network", "--level", "written", "--json"),
    )
    (measured,) = document(ran)["models"]
    assert measured["runtime"].startswith("onnxruntime-")
    assert (measured["coverage"]["missing"], document(ran)["bricks"]["failed"]) == (0, 0)
    assert measured["sequential_ms"] > 0 < measured["measured_ms"]
    (estimated,) = document(estimate)
    assert estimated["sequential_ms"] == measured["sequential_ms"]


def test_only_runtimes_that_can_run_are_listed_and_checked_and_a_command_that_needs_mxnet_says_so(
    in_turn: Answers,
) -> None:
    refused = {
        ("run", MXNET_FILE): "no runtime here runs MXNet models: pip install mxnet, on Python 3.12 or older",
        ("run", MXNET_FILE, "--runtime", "default"): "runtime default is MXNet in ",
        ("suite", "export", MXNET_FILE, "-o", "suite"): "no runtime here runs MXNet models: ",
    }
    listed, checked, *answers = in_turn(("runtimes", "--json"), ("runtimes", "check", "--json"), *refused)
    for answer in (listed, checked):
        assert {"default", "default-onnx"} & {it["name"] for it in document(answer)} == {"default-onnx"}
    for (status, out, told), said in zip(answers, refused.values(), strict=True):
        assert (status, out, told.count("\n")) == (2, "", 1)
        assert told.startswith(f"dlbricks: error: {said}")
        assert re.search(r"dlbricks --data-dir \S+ runtimes add PATH", told)


@pytest.mark.soak
def test_the_tour_prints_estimates_of_two_models(python_without_mxnet: Path, tmp_path: Path) -> None:
    command = ["make", "tour", f"BIN={python_without_mxnet.parent}", f"TOUR={tmp_path / 'tour'}"]
    ran = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    estimated = [line.split()[0] for line in ran.stdout.splitlines() if " ms " in line]
    assert sorted(estimated) == ["mobilenet0.5", "squeezenet1.1"], ran.stdout
    assert "ONNX Runtime" in ran.stdout


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
