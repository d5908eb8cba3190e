"""Runs with the real frameworks, of models small enough to be measured in a moment."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto

from dlbricks_tui.answers.measuring import MeasureOptions, run_request
from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import FixedRuns, StoppingRule
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.runs.events import ProgramFailed
from dlbricks_tui.runs.request import InputShape, RunRequest, chosen
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import OPENVINO, Format
from tests.models.onnx_models import (
    finite_with_its_own_weights,
    of_unknown_shapes,
    saved,
    small,
    unfusable,
    with_a_sequence,
)
from tests.runs.runs import Site
from tests.runtime.symbols import Network

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


@pytest.mark.parametrize(
    ("made", "level"),
    [
        (of_unknown_shapes, "fused"),
        (finite_with_its_own_weights, "written"),
    ],
    ids=lambda made: getattr(made, "__name__", ""),
)
def test_a_model_that_cannot_be_run_layer_by_layer_is_timed_end_to_end(
    model: Path, capsys: pytest.CaptureFixture[str], made: Callable[[], ModelProto], level: str
) -> None:
    path = saved(model.parent, made(), "odd")
    asked = [str(path), "--level", level]
    status, found, told = dlbricks(model, capsys, "run", *asked, "--end-to-end", "--fixed-runs", "6")
    assert status == 0, told
    assert found["end_to_end"] == {"total": 1, "run": 1, "reused": 0, "failed": 0}
    (estimate,) = found["models"]
    assert estimate["measured_ms"] > 0
    status, (again,), _ = dlbricks(model, capsys, "estimate", *asked)
    assert again["measured_ms"] == estimate["measured_ms"]


@pytest.mark.parametrize(
    ("fault", "from_run", "reason"),
    [
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


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--input", "x=1,5", "--end-to-end", "--fixed-runs", "6"], "odd does not run with x=1,5: "),
        ([str(SAMPLE_MODELS / "gluon" / "resnet18_v1-symbol.json")], "choose models of one format"),
        (["--runtime", "default"], "odd is an ONNX model, and runtime default runs those of MXNet"),
    ],
)
def test_models_that_cannot_be_run_so_are_refused_with_a_way_that_works(
    model: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    status, _, told = dlbricks(model, capsys, "run", str(saved(model.parent, unfusable(), "odd")), *more)
    assert status == 2
    assert said in told
    assert ("x=1,5" not in said) or told.rstrip().endswith("; the model runs with --input x=1,8")


@pytest.fixture
def mxnet_model(tmp_path: Path) -> Path:
    """A residual block and a classifier; the convolutions are alike."""
    network = Network()
    first = network.relu("relu1", network.batch_norm("norm1", network.convolution("conv1", "data")))
    second = network.batch_norm("norm2", network.convolution("conv2", first))
    joined = network.relu("relu2", network.add("elemwise_add", "add", second, first))
    scores = network.linear("fc", network.add("Flatten", "flatten", joined))
    path = tmp_path / "tiny-symbol.json"
    path.write_text(network.symbol(network.add("softmax", "scores", scores)))
    return path


def request(model: Path, site: Site, rule: StoppingRule, **changes: Any) -> RunRequest:
    """A run of the network by the framework of this interpreter."""
    return RunRequest(
        models=chosen([source_of(model)]),
        runtime=Registry(site.path).default(),
        inputs=(InputShape("data", (1, 3, 32, 32)),),
        rule=rule,
        **changes,
    )


@pytest.mark.mxnet
@pytest.mark.usefixtures("without_versions")
@pytest.mark.parametrize("level", ["fused", pytest.param("written", marks=pytest.mark.soak)])
def test_a_network_is_measured_end_to_end_and_by_its_bricks(
    mxnet_model: Path, capsys: pytest.CaptureFixture[str], level: str
) -> None:
    asked = [str(mxnet_model), "--input", "data=1,3,32,32", "--level", level, "--end-to-end", "--fixed-runs", "5"]
    status, found, told = dlbricks(mxnet_model, capsys, "run", *asked)
    assert status == 0, told
    (estimate,) = found["models"]
    assert estimate["level"] == level
    assert estimate["coverage"]["missing"] == estimate["coverage"]["unmeasurable"] == 0
    assert estimate["sequential_ms"] > 0
    assert estimate["measured_ms"] > 0
    assert found["bricks"]["run"] == found["bricks"]["total"] > 3
    assert found["bricks"]["failed"] == 0


@pytest.mark.openvino
@pytest.mark.usefixtures("quick_inside", "without_versions")
def test_openvino_times_fused_layers_inside_of_a_network(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--runtime", OPENVINO.own_runtime, "--threads", "1", "--target-ci", "0.9"]
    status, found, told = dlbricks(model, capsys, "run", str(model), *own)
    assert status == 0, told
    (estimate,) = found["models"]
    assert estimate["coverage"]["missing"] == 0
    assert "openvino-" in estimate["runtime"]
    assert estimate["protocol"] == Method.INSIDE.id
    assert estimate["sequential_ms"] > 0
    assert estimate["measured_ms"] > 0
    assert found["bricks"]["failed"] == 0


@pytest.mark.openvino
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
