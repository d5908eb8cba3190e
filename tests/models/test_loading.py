"""Models from the cache or by a framework at either level, quantised copies, and workers that fail."""

import gzip
import json
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto
from onnx.helper import make_node, make_tensor

from dlbricks_tui.models import cache, loading
from dlbricks_tui.models.cache import Cache, GraphAnswer
from dlbricks_tui.models.errors import FusionRefusedError, InconsistentModelError, MissingShapeError, ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level, NativeNode, Numbers, Shape, TensorType
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.models.loading import Loader, quantised_copy
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerDiedError, WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Reason
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.variant import Precision
from tests.attack.damage import WAYS
from tests.models import onnx_models
from tests.models.symbols import Node, content, node, refusal, shared_layers, small_network, variable
from tests.models.table_framework import TableFramework
from tests.runtime.engines import framework_of

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


def test_other_shapes_and_frameworks_have_their_own_cache_entries(model: ModelSource, tmp_path: Path) -> None:
    framework = TableFramework()
    loader = Loader(tmp_path / "cache", framework)
    small, large = (loader.load(model, given={"data": (1, 3, side, side)}) for side in (16, 32))
    assert [graph.layers[0].outputs[0].shape for graph in (small, large)] == [(1, 8, 16, 16), (1, 8, 32, 32)]
    assert framework.asked == ["infer", "infer"]
    for identity in ("mxnet-1.8", "mxnet-1.9"):
        framework = TableFramework(identity)
        Loader(tmp_path / "cache", framework).load(model, Level.FUSED, IMAGE)
        assert "fuse" in framework.asked


def test_models_with_delivered_types_need_neither_framework_nor_cache_unless_the_file_has_changed(
    model: ModelSource, tmp_path: Path
) -> None:
    framework = TableFramework()
    loader = Loader(tmp_path / "cache", framework)
    first = loader.load(model, given=IMAGE)
    (delivered,) = cached_files(tmp_path / "cache")
    source = ModelSource(model.name, model.path, inputs=IMAGE, types=delivered)
    assert Loader(tmp_path / "nothing", NoFramework()).load(source) == first
    assert cached_files(tmp_path / "nothing") == []
    changed = saved(tmp_path, [*small_network(), node("relu", "more", 17)], "changed")
    assert len(loader.load(replace(source, path=changed.path)).layers) == 9
    assert framework.asked == ["infer", "infer"]


def with_other(**facts: object) -> Callable[[str], str]:
    return lambda text: json.dumps(json.loads(text) | facts)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "[]",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("float32", "\x00"),
        with_other(key="another"),
        with_other(types=[[[1e999], "float32"]]),
        with_other(types=7),
        with_other(nodes=[[10**9]]),
        with_other(nodes=[]),
        with_other(unknown=[[]]),
        lambda text: "[" * 100_000,
    ],
)
def test_a_damaged_cache_is_ignored(model: ModelSource, tmp_path: Path, damage: Callable[[str], str]) -> None:
    framework = TableFramework()
    loader = Loader(tmp_path / "cache", framework)
    first = loader.load(model, given=IMAGE)
    (cached,) = cached_files(tmp_path / "cache")
    cached.write_text(damage(cached.read_text()))
    for entry in (tmp_path / "cache" / "models").iterdir():
        entry.unlink()
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
    known = saved(tmp_path, small_network(), "known")
    old = Loader(tmp_path / "cache", TableFramework("old"))
    assert old.load(source, given=IMAGE).layers[0].unmeasurable is not None
    old.load(known, given=IMAGE)
    newer = TableFramework("new", {"OnlyTheOtherHasThis": lambda data, params: ([data[0]], [])})
    new = Loader(tmp_path / "cache", newer)
    assert new.load(source, given=IMAGE).layers[0].unmeasurable is None
    new.load(known, given=IMAGE)
    assert newer.asked == ["infer"]


# What is missing, and what the framework refuses.


def test_a_model_without_any_shape_is_refused_before_the_framework_starts(model: ModelSource, tmp_path: Path) -> None:
    with pytest.raises(MissingShapeError, match=r"^net does not say the shape of: data$"):
        Loader(tmp_path, NoFramework()).load(model)


