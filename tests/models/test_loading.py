import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree

import pytest

from dlbricks_tui.models.errors import (
    FusionRefusedError,
    InconsistentModelError,
    MissingShapeError,
    ModelError,
)
from dlbricks_tui.models.graph import LayerGraph, Level, Shape
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.mxnet.symbol_file import GraphAnswer
from tests.models.symbols import Node, content, node, shared_layers, small_network, variable
from tests.models.table_framework import TableFramework

IMAGE = {"data": (1, 3, 32, 32)}


class NoFramework:
    """Fails if it is asked anything."""

    identity = "table-1"

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        raise AssertionError("nothing is left to infer")

    fuse = infer


@pytest.fixture
def model(tmp_path: Path) -> ModelSource:
    return saved(tmp_path, small_network())


def saved(folder: Path, nodes: list[Node], name: str = "net") -> ModelSource:
    path = folder / f"{name}-symbol.json"
    path.write_bytes(content(nodes))
    return source_of(path)


def cached_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.json"))


@pytest.mark.parametrize("level", Level)
def test_a_model_and_a_renamed_copy_in_the_cache_need_no_framework(
    level: Level, model: ModelSource, tmp_path: Path
) -> None:
    first = Loader(tmp_path / "cache", TableFramework()).load(model, level, IMAGE)
    copy = tmp_path / "copy.json.gz"
    copy.write_bytes(gzip.compress(model.path.read_bytes()))
    loader = Loader(tmp_path / "cache", NoFramework())
    assert loader.load(model, level, IMAGE) == first
    assert loader.load(source_of(copy), level, IMAGE).name == "copy"


def test_other_shapes_have_their_own_cache_entry(model: ModelSource, tmp_path: Path) -> None:
    framework = TableFramework()
    loader = Loader(tmp_path / "cache", framework)
    small, large = (loader.load(model, given={"data": (1, 3, side, side)}) for side in (16, 32))
    assert [graph.layers[0].outputs[0].shape for graph in (small, large)] == [(1, 8, 16, 16), (1, 8, 32, 32)]
    assert framework.asked == ["infer", "infer"]


def test_models_with_delivered_types_need_neither_framework_nor_cache(model: ModelSource, tmp_path: Path) -> None:
    first = Loader(tmp_path / "cache", TableFramework()).load(model, given=IMAGE)
    (delivered,) = cached_files(tmp_path / "cache")
    source = ModelSource(model.name, model.path, inputs=IMAGE, types=delivered)
    assert Loader(tmp_path / "nothing", NoFramework()).load(source) == first
    assert cached_files(tmp_path / "nothing") == []


def test_a_changed_file_ignores_its_old_types(model: ModelSource, tmp_path: Path) -> None:
    framework = TableFramework()
    loader = Loader(tmp_path / "cache", framework)
    loader.load(model, given=IMAGE)
    (delivered,) = cached_files(tmp_path / "cache")
    changed = saved(tmp_path, [*small_network(), node("relu", "more", 17)], "changed")
    source = ModelSource("changed", changed.path, inputs=IMAGE, types=delivered)
    assert len(loader.load(source).layers) == 9
    assert framework.asked == ["infer", "infer"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "[]",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("float32", "\x00"),
        lambda text: json.dumps(json.loads(text) | {"key": "another"}),
        lambda text: json.dumps(json.loads(text) | {"types": [[[1e999], "float32"]]}),
        lambda text: json.dumps(json.loads(text) | {"types": 7}),
        lambda text: json.dumps(json.loads(text) | {"nodes": [[10**9]]}),
        lambda text: json.dumps(json.loads(text) | {"nodes": []}),
        lambda text: json.dumps(json.loads(text) | {"unknown": [[]]}),
        lambda text: "[" * 100_000,
    ],
)
def test_a_damaged_cache_is_ignored(model: ModelSource, tmp_path: Path, damage: object) -> None:
    framework = TableFramework()
    loader = Loader(tmp_path / "cache", framework)
    first = loader.load(model, given=IMAGE)
    (file,) = cached_files(tmp_path / "cache")
    assert callable(damage)
    file.write_text(damage(file.read_text()))
    rmtree(tmp_path / "cache" / "models")
    assert loader.load(model, given=IMAGE) == first
    assert loader.load(model, given=IMAGE) == first
    assert framework.asked == ["infer", "infer"]


