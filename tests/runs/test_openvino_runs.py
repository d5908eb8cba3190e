"""Runs with the real OpenVINO, of a model small enough to be measured in a moment."""

import json
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.answers.measuring import MeasureOptions, run_request
from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.runtime.traits import OPENVINO
from tests.models.onnx_models import saved, small

pytestmark = pytest.mark.openvino


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path, small())


def run(model: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    common = ["--data-dir", str(model.parent / "data"), "run", str(model), "--runtime", OPENVINO.own_runtime]
    status = main([*common, "--threads", "1", *arguments, "--json"])
    out, told = capsys.readouterr()
    return status, json.loads(out or "null"), told


@pytest.mark.usefixtures("quick_inside", "without_versions")
def test_fused_layers_are_timed_inside_of_a_network(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, told = run(model, capsys, "--target-ci", "0.9")
    assert status == 0, told
    (estimate,) = found["models"]
    assert estimate["coverage"]["missing"] == 0
    assert "openvino-" in estimate["runtime"]
    assert estimate["protocol"] == Method.INSIDE.id
    assert estimate["sequential_ms"] > 0
    assert estimate["measured_ms"] > 0
    assert found["bricks"]["failed"] == 0


@pytest.mark.soak
def test_written_layers_are_timed_alone(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, told = run(model, capsys, "--level", "written", "--fixed-runs", "3")
    assert status == 0, told
    (estimate,) = found["models"]
    assert (estimate["level"], estimate["coverage"]["missing"]) == ("written", 0)
    assert estimate["protocol"] == Method.ALONE.id
    assert estimate["sequential_ms"] > 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"level": Level.FUSED, "method": Method.ALONE}, "times fused layers by method inside only"),
        ({"level": Level.WRITTEN, "method": Method.INSIDE}, "choose level fused, or method alone"),
    ],
)
def test_a_method_that_cannot_time_the_layers_is_refused(options: dict[str, Any], why: str, model: Path) -> None:
    with pytest.raises(JobError, match=why):
        run_request(
            MeasureOptions(runtime=OPENVINO.own_runtime, **options),
            [source_of(model)],
            DataFolder(model.parent / "data"),
        )