def test_an_input_that_inference_cannot_determine_has_to_be_given(tmp_path: Path) -> None:
    framework = TableFramework()
    loader = Loader(tmp_path, framework)
    source = saved(tmp_path, [variable("left"), variable("right"), node("Concat", "both", 0, 1)])
    for _ in range(2):
        with pytest.raises(MissingShapeError, match=r"does not say the shape of: right$") as refused:
            loader.load(source, given={"left": (1, 2)})
        assert list(refused.value.examples) == ["right"]
    assert framework.asked == ["infer"]
    graph = loader.load(source, given={"left": (1, 2), "right": (1, 3)})
    assert graph.layers[0].outputs[0].shape == (1, 5)


def test_refusals_of_a_framework_are_reported_in_the_names_of_the_model(model: ModelSource, tmp_path: Path) -> None:
    loader = Loader(tmp_path / "cache", TableFramework())
    source = saved(tmp_path, [variable("one"), variable("other"), node("elemwise_add", "my sum", 0, 1)], "sum")
    with pytest.raises(InconsistentModelError, match=r"^sum: operator 'my sum' disagrees$"):
        loader.load(source, given={"one": (1, 2), "other": (1, 3)})
    # A model that cannot be fused is refused at that level only.
    source = saved(tmp_path, [variable("data"), node("NeverFuses", "x", 0)], "odd")
    with pytest.raises(FusionRefusedError, match=r"^odd: Error in operator 'x': Shape inconsistent$"):
        loader.load(source, Level.FUSED, IMAGE)
    assert len(loader.load(source, given=IMAGE).layers) == 1

    class Confused(TableFramework):
        def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
            return GraphAnswer(())

    with pytest.raises(ModelError, match="net: 0 nodes were answered for a graph of 18"):
        Loader(tmp_path, Confused()).load(model, given=IMAGE)


def test_fused_layers_are_those_that_the_framework_runs_and_both_levels_refer_to_the_nodes_of_the_file(
    tmp_path: Path,
) -> None:
    nodes = [
        variable("picture"),
        variable("conv0_weight"),
        variable("conv0_bias"),
        node("Convolution", "conv0", 0, 1, 2, kernel="(3, 3)", num_filter="8", __layer__="first"),
        node("Activation", "relu0", 3, act_type="relu", __layer__="second"),
        variable("grid", __shape__="(1, 8, 30, 30)", __layer__="Grid"),
        node("elemwise_add", "sum0", 4, 5, __layer__="third", __times__="1"),
    ]
    loader, source = Loader(tmp_path / "cache", TableFramework()), saved(tmp_path, nodes)
    written, fused = (loader.load(source, level, {"picture": (1, 3, 32, 32)}) for level in Level)
    assert [it.op for it in written.layers] == ["conv", "relu", "constant", "add"]
    assert [it.op for it in fused.layers] == ["conv+relu", "constant", "add"]
    assert (fused.level, fused.layers[0].kind) == (Level.FUSED, Kind.CONVOLUTION)
    assert fused.layers[0].weights == written.layers[0].weights
    assert fused.layers[0].outputs == written.layers[1].outputs
    assert shared_layers(fused, written) == ((0, 1), (2,), (3,))
    assert shared_layers(written, fused) == ((0,), (0,), (1,), (2,))


# Quantised copies of model files, by a quantiser that only copies.


class Copier(WorkerFramework):
    """Copies files and counts the copies."""

    quantiser = "copier-1"

    def __init__(self, error: Exception | None = None) -> None:
        self.copies = 0
        self._error = error

    def quantise(self, file: Path, copy: Path, inputs: Mapping[str, TensorType], values: Mapping[str, Numbers]) -> None:
        assert inputs == {"x": TensorType((1, 3, 16, 16), "float32")}
        copy.with_name("prepared").write_bytes(b"half")
        copy.write_bytes(file.read_bytes())
        if self._error:
            raise self._error
        self.copies += 1


@pytest.fixture
def source(tmp_path: Path) -> ModelSource:
    return source_of(onnx_models.saved(tmp_path, onnx_models.small()))


@pytest.fixture
def written(tmp_path: Path) -> LayerGraph:
    return onnx_models.loaded(tmp_path, onnx_models.small())


