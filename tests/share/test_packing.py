"""A suite has exactly the bricks, and nothing else from their models."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.bricks.excerpts import Excerpt, excerpt
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level, NativeNode, TensorType
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.mxnet.symbol_file import Framework
from dlbricks_tui.runtime.protocol import Program
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.errors import UnsuitableLayersError
from dlbricks_tui.share.networks.mxnet_network import known_operator, packed, spelled
from dlbricks_tui.share.suites.unpacking import Unpacker
from tests.bricks.graphs import DATA, Spec, after, built
from tests.bricks.programs import nameless
from tests.models.table_framework import TableFramework
from tests.share.trio import network

GIBIBYTE = 1 << 30


def excerpts(decomposition: Decomposition) -> Iterator[tuple[Sequence[int], Excerpt]]:
    graph = decomposition.graph
    layouts = output_layouts(graph)
    for occurrence in decomposition.occurrences:
        layers = occurrence.sequence.layers
        if any(graph.layers[index].operators for index in layers):
            yield layers, excerpt(graph, layers, layouts)


def said(program: Program) -> Any:
    """Return the operators of a program with their parameters in their only spelling."""

    def normal(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [normal(each) for each in value]
        if not isinstance(value, dict):
            return value
        known = {name: normal(each) for name, each in value.items() if name not in ("attrs", "subgraphs", "name")}
        if "op" in value and value["op"] != "null" and not value["op"].startswith("_sg_"):
            schema = known_operator(value["op"])
            known |= {"op": schema.name, "attrs": spelled(schema, value.get("attrs", {}))}
        return known

    return normal(nameless(program))


def arrive_unchanged(decomposition: Decomposition, framework: Framework) -> int:
    """Write and read all exportable sequences of a model, and return their number."""
    unpacker = Unpacker(framework, decomposition.graph.level, 64 * GIBIBYTE)
    count = 0
    for layers, alone in excerpts(decomposition):
        if any(layer.times > 1 for layer in alone.graph.layers):
            continue
        arrived = unpacker.unpacked(packed(alone), alone.held, alone.cold)
        assert (arrived.brick, arrived.context) == (alone.brick, alone.context)
        assert said(arrived.program) == said(sequence_program(decomposition.graph, layers))
        count += 1
    return count


@pytest.fixture(scope="module")
def framework(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerFramework]:
    """The real MXNet, started once."""
    folder = tmp_path_factory.mktemp("framework")
    with WorkerFramework(Registry(folder).default(), folder / "framework.log") as framework:
        yield framework


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "private-symbol.json"
    path.write_bytes(network((8, 16, 24)))
    return path


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("granularity", [1, 3, 100])
def test_a_brick_arrives_unchanged_in_its_context_and_runs_the_same_program(
    model: Path, tmp_path: Path, level: Level, granularity: int
) -> None:
    graph = Loader(tmp_path / "cache", TableFramework()).load(source_of(model), level)
    for cut in Cut:
        assert arrive_unchanged(decompose(graph, Cutting(granularity, cut)), TableFramework())


@pytest.mark.mxnet
@pytest.mark.parametrize(
    ("name", "level"), [("mobilenetv2_0.25", Level.FUSED), ("CapsNet Trained on MNIST Data", Level.WRITTEN)]
)
def test_bricks_of_real_models_arrive_unchanged_with_mxnet(
    framework: WorkerFramework, tmp_path: Path, name: str, level: Level
) -> None:
    travel(framework, tmp_path, [name], [level], [Cutting(1)])


@pytest.mark.soak
@pytest.mark.mxnet
def test_bricks_of_all_samples_arrive_unchanged_with_mxnet(framework: WorkerFramework, tmp_path: Path) -> None:
    names = [it.name for it in Library(SAMPLE_MODELS, tmp_path).samples() if it.format is Format.MXNET]
    cuttings = [Cutting(1), Cutting(4), Cutting(5, Cut.RUNNABLE, LayerOrder.PAPER)]
    travel(framework, tmp_path, names, list(Level), cuttings)


def travel(
    framework: Framework, path: Path, names: Sequence[str], levels: Sequence[Level], cuttings: Sequence[Cutting]
) -> None:
    loader = Loader(path / "cache", framework)
    for source in Library(SAMPLE_MODELS, path).find_all(names):
        for level in levels:
            graph = loader.load(source, level)
            for cutting in cuttings:
                assert arrive_unchanged(decompose(graph, cutting), framework)


@pytest.mark.parametrize("times", [(1, 2), (2, 1), (4, 2)])
def test_layers_with_different_repetitions_are_not_exported(times: tuple[int, int]) -> None:
    graph = built([Spec("relu", DATA, times=times[0]), Spec("relu", after(0), times=times[1])])
    with pytest.raises(UnsuitableLayersError, match="repeated beside others"):
        packed(excerpt(graph, (0, 1), output_layouts(graph)))


def test_layers_with_equal_repetitions_are_exported_once(tmp_path: Path) -> None:
    graph = built([Spec("relu", DATA, times=3), Spec("relu", after(0), times=3)])
    document = json.loads(packed(excerpt(graph, (0, 1), output_layouts(graph))))
    assert [node["op"] for node in document["nodes"]] == ["null", "relu", "relu"]


def files(decomposition: Decomposition) -> list[str]:
    return [packed(alone).decode() for _, alone in excerpts(decomposition)]


def test_no_name_comment_or_file_name_is_exported(model: Path, tmp_path: Path) -> None:
    secret = tmp_path / "xenolith-symbol.json"
    secret.write_bytes(network((8, 16), "kryptonite"))
    for level in Level:
        graph = Loader(tmp_path / "cache", TableFramework()).load(source_of(secret), level)
        for text in files(decompose(graph, Cutting(2))):
            assert not any(word in text for word in ("kryptonite", "xenolith", "comment", "v7"))


@pytest.mark.parametrize(
    "more",
    [
        {"stride": "(1, 1)", "dilate": "[1,1]", "layout": "NCHW"},
        {"stride": "(1L, 1L)", "workspace": "1024", "cudnn_tune": "fastest"},
        {"num_group": "1", "no_bias": "False", "cudnn_off": "0"},
    ],
)
def test_a_suite_does_not_show_which_framework_wrote_a_model(tmp_path: Path, more: dict[str, str]) -> None:
    content = json.loads(network((8, 16)))
    plain = tmp_path / "plain-symbol.json"
    plain.write_text(json.dumps(content))
    for node in content["nodes"]:
        if node["op"] == "Convolution":
            node["attrs"] |= more
    other = tmp_path / "other-symbol.json"
    other.write_text(json.dumps(content))
    loader = Loader(tmp_path / "cache", TableFramework())
    one, same = (files(decompose(loader.load(source_of(path)))) for path in (plain, other))
    assert one == same


def test_a_brick_with_an_undeclared_parameter_is_not_exported(tmp_path: Path) -> None:
    content = json.loads(network((8,)))
    content["nodes"][-1]["attrs"]["note"] = "from the lab"
    path = tmp_path / "noted-symbol.json"
    path.write_text(json.dumps(content))
    decomposition = decompose(Loader(tmp_path / "cache", TableFramework()).load(source_of(path)))
    unpacker = Unpacker(TableFramework(), Level.WRITTEN, GIBIBYTE)
    changed = []
    for _, alone in excerpts(decomposition):
        content_of = packed(alone)
        assert b"lab" not in content_of
        changed.append(unpacker.unpacked(content_of, alone.held, alone.cold).brick != alone.brick)
    assert changed.count(True) == 1


@pytest.mark.parametrize("op", ["Custom", "_NDArray", "_Native", "_cvimread", "MadeUp"])
def test_operators_with_code_or_files_are_not_exported(model: Path, tmp_path: Path, op: str) -> None:
    graph = Loader(tmp_path / "cache", TableFramework()).load(source_of(model))
    _, alone = next(iter(excerpts(decompose(graph))))
    layer = alone.graph.layers[0]
    operator = replace(layer.operators[0], native=NativeNode(op))
    evil = replace(alone.graph, layers=(replace(layer, operators=(operator,)),))
    with pytest.raises(UnsuitableLayersError, match=op):
        packed(Excerpt(evil, 1))


def test_a_brick_with_a_graph_inside_an_operator_is_not_exported(model: Path, tmp_path: Path) -> None:
    graph = Loader(tmp_path / "cache", TableFramework()).load(source_of(model))
    _, alone = next(iter(excerpts(decompose(graph))))
    layer = alone.graph.layers[0]
    operator = replace(layer.operators[0], native=NativeNode("_foreach", (), ("{}",)))
    with pytest.raises(UnsuitableLayersError, match="graph inside"):
        packed(Excerpt(replace(alone.graph, layers=(replace(layer, operators=(operator,)),)), 1))


@pytest.mark.parametrize(("dtype", "number"), [("float16", 2), ("uint8", 3), ("int32", 4), ("int64", 6)])
def test_data_types_are_exported_as_the_numbers_of_mxnet(dtype: str, number: int) -> None:
    graph = built([Spec("relu", DATA)])
    operator = replace(graph.layers[0].operators[0], native=NativeNode("relu"))
    alone = replace(
        graph,
        layers=(replace(graph.layers[0], operators=(operator,)),),
        inputs=(graph.inputs[0]._replace(type=TensorType((1, 8), dtype)),),
    )
    assert f'"__dtype__":"{number}"' in packed(Excerpt(alone, 1)).decode()