def test_models_load_without_a_writable_folder(model: ModelSource, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    framework = TableFramework()
    loader = Loader(tmp_path / "file" / "cache", framework)
    assert loader.load(model, given=IMAGE) == loader.load(model, given=IMAGE)
    assert framework.asked == ["infer", "infer"]


def test_an_operator_missing_in_one_framework_is_asked_of_another(tmp_path: Path) -> None:
    source = saved(tmp_path, [variable("data"), node("OnlyTheOtherHasThis", "x", 0)])
    graph = Loader(tmp_path / "cache", TableFramework("old")).load(source, given=IMAGE)
    assert graph.layers[0].unmeasurable is not None
    newer = TableFramework("new", {"OnlyTheOtherHasThis": lambda data, params: ([data[0]], [])})
    assert Loader(tmp_path / "cache", newer).load(source, given=IMAGE).layers[0].unmeasurable is None
    known = saved(tmp_path, small_network(), "known")
    Loader(tmp_path / "cache", TableFramework("old")).load(known, given=IMAGE)
    Loader(tmp_path / "cache", newer).load(known, given=IMAGE)
    assert newer.asked == ["infer"]


def test_fused_graphs_of_different_frameworks_are_cached_separately(model: ModelSource, tmp_path: Path) -> None:
    for identity in ("mxnet-1.8", "mxnet-1.9"):
        framework = TableFramework(identity)
        Loader(tmp_path / "cache", framework).load(model, Level.FUSED, IMAGE)
        assert "fuse" in framework.asked


# Shapes that are missing.


def test_a_model_without_any_shape_is_refused_before_the_framework_starts(model: ModelSource, tmp_path: Path) -> None:
    with pytest.raises(MissingShapeError, match=r"^net does not say the shape of: data$"):
        Loader(tmp_path, NoFramework()).load(model)


def test_an_input_that_inference_cannot_determine_has_to_be_given(tmp_path: Path) -> None:
    nodes = [variable("left"), variable("right"), node("Concat", "both", 0, 1)]
    framework = TableFramework()
    loader = Loader(tmp_path, framework)
    source = saved(tmp_path, nodes)
    for _ in range(2):
        with pytest.raises(MissingShapeError, match=r"does not say the shape of: right$") as refusal:
            loader.load(source, given={"left": (1, 2)})
        assert list(refusal.value.examples) == ["right"]
    assert framework.asked == ["infer"]
    graph = loader.load(source, given={"left": (1, 2), "right": (1, 3)})
    assert graph.layers[0].outputs[0].shape == (1, 5)


# What the framework refuses.


def test_a_contradiction_is_reported_in_the_names_of_the_model(tmp_path: Path) -> None:
    nodes = [variable("one"), variable("other"), node("elemwise_add", "my sum", 0, 1)]
    with pytest.raises(InconsistentModelError, match=r"^net: operator 'my sum' disagrees$"):
        Loader(tmp_path, TableFramework()).load(saved(tmp_path, nodes), given={"one": (1, 2), "other": (1, 3)})


def test_a_model_that_cannot_be_fused_is_refused_at_that_level_only(tmp_path: Path) -> None:
    source = saved(tmp_path, [variable("data"), node("NeverFuses", "x", 0)])
    loader = Loader(tmp_path / "cache", TableFramework())
    with pytest.raises(FusionRefusedError, match=r"^net: Error in operator 'x': Shape inconsistent$"):
        loader.load(source, Level.FUSED, IMAGE)
    assert len(loader.load(source, given=IMAGE).layers) == 1


def test_an_answer_about_another_graph_is_refused(model: ModelSource, tmp_path: Path) -> None:
    class Confused(TableFramework):
        def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
            return GraphAnswer(())

    with pytest.raises(ModelError, match="net: 0 nodes were answered for a graph of 18"):
        Loader(tmp_path, Confused()).load(model, given=IMAGE)


# Levels.


@pytest.fixture
def levels(tmp_path: Path) -> tuple[LayerGraph, LayerGraph]:
    nodes = [
        variable("picture"),
        variable("conv0_weight"),
        variable("conv0_bias"),
        node("Convolution", "conv0", 0, 1, 2, kernel="(3, 3)", num_filter="8", __layer__="first"),
        node("Activation", "relu0", 3, act_type="relu", __layer__="second"),
        variable("grid", __shape__="(1, 8, 30, 30)", __layer__="Grid"),
        node("elemwise_add", "sum0", 4, 5, __layer__="third", __times__="1"),
    ]
    loader = Loader(tmp_path / "cache", TableFramework())
    source, given = saved(tmp_path, nodes), {"picture": (1, 3, 32, 32)}
    return loader.load(source, given=given), loader.load(source, Level.FUSED, given)


def test_fused_layers_are_those_that_the_framework_runs(levels: tuple[LayerGraph, LayerGraph]) -> None:
    written, fused = levels
    assert [it.op for it in written.layers] == ["conv", "relu", "constant", "add"]
    assert [it.op for it in fused.layers] == ["conv+relu", "constant", "add"]
    assert fused.level is Level.FUSED
    assert fused.layers[0].kind is Kind.CONVOLUTION
    assert fused.layers[0].weights == written.layers[0].weights
    assert fused.layers[0].outputs == written.layers[1].outputs


def test_layers_of_both_levels_refer_to_the_nodes_of_the_file(levels: tuple[LayerGraph, LayerGraph]) -> None:
    written, fused = levels
    assert shared_layers(fused, written) == ((0, 1), (2,), (3,))
    assert shared_layers(written, fused) == ((0,), (0,), (1,), (2,))
