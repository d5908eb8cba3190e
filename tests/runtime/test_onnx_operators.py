"""Models of the sorts that real files are made of, read, cut and run by the real ONNX Runtime at both levels."""

from pathlib import Path

import pytest
from onnx import TensorProto
from onnx.helper import make_node

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.programs import file_program, model_program, sequence_program
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, Profile
from tests.models.onnx_models import saved
from tests.models.table_framework import TableFramework
from tests.runtime.onnx_cases import CASES, network
from tests.runtime.test_onnxruntime import SECONDS

# They read sequences, which only a whole model makes.
READ_SEQUENCES = {"onnx.SequenceAt", "onnx.SequenceInsert", "onnx.ConcatFromSequence"}


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("case", CASES)
def test_a_model_its_file_and_each_of_its_bricks_run(
    case: str, level: Level, ort_worker: Worker, ort_loader: Loader, tmp_path: Path
) -> None:
    path = saved(tmp_path, CASES[case]())
    graph = ort_loader.load(source_of(path), level)
    assert {layer.op for layer in graph.layers if layer.unmeasurable} <= READ_SEQUENCES
    assert [layer.op for layer in graph.layers if layer.kind is Kind.OTHER] == []
    ort_worker.ask(Load("file", file_program(graph, path)), SECONDS)
    ort_worker.ask(Load("model", model_program(graph)), SECONDS)
    (times,) = ort_worker.ask(Profile("model", 1, 1), SECONDS).durations_ns
    assert len(times) >= len(graph.layers)
    for occurrence in decompose(graph).occurrences:
        layers = occurrence.sequence.layers
        if not any(graph.layers[index].unmeasurable for index in layers):
            ort_worker.ask(Load("brick", sequence_program(graph, layers)), SECONDS)


def operators(graph: LayerGraph) -> list[str]:
    return [layer.op for layer in graph.layers]


@pytest.mark.parametrize("level", list(Level))
def test_the_branch_that_runs_on_synthetic_inputs_takes_the_place_of_an_if_by_data(
    level: Level, ort_loader: Loader, tmp_path: Path
) -> None:
    graph = ort_loader.load(source_of(saved(tmp_path, CASES["If by data"]())), level)
    # The condition compares the largest input, which is near one, with a hundred. Its layers stay.
    assert operators(graph) == ["reduce_max", "onnx.Greater", "onnx.MatMul", "relu"]


def test_without_a_framework_an_if_by_data_is_one_layer(tmp_path: Path) -> None:
    loader = Loader(tmp_path / "cache", TableFramework())
    assert operators(loader.load(source_of(saved(tmp_path, CASES["If by data"]()))))[-1] == "onnx.If"


def test_a_model_that_fails_without_a_value_advises_to_give_one(
    ort_worker: Worker, ort_loader: Loader, tmp_path: Path
) -> None:
    nodes = [make_node("Reshape", ["x", "columns"], ["r"]), make_node("Relu", ["r"], ["y"])]
    made = network(nodes, {"x": (TensorProto.FLOAT, [3, 4]), "columns": (TensorProto.INT64, [1])}, ["y"])
    source = source_of(saved(tmp_path, made))
    for level in Level:
        reasons = {layer.unmeasurable or "" for layer in ort_loader.load(source, level).layers}
        assert any(
            it.endswith("if columns must have a certain value, give it: --value columns=NUMBER") for it in reasons
        )
    graph = ort_loader.load(source, Level.FUSED, values={"columns": (12,)})
    assert [layer.unmeasurable for layer in graph.layers] == [None, None]
    assert ort_worker.ask(Load("file", file_program(graph, source.path)), SECONDS).outputs == ((12,),)