@pytest.mark.parametrize("way", [None, *(way for way in WAYS if way != "a directory")])
def test_a_copy_is_written_once_unless_it_is_damaged_and_keeps_the_name_and_the_shapes_of_the_model(
    way: str | None, source: ModelSource, written: LayerGraph, tmp_path: Path
) -> None:
    copier = Copier()
    found = quantised_copy(source, b"content", written, Cache(tmp_path), copier)
    assert (found.name, found.inputs) == (source.name, {"x": (1, 3, 16, 16)})
    if way is not None:
        WAYS[way](found.path)
    assert quantised_copy(source, b"content", written, Cache(tmp_path), copier) == found
    assert found.path.read_bytes() == source.path.read_bytes()
    assert copier.copies == (1 if way is None else 2)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (WorkerRefusedError(Reason.UNBUILDABLE, "it has no layers", None), "it has no layers"),
        (WorkerDiedError("the worker died (SIGKILL)"), "the worker died (SIGKILL)"),
    ],
    ids=["refusal", "crash"],
)
def test_a_quantiser_that_fails_names_the_model_and_leaves_no_file(
    error: Exception, said: str, source: ModelSource, written: LayerGraph, tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "cache")
    message = refusal(lambda: quantised_copy(source, b"content", written, cache, Copier(error)))
    assert message == f"net cannot be quantised: {said}"
    assert not list((tmp_path / "cache" / "quantised").iterdir())


