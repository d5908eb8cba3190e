"""Runs with the real ONNX Runtime, of a model small enough to be measured in a moment."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto

from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.stopping import FixedRuns
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.runs.events import ProgramFailed
from dlbricks_tui.runs.request import RunRequest, chosen
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import EndToEnd
from tests.models.onnx_models import (
    finite_with_its_own_weights,
    of_unknown_shapes,
    saved,
    small,
    unfusable,
    with_a_sequence,
)
from tests.runs.runs import Site

FAULTY_WORKER = Path(__file__).parent / "faulty_worker.py"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path, small())


def dlbricks(model: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    status = main(["--data-dir", str(model.parent / "data"), *arguments, "--json"])
    out, told = capsys.readouterr()
    return status, json.loads(out or "null"), told


def test_a_model_is_measured_at_two_batch_sizes_and_estimated_and_its_results_are_listed(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Both inputs have an open batch axis.
    asked = ["tabular_network", "--runtime", "onnxruntime", "--batch", "1,6", "--threads", "1"]
    once = ["--end-to-end", "--fixed-runs", "5"]
    status, found, told = dlbricks(model, capsys, "run", *asked, *once)
    assert status == 0, told
    assert found["end_to_end"] == {"total": 2, "run": 2, "reused": 0, "failed": 0}
    assert found["bricks"]["failed"] == 0
    assert [(it["batch"], it["threads"]) for it in found["models"]] == [(1, 1), (6, 1)]
    for it in found["models"]:
        assert (it["level"], it["precision"], it["coverage"]["missing"]) == ("fused", "f32", 0)
        assert "onnxruntime-" in it["runtime"]
        assert it["measured_ms"] > 0
        assert it["per_second"] == pytest.approx(it["batch"] / it["sequential_ms"] * 1000)
    status, again, _ = dlbricks(model, capsys, "estimate", *asked)
    assert status == 0
    assert [it["sequential_ms"] for it in again] == [it["sequential_ms"] for it in found["models"]]
    status, listed, _ = dlbricks(model, capsys, "results", "list", "of=model", "batch=6")
    assert (status, [it["batch_size"] for it in listed]) == (0, [6])


@pytest.mark.soak
def test_written_layers_are_measured_and_estimated_like_fused_ones(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", str(model), "--level", "written", "--end-to-end", "--fixed-runs", "20"]
    status, found, told = dlbricks(model, capsys, *asked)
    assert status == 0, told
    (estimate,) = found["models"]
    assert (estimate["level"], estimate["coverage"]["missing"]) == ("written", 0)
    assert estimate["sequential_ms"] > 0
    assert estimate["measured_ms"] > 0
    assert found["bricks"]["failed"] == 0
    status, (again,), _ = dlbricks(model, capsys, "estimate", str(model), "--level", "written")
    assert (status, again["sequential_ms"]) == (0, estimate["sequential_ms"])


@pytest.mark.parametrize(
    ("made", "inputs", "level"),
    [
        (of_unknown_shapes, [], "fused"),
        pytest.param(of_unknown_shapes, [], "written", marks=pytest.mark.soak),
        pytest.param(finite_with_its_own_weights, [], "fused", marks=pytest.mark.soak),
        (finite_with_its_own_weights, [], "written"),
        pytest.param(unfusable, ["--input", "x=1,4"], "written", marks=pytest.mark.soak),
    ],
    ids=lambda made: getattr(made, "__name__", ""),
)
def test_a_model_that_cannot_be_run_layer_by_layer_is_timed_end_to_end(
    model: Path, capsys: pytest.CaptureFixture[str], made: Callable[[], ModelProto], inputs: list[str], level: str
) -> None:
    path = saved(model.parent, made(), "odd")
    asked = [str(path), *inputs, "--level", level]
    status, found, told = dlbricks(model, capsys, "run", *asked, "--end-to-end", "--fixed-runs", "6")
    assert status == 0, told
    assert found["end_to_end"] == {"total": 1, "run": 1, "reused": 0, "failed": 0}
    (estimate,) = found["models"]
    assert estimate["measured_ms"] > 0
    status, (again,), _ = dlbricks(model, capsys, "estimate", *asked)
    assert again["measured_ms"] == estimate["measured_ms"]


@pytest.mark.soak
def test_sequences_of_several_layers_are_measured_too(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", str(model), "-g", "10", "--cut", "runnable", "--end-to-end", "--fixed-runs", "10"]
    status, found, told = dlbricks(model, capsys, *asked)
    assert status == 0, told
    assert found["bricks"] == {"total": 1, "run": 1, "reused": 0, "failed": 0}
    assert found["models"][0]["coverage"]["missing"] == 0
    status, again, _ = dlbricks(model, capsys, *asked)
    assert (again["bricks"]["run"], again["end_to_end"]["reused"]) == (0, 1)
    assert again["models"] == found["models"]


@pytest.mark.parametrize(
    ("fault", "from_run", "reason"),
    [
        # `test_run.py` states the same promises with the fake worker.
        pytest.param("segfault", 2, "crashed", marks=pytest.mark.soak),
        ("devour", 1, "too large"),
        pytest.param("segfault", 1, "crashed", marks=pytest.mark.soak),
        pytest.param("sleep", 1, "hung", marks=pytest.mark.soak),
        pytest.param("not a number", 1, "not finite", marks=pytest.mark.soak),
    ],
)
def test_a_brick_that_crashes_the_real_framework_fails_alone_and_is_named(
    model: Path, monkeypatch: pytest.MonkeyPatch, fault: str, from_run: int, reason: str
) -> None:
    monkeypatch.setenv("FAULTS", json.dumps({"Gemm": [fault, from_run]}))
    site = Site(model.parent / "data", FAULTY_WORKER)
    site.path.mkdir()
    request = RunRequest(
        models=chosen([source_of(model)]),
        runtime=Registry(site.path).runtime_for({Format.ONNX}),
        rule=FixedRuns(5),
        time_limits=TimeLimits(5.0, 5.0) if reason == "hung" else TimeLimits(),
        level=Level.WRITTEN,
        memory_limit_bytes=1 << 30,
    )
    events: list[Event] = []
    state = site.run(request, events.append)
    failed = [event for event in events if isinstance(event, ProgramFailed)]
    assert {(it.reason, it.label.split()[0]) for it in failed} == {(reason, "linear")}
    assert state.bricks.failed == len(failed) > 0
    assert state.bricks.measured == state.bricks.total - len(failed) > 2
    contents = site.contents()
    assert {it.reason for it in contents.failures} == {reason}
    assert len({it.brick for it in contents.failures}) == 1
    assert len(contents.measurements) == state.bricks.measured


@pytest.mark.usefixtures("quick_inside")
def test_a_model_with_layers_that_cannot_run_alone_is_timed_whole_and_names_them(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(model.parent, with_a_sequence(), "odd")
    status, found, told = dlbricks(model, capsys, "run", str(path), "--threads", "1", "--target-ci", "0.9")
    assert status == 0, told
    assert found["end_to_end"]["run"] == 1
    (estimate,) = found["models"]
    assert estimate["level"] == "fused"
    assert estimate["measured_ms"] > 0
    assert estimate["coverage"]["unmeasurable"] == 1
    assert "unmeasurable: odd: unpack: " in told


@pytest.mark.soak
def test_a_fused_and_a_written_model_are_timed_separately(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(model.parent, unfusable(), "odd")
    asked = ["run", str(path), "--input", "x=1,4", "--end-to-end", "--fixed-runs", "6"]
    for level in ("fused", "written"):
        _, found, _ = dlbricks(model, capsys, *asked, "--level", level)
        assert found["end_to_end"]["run"] == 1
    with ResultsDatabase(DataFolder(model.parent / "data").store) as store:
        timed = store.records(EndToEnd)
    assert sorted(it.level.value for it in timed) == ["fused", "written"]
    assert len({it.model for it in timed}) == 2


def test_a_model_that_does_not_run_with_given_shapes_is_refused_with_shapes_that_work(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(model.parent, unfusable(), "odd")
    asked = ["run", str(path), "--input", "x=1,5", "--end-to-end", "--fixed-runs", "6"]
    status, _, told = dlbricks(model, capsys, *asked)
    assert status == 2
    assert "odd does not run with x=1,5: " in told
    assert told.rstrip().endswith("; the model runs with --input x=1,8")


def test_models_of_two_formats_are_run_separately(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = SAMPLE_MODELS / "gluon" / "resnet18_v1-symbol.json"
    status, _, told = dlbricks(model, capsys, "run", str(model), str(other))
    assert status == 2
    assert "choose models of one format" in told


def test_a_runtime_of_the_other_format_is_named(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, told = dlbricks(model, capsys, "run", str(model), "--runtime", "default")
    assert status == 2
    assert "net is an ONNX model, and runtime default runs those of MXNet" in told


def test_models_of_both_formats_share_bricks_at_level_written(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, told = dlbricks(model, capsys, "corpus", str(model), "resnet18_v1")
    assert status == 0, told
    assert len(found["models"]) == 2
