"""Runs with the real frameworks, of models small enough to be measured in a moment, and in other precisions."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_node, make_tensor

from dlbricks_tui.api.measuring import MeasureOptions, run_request
from dlbricks_tui.api.reported import find_contents, open_loaders
from dlbricks_tui.api.session import SILENT
from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import FixedRuns, StoppingRule
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.events import ProgramFailed
from dlbricks_tui.runs.request import InputShape, RunRequest, chosen
from dlbricks_tui.runtime.errors import FrameworkMissingError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import ONNX_RUNTIME, OPENVINO, Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.store.database import ResultsDatabase
from tests.models.onnx_models import (
    finite_with_its_own_weights,
    floats,
    of_unknown_shapes,
    saved,
    small,
    with_a_sequence,
)
from tests.models.onnx_models import model as onnx_model
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
        assert it["per_second"] == pytest.approx(it["batch"] / it["measured_ms"] * 1000)
    status, again, _ = dlbricks(model, capsys, "estimate", *asked)
    assert status == 0
    assert [it["sequential_ms"] for it in again] == [it["sequential_ms"] for it in found["models"]]
    status, listed, _ = dlbricks(model, capsys, "results", "list", "of=model", "batch=6")
    assert (status, [it["batch_size"] for it in listed]) == (0, [6])


@pytest.mark.parametrize(
    ("made", "level"),
    [(of_unknown_shapes, "fused"), (finite_with_its_own_weights, "written")],
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


UNCHECKED = "accuracy was not checked"


def dlbricks_on(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    command, *options = arguments
    status = main(["--data-dir", str(path.parent / "data"), command, str(path), *options])
    return status, *capsys.readouterr()


def quick(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    few = ["--threads", "1", "--fixed-runs", "3", "--end-to-end", "--json"]
    status, out, told = dlbricks_on(path, capsys, "run", *few, *arguments)
    return status, json.loads(out or "null"), told


def _kernels(folder: Path) -> set[str]:
    with ResultsDatabase(DataFolder(folder / "data").store) as store:
        return {name.split()[0] for name in store.select(order=()).values("name")}


def test_precisions_are_measured_in_one_run_and_kept_apart_and_int8_says_that_accuracy_was_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, small())

    def estimated(*options: str) -> Any:
        status, out, _ = dlbricks_on(path, capsys, "estimate", *options, "--json")
        (found,) = json.loads(out)
        assert (status, found["coverage"]["missing"]) == (0, 0)
        return found

    status, found, told = quick(path, capsys, "--precision", "f32,int8", "--runtime", ONNX_RUNTIME.own_runtime)
    assert status == 0, told
    assert UNCHECKED in told
    assert [(it["precision"], it["accuracy_unchecked"]) for it in found["models"]] == [("f32", False), ("int8", True)]
    f32, int8 = found["models"]
    assert (int8["model"], int8["coverage"]["missing"]) == ("net", 0)
    assert "threads-1 precision-int8" in int8["runtime"]
    assert int8["measured_ms"] > 0
    assert "QLinearConv" in {it["type"] for it in int8["types"]} | _kernels(tmp_path)

    # An estimate counts int8 only where it is asked for; the identity of the runtime asks for it, too.
    for asked in (("--precision", "int8"), ("--runtime", int8["runtime"])):
        again = estimated(*asked)
        assert (again["precision"], again["sequential_ms"]) == ("int8", int8["sequential_ms"])
    again = estimated()
    assert (again["precision"], again["sequential_ms"]) == ("f32", f32["sequential_ms"])
    status, out, _ = dlbricks_on(path, capsys, "estimate", "--precision", "f32,int8", "--threads", "1")
    assert (status, [line.split()[0] for line in out.splitlines()[3:6]]) == (0, ["PRECISION", "f32", "int8"])
    assert UNCHECKED in out
    status, out, _ = dlbricks_on(path, capsys, "compare", "--json")
    compared = {it["precision"]: it["accuracy_unchecked"] for it in json.loads(out)["combinations"]}
    assert (status, compared) == (0, {"f32": False, "int8": True})

    status, out, _ = dlbricks_on(path, capsys, "tree", "--precision", "int8", "--level", "fused", "--json")
    kinds = {layer["op"] for sequence in json.loads(out)["sequences"] for layer in sequence["layers"]}
    assert status == 0
    assert any("QLinearConv" in kind or "QuantizeLinear" in kind for kind in kinds), kinds
    status, _, told = dlbricks_on(path, capsys, "tree", "--precision", "int8", "--runtime", "mxnet")
    assert (status, len(told.splitlines())) == (2, 1)

    data = DataFolder(path.parent / "data")
    main(["--data-dir", str(data.path), "results", "list"])
    assert UNCHECKED in capsys.readouterr().err
    with ResultsDatabase(data.store) as store, open_loaders(data, SILENT) as loader_of:
        contents = find_contents(store, loader_of, [source_of(path)], [str(path)], fingerprint().id)
    first, second = sorted(it.title for it in contents.series)
    assert "int8" not in first
    assert second.endswith("int8, accuracy not checked")


def of_half_precision(folder: Path) -> Path:
    weight = make_tensor("w", TensorProto.FLOAT16, (16, 4), [1.0] * 64)
    return saved(folder, onnx_model([make_node("MatMul", ["x", "w"], ["y"])], {"x": (1, 16)}, ["y"], [weight]))


def of_mxnet(folder: Path) -> Path:
    path = folder / "net-symbol.json"
    path.write_bytes((SAMPLE_MODELS / "table1" / "adain-symbol.json").read_bytes())
    return path


@pytest.mark.parametrize(
    ("write", "arguments", "said"),
    [
        (
            of_half_precision,
            ("estimate", "--precision", "int8"),
            "has weights of type float16, and the quantiser needs float32: give the file that it was made from",
        ),
        (of_mxnet, ("estimate", "--precision", "int8"), "no runtime here computes MXNet models, such as net, in int8"),
    ],
)
def test_a_precision_that_the_runtime_or_the_file_lacks_is_refused_in_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    write: Callable[[Path], Path],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    status, _, told = dlbricks_on(write(tmp_path), capsys, *arguments)
    assert status != 0
    assert len(told.splitlines()) == 1 and said in told


def executed(path: Path, precision: Precision) -> str:
    """Return the kernels and layouts of the layers that OpenVINO executes in a precision."""
    runtime = Runtime("openvino", sys.executable, OPENVINO.framework, "", "", Settings(1, precision=precision))
    with WorkerFramework(runtime, path.parent / "worker.log") as framework:
        graph = Loader(path.parent / "cache", framework, framework).load(source_of(path), Level.FUSED)
    return kernels_of(graph)


def kernels_of(graph: LayerGraph) -> str:
    return " ".join(str(operator.params) for layer in graph.layers for operator in layer.operators)


@pytest.mark.openvino
def test_openvino_computes_in_bf16_or_says_in_one_line_that_the_processor_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = make_node("MatMul", ["x", "w"], ["y"])
    path = saved(tmp_path, onnx_model([product], {"x": (8, 16)}, ["y"], [floats("w", (16, 64))]))
    try:
        assert "bf16" in executed(path, Precision.BF16)
        assert "bf16" not in executed(path, Precision.F32)
    except FrameworkMissingError as refused:
        assert str(refused) == "OpenVINO has no bf16 arithmetic on this processor: choose another precision"
        status, _, told = dlbricks_on(path, capsys, "run", "--precision", "bf16")
        assert status == 2
        assert str(refused) in told