def test_a_cache_that_cannot_be_written_is_named(source: ModelSource, written: LayerGraph, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no folder")
    message = refusal(lambda: quantised_copy(source, b"content", written, Cache(tmp_path / "file"), Copier()))
    assert "net cannot be quantised: " in message
    assert "file/quantised cannot be written: Not a dir" in message


def test_models_that_are_quantised_already_or_too_large_are_refused_before_they_are_quantised(
    source: ModelSource, written: LayerGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = make_tensor("w", TensorProto.INT8, (16, 4), [1] * 64)
    scale = make_tensor("s", TensorProto.FLOAT, (), [0.1])
    nodes = [make_node("DequantizeLinear", ["w", "s"], ["d"]), make_node("MatMul", ["x", "d"], ["y"])]
    graph = onnx_models.loaded(tmp_path, onnx_models.model(nodes, {"x": (1, 16)}, ["y"], [weight, scale]))
    monkeypatch.setattr(loading, "MOST_WEIGHT_BYTES", 100)
    for refused, said in ((graph, "is quantised in its file, and runs as it is"), (written, "GiB of weights")):
        with pytest.raises(ModelError, match=said):
            quantised_copy(source, b"content", refused, Cache(tmp_path), Copier())


def test_copies_used_longest_ago_make_room(
    source: ModelSource, written: LayerGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_COPIED_BYTES", 2 * source.path.stat().st_size)
    copies = [quantised_copy(source, it, written, Cache(tmp_path), Copier()).path for it in (b"1", b"2", b"3")]
    assert copies[-1].is_file()
    assert not all(path.is_file() for path in copies)


# Workers of frameworks that fail.

FAKE_WORKER = Path(__file__).parents[1] / "runtime" / "fake_worker.py"
SYMBOL = "{}"


def framework(folder: Path, manner: str) -> WorkerFramework:
    """Return a framework with that kind of failure."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nshift; exec "{sys.executable}" "{FAKE_WORKER}" "$@"\n')
    python.chmod(0o755)
    settings = Settings(environment=(("FAKE_WORKER", manner),))
    return WorkerFramework(Runtime("fake", str(python), "mxnet", "1.0", "3.7", settings), folder / "framework.log")


@pytest.mark.parametrize(
    ("precision", "told"),
    [(Precision.F32, "openvino-2026.4"), (Precision.BF16, "openvino-2026.4 precision-bf16")],
)
def test_the_identity_of_a_framework_tells_another_precision_as_it_may_fuse_otherwise(
    precision: Precision, told: str, tmp_path: Path
) -> None:
    runtime = Runtime("fake", sys.executable, "openvino", "2026.4", "3.11", Settings(precision=precision))
    assert WorkerFramework(runtime, tmp_path / "framework.log").identity == told


def test_a_crash_while_fusing_counts_as_a_refusal_and_another_one_is_an_error(tmp_path: Path) -> None:
    with framework(tmp_path, "crash") as dying:
        with pytest.raises(WorkerRefusedError, match="killed by SIGSEGV") as caught:
            dying.fuse(SYMBOL, {})
        assert caught.value.reason is Reason.UNFUSABLE
        with pytest.raises(WorkerDiedError):
            dying.infer(SYMBOL, {})


def test_a_worker_that_dies_once_is_asked_again_as_the_cache_keeps_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, asked = WorkerFramework._answer, list[Any]()

    def dying(found: WorkerFramework, *question: Any) -> Any:
        asked.append(question)
        if len(asked) == 1:
            raise WorkerDiedError("the worker was killed by SIGKILL")
        return answer(found, *question)

    monkeypatch.setattr(WorkerFramework, "_answer", dying)
    with framework(tmp_path, "refuse") as found, pytest.raises(WorkerRefusedError, match="it does not fit"):
        found.fuse(SYMBOL, {})


def test_an_interrupted_framework_is_an_error_and_not_a_refusal(tmp_path: Path) -> None:
    with framework(tmp_path, "hang") as hanging:
        log = tmp_path / "framework.log"

        def interrupt_when_started() -> None:
            for _ in range(6000):
                if log.exists() and log.read_text():
                    break
                threading.Event().wait(0.01)
            hanging.interrupt()

        thread = threading.Thread(target=interrupt_when_started)
        thread.start()
        with pytest.raises(WorkerDiedError, match="killed by SIGKILL"):
            hanging.fuse(SYMBOL, {})
        thread.join()


def test_a_missing_framework_is_searched_for_once_until_a_retry(tmp_path: Path) -> None:
    tries, python = tmp_path / "tries", tmp_path / "python"
    missing = framework(tmp_path, "no framework")
    python.write_text(python.read_text().replace("shift;", f"echo >> {tries}; shift;"))
    with missing:
        for searched in (1, 1, 2):
            if searched == 2:
                missing.retry_missing()
            with pytest.raises(FrameworkMissingError, match="dlbricks runtimes add"):
                missing.infer(SYMBOL, {})
            assert len(tries.read_text()) == searched


# Models read with the real MXNet.


@pytest.fixture(scope="module")
def loader(our_runtime: Runtime, mxnet_worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Loader:
    return Loader(tmp_path_factory.mktemp("cache"), framework_of(our_runtime, mxnet_worker))


@pytest.mark.mxnet
def test_fusing_joins_layers_and_records_which(loader: Loader, tmp_path: Path) -> None:
    source = saved(tmp_path, small_network())
    written, fused = loader.load(source, given=IMAGE), loader.load(source, Level.FUSED, IMAGE)
    assert len(fused.layers) < len(written.layers)
    assert fused.layers[0].name == "conv0"
    pieces = shared_layers(fused, written)
    assert pieces[0] == (0, 1, 2)
    assert {layer for found in pieces for layer in found} == set(range(len(written.layers)))


@pytest.mark.mxnet
def test_an_array_added_by_fusion_gets_the_size_that_its_readers_need(loader: Loader, tmp_path: Path) -> None:
    def start(shape: str) -> NativeNode:
        nodes = [variable("data"), node("_zeros", "start", shape=shape), node("elemwise_add", "sum", 0, 1)]
        graph = loader.load(saved(tmp_path, nodes), given={"data": (5, 7)})
        (operator,) = next(it for it in graph.layers if it.name == "start").operators
        return operator.native

    assert start("(0, 7)") == start("(-1, 7)") == start("(5, 7)") == NativeNode("_zeros", (("shape", "(5, 7)"),))


@pytest.mark.mxnet
def test_a_fused_operator_keeps_copies_of_shared_weights(loader: Loader, tmp_path: Path) -> None:
    arrays = [variable("data"), variable("fc_weight"), variable("fc_bias")]
    about = {"num_hidden": "512", "flatten": "False"}
    steps = [node("FullyConnected", f"step{place}", last, 1, 2, **about) for place, last in enumerate((0, 3))]
    source = saved(tmp_path, [*arrays, *steps])
    once = 4 * (512 * 512 + 512)
    assert loader.load(source, given={"data": (1, 512)}).weight_bytes == once
    assert loader.load(source, Level.FUSED, {"data": (1, 512)}).weight_bytes == 2 * once
