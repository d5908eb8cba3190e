"""Runs and estimates in other precisions than f32, with the real runtimes and models measured in a moment."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto
from onnx.helper import make_node, make_tensor

from dlbricks_tui.answers.reported import find_contents
from dlbricks_tui.cli.main import main
from dlbricks_tui.cli.report import open_loaders
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import FrameworkMissingError
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import ONNX_RUNTIME, OPENVINO
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.store.database import ResultsDatabase
from tests.models.onnx_models import floats, model, saved, small

UNCHECKED = "accuracy was not checked"


def dlbricks(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    command, *options = arguments
    status = main(["--data-dir", str(path.parent / "data"), command, str(path), *options])
    return status, *capsys.readouterr()


def quick(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    few = ["--threads", "1", "--fixed-runs", "3", "--end-to-end", "--json"]
    status, out, told = dlbricks(path, capsys, "run", *few, *arguments)
    return status, json.loads(out or "null"), told


def _kernels(folder: Path) -> set[str]:
    with ResultsDatabase(DataFolder(folder / "data").store) as store:
        return {name.split()[0] for name in store.select(order=()).values("name")}


def test_precisions_are_measured_in_one_run_and_kept_apart_and_int8_says_that_accuracy_was_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, small())

    def estimated(*options: str) -> Any:
        status, out, _ = dlbricks(path, capsys, "estimate", *options, "--json")
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
    status, out, _ = dlbricks(path, capsys, "estimate", "--precision", "f32,int8", "--threads", "1")
    assert (status, [line.split()[0] for line in out.splitlines()[3:6]]) == (0, ["PRECISION", "f32", "int8"])
    assert UNCHECKED in out
    status, out, _ = dlbricks(path, capsys, "compare", "--json")
    compared = {it["precision"]: it["accuracy_unchecked"] for it in json.loads(out)["combinations"]}
    assert (status, compared) == (0, {"f32": False, "int8": True})

    status, out, _ = dlbricks(path, capsys, "tree", "--precision", "int8", "--level", "fused", "--json")
    kinds = {layer["op"] for sequence in json.loads(out)["sequences"] for layer in sequence["layers"]}
    assert status == 0
    assert any("QLinearConv" in kind or "QuantizeLinear" in kind for kind in kinds), kinds
    status, _, told = dlbricks(path, capsys, "tree", "--precision", "int8", "--runtime", "mxnet")
    assert (status, len(told.splitlines())) == (2, 1)

    data = DataFolder(path.parent / "data")
    main(["--data-dir", str(data.path), "results", "list"])
    assert UNCHECKED in capsys.readouterr().err
    with ResultsDatabase(data.store) as store, open_loaders(data) as loader_of:
        contents = find_contents(store, loader_of, [source_of(path)], [str(path)], fingerprint().id)
    first, second = sorted(it.title for it in contents.series)
    assert "int8" not in first
    assert second.endswith("int8, accuracy not checked")


def test_a_file_that_is_quantised_runs_as_it_is_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mobilenetv2_int8.onnx"
    path.write_bytes((SAMPLE_MODELS / "onnx" / path.name).read_bytes())
    status, out, _ = dlbricks(path, capsys, "estimate", "--json")
    (found,) = json.loads(out)
    assert found["precision"] == "file"
    status, _, told = dlbricks(path, capsys, "estimate", "--precision", "int8")
    assert status != 0
    assert "mobilenetv2_int8 is quantised in its file, and runs as it is: choose precision f32" in told


def of_half_precision(folder: Path) -> Path:
    weight = make_tensor("w", TensorProto.FLOAT16, (16, 4), [1.0] * 64)
    return saved(folder, model([make_node("MatMul", ["x", "w"], ["y"])], {"x": (1, 16)}, ["y"], [weight]))


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
        *(
            (
                lambda folder: saved(folder, small()),
                (command, "--precision", "bf16", "--runtime", ONNX_RUNTIME.own_runtime),
                "computes in f32, int8 and not in bf16: choose another precision",
            )
            for command in ("run", "estimate")
        ),
    ],
)
def test_a_precision_that_the_runtime_or_the_file_lacks_is_refused_in_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    write: Callable[[Path], Path],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    status, _, told = dlbricks(write(tmp_path), capsys, *arguments)
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
    path = saved(tmp_path, model([product], {"x": (8, 16)}, ["y"], [floats("w", (16, 64))]))
    try:
        assert "bf16" in executed(path, Precision.BF16)
        assert "bf16" not in executed(path, Precision.F32)
    except FrameworkMissingError as refused:
        assert str(refused) == "OpenVINO has no bf16 arithmetic on this processor: choose another precision"
        status, _, told = dlbricks(path, capsys, "run", "--precision", "bf16")
        assert status == 2
        assert str(refused) in told
