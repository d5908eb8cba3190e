"""A suite from the owner to the vendor, and its results back."""

import errno
import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_tensor_value_info
from onnx.numpy_helper import to_array

from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence, decompose
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder, RunFolders, State
from dlbricks_tui.models.graph import Feed, LayerGraph, Level, NativeNode, Operator, TensorType
from dlbricks_tui.models.library import Library, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.mxnet_file import Framework
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.events import ModelLeftOut, Planned, RunEnded
from dlbricks_tui.runs.request import SuiteChoice, read_request
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share import exporting, packing
from dlbricks_tui.share.errors import ShareError, UnsuitableLayersError
from dlbricks_tui.share.exporting import BricksChecked, assemble, write_assembled
from dlbricks_tui.share.mxnet_excerpts import MXNetExcerpts, MXNetReader
from dlbricks_tui.share.mxnet_network import packed
from dlbricks_tui.share.onnx_checks import check_network
from dlbricks_tui.share.onnx_excerpts import MOST_HOPS, OnnxExcerpts
from dlbricks_tui.share.packing import PackedBrick, Packing, SuiteModel, joined, joined_excerpts
from dlbricks_tui.share.results_file import read_results
from dlbricks_tui.share.suite_files import SuiteKey, key_path, open_suite, read_key, seed_of, sha256, write_key
from dlbricks_tui.share.suite_runs import execute_any
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import ANY_CONTEXT, Failure, Measurement
from dlbricks_tui.store.selections import equal
from tests.bricks.graphs import DATA, Spec, after, built
from tests.models.onnx_models import loaded, small
from tests.models.table_framework import TableFramework
from tests.runtime import onnx_cases
from tests.runtime.engines import framework_of
from tests.share.trio import PRIVATE_WIDTHS, Trio, network, packings
from tests.store.samples import former_calibration


@pytest.fixture
def trio(tmp_path: Path) -> Trio:
    return Trio(tmp_path)


@pytest.fixture
def measured(measured_suite: Trio, tmp_path: Path) -> Trio:
    """A copy of a suite that was measured, whose results are not imported."""
    copytree(measured_suite.path, tmp_path / "measured")
    return Trio(tmp_path / "measured")


@pytest.mark.parametrize(("level", "in_one_file"), [(Level.FUSED, False), (Level.WRITTEN, True)])
def test_a_suite_measures_exactly_the_missing_bricks(trio: Trio, level: Level, in_one_file: bool) -> None:
    assembled = trio.export(level)
    assert not assembled.left_out
    suite = trio.path / "one.dlbricks" if in_one_file else trio.suite
    if in_one_file:
        write_assembled(assembled, suite, suite.with_suffix(".key"))
    state = trio.run(suite=SuiteChoice(suite, trio.results))
    assert (state.state, state.bricks.failed) == (State.FINISHED, 0)
    assert state.bricks.measured == len(assembled.manifest.bricks)
    found = trio.bring_home()
    assert (found.failed, found.missing) == (0, 0)
    assert found.decoys == len(assembled.key.decoys)
    private = trio.taken_apart(PRIVATE_WIDTHS, level)
    bricks = {(brick, ANY_CONTEXT) for brick, _ in private.pairs}
    assert set(trio.owner.contents().measured) == bricks
    assert found.new == len(bricks)


def test_bricks_of_models_that_no_cache_holds_are_cold(trio: Trio) -> None:
    models = [SuiteModel(trio.taken_apart(widths, Level.WRITTEN)) for widths in ((200, 400, 400), (24,))]
    suite = assemble(models, [], seed_of("a seed"), Level.WRITTEN, packings(Level.WRITTEN))
    cold = {suite.key.meanings[brick.id].brick: brick.cold for brick in suite.manifest.bricks}
    large, small = (model.bricks.keys() for model in models)
    # A brick of both is packed once.
    assert {cold[brick] for brick in large} == {True}
    assert {cold[brick] for brick in small - large} == {False}


def test_results_of_earlier_versions_are_imported_without_their_calibrations(measured: Trio) -> None:
    document = json.loads(measured.results.read_bytes())
    del document["check"]
    for part in document["parts"]:
        part["calibrations"] = [former_calibration()]
    document["check"] = sha256(json.dumps(document, sort_keys=True).encode())
    measured.results.write_text(json.dumps(document))
    found = measured.bring_home()
    assert found.new and found.calibrations == 0
    with ResultsDatabase(measured.owner.data.store) as store:
        assert "calibrations" not in store.tables()


def test_a_run_that_ended_early_writes_its_results_and_can_be_resumed(trio: Trio) -> None:
    assembled = trio.export()
    events: list[Event] = []

    def clock() -> float:
        # The budget is used up once the bricks are known.
        return 1e6 * any(isinstance(event, Planned) for event in events)

    trio.run(events, clock, time_budget_seconds=1000.0)
    assert not read_results(trio.results).parts[0].measured
    (state,) = RunFolders(trio.vendor.data.runs).states()
    folder = RunFolder(trio.vendor.data.runs / state.run)
    request = replace(read_request(folder.request_file), time_budget_seconds=None)
    assert request.suite is not None
    execute_any(folder, request, trio.vendor.place, trio.vendor.queue)
    assert len(read_results(trio.results).parts[0].measured) == len(assembled.manifest.bricks)


def test_a_run_ends_once_its_results_are_written_and_fails_if_they_cannot_be(trio: Trio) -> None:
    trio.export()
    written: list[bool] = []

    def listen(event: Event) -> None:
        if isinstance(event, RunEnded):
            written.append(trio.results.exists())

    request = trio.request()
    execute_any(create_run(request, trio.vendor.data), request, trio.vendor.place, trio.vendor.queue, listener=listen)
    assert written == [True]
    trio.results.unlink()
    trio.results.mkdir()
    with pytest.raises(ShareError, match="the results are stored"):
        trio.run()
    assert RunFolders(trio.vendor.data.runs).find("last").state().state is State.FAILED


def test_bricks_that_cannot_be_read_or_crash_a_worker_fail_alone_and_the_owner_gets_the_reasons(
    trio: Trio, monkeypatch: pytest.MonkeyPatch
) -> None:
    assembled = trio.export()
    files = {name: trio.suite / "bricks" / f"{name}-symbol.json" for name in sorted(assembled.key.meanings)}
    mine = next(name for name, file in files.items() if "softmax" not in file.read_text())
    files[mine].write_text("{}")
    monkeypatch.setenv("FAKE_MANNERS", '{"softmax": "crash on load"}')
    events: list[Event] = []
    state = trio.run(events)
    (left_out,) = [event for event in events if isinstance(event, ModelLeftOut)]
    assert mine in left_out.reason
    assert state.bricks.failed == 1
    found = trio.bring_home()
    assert (found.failed, found.missing) == (2, 0)
    failures = {failure.brick for failure in trio.owner.contents().failures}
    assert len(failures) == 2
    # A second import adds nothing.
    trio.bring_home()
    assert len(trio.owner.contents().failures) == 2
    with ResultsDatabase(trio.owner.data.store) as store:
        assert not store.records(Failure, own=True), "a run of the owner tries them"
    assert {failure.context for failure in trio.owner.contents().failures} == {ANY_CONTEXT}
    assert assembled.key.meanings[mine].brick in failures


def test_results_come_home_once_by_the_key_and_count_after_own_ones(measured: Trio) -> None:
    # A suite that is measured again reuses its results.
    content = measured.results.read_bytes()
    again = measured.run()
    assert (again.bricks.measured, again.bricks.reused) == (0, len(read_results(measured.results).parts[0].measured))
    assert measured.results.read_bytes() == content
    suite = read_results(measured.results).suite
    first, second = measured.bring_home(), measured.bring_home()
    assert (second.new, second.known) == (0, first.new)
    with ResultsDatabase(measured.owner.data.store) as store:
        assert {it.run for it in store.records(Measurement)} == {f"suite-{suite[:12]}"}
        theirs = store.records(Measurement)[0]
        own = replace(theirs, uuid="0" * 32, when="2020-01-01T00:00:00+00:00")
        store.add(own)
        found = store.least_first(Measurement, equal(brick=theirs.brick, context=theirs.context))
    assert theirs in found and found[-1] == own
    key_path(measured.owner.data, suite).unlink()
    with pytest.raises(ShareError, match="--key FILE"):
        measured.bring_home()


def test_a_suite_describes_no_known_system_anew(measured: Trio) -> None:
    theirs = read_results(measured.results).system
    own = replace(theirs, memory_bytes=2 * theirs.memory_bytes)
    with ResultsDatabase(measured.owner.data.store) as store:
        store.add(own)
    measured.bring_home()
    with ResultsDatabase(measured.owner.data.store) as store:
        assert store.systems() == (own,)


def test_a_key_of_an_earlier_version_has_contexts_that_count_no_more(measured: Trio) -> None:
    path = key_path(measured.owner.data, read_results(measured.results).suite)
    document = json.loads(path.read_bytes())
    name, meaning = next(iter(document["meanings"].items()))
    # A brick had an id in each of its contexts.
    document["meanings"] |= {name: {**meaning, "context": "conv"}, "e" * 32: {**meaning, "context": "plain;cold"}}
    path.write_text(json.dumps(document))
    found = measured.bring_home()
    assert (found.new, found.missing) == (len(document["meanings"]) - 1, 0)
    assert {context for _, context in measured.owner.contents().measured} == {ANY_CONTEXT}


def test_only_the_owner_can_read_the_key(trio: Trio) -> None:
    assembled = trio.export()
    path = key_path(trio.owner.data, assembled.manifest.suite)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key(path) == assembled.key
    assert not list(trio.suite.rglob("*key*"))


def test_a_suite_in_one_file_holds_the_same_as_a_folder(trio: Trio) -> None:
    assembled = trio.export()
    archives = [trio.path / f"{name}.dlbricks" for name in ("one", "other")]
    for path in archives:
        write_assembled(assembled, path, path.with_suffix(".key"))
    assert archives[0].read_bytes() == archives[1].read_bytes()
    folder, archive = open_suite(trio.suite), open_suite(archives[0])
    assert (archive.manifest, archive.sha256) == (folder.manifest, folder.sha256)
    for brick in folder.manifest.bricks:
        assert archive.network(brick) == folder.network(brick)


def test_equal_seeds_give_equal_suites_and_different_seeds_different_ones(trio: Trio, tmp_path: Path) -> None:
    one, same, other = (Trio(tmp_path / name) for name in ("one", "same", "other"))
    for each in (one, same, other):
        each.path.mkdir()
    suites = [one.export(seed="s"), same.export(seed="s"), other.export(seed="t")]
    assert suites[0].manifest == suites[1].manifest
    ids = [{brick.id for brick in suite.manifest.bricks} for suite in suites]
    assert ids[0].isdisjoint(ids[2])


def test_an_export_tells_how_far_it_is(trio: Trio, monkeypatch: pytest.MonkeyPatch) -> None:
    now, pack = 0.0, Packing.packed

    def begin_slowly(self: Packing, model: SuiteModel, bricks: Mapping[str, Occurrence]) -> Iterator[PackedBrick]:
        nonlocal now
        for number, brick in enumerate(pack(self, model, bricks)):
            now += 2.0 if number else 100.0
            yield brick

    monkeypatch.setattr(Packing, "packed", begin_slowly)
    monkeypatch.setattr(exporting, "time", SimpleNamespace(monotonic=lambda: now))
    model, told = SuiteModel(trio.taken_apart(PRIVATE_WIDTHS, Level.WRITTEN)), list[Event]()
    found = assemble([model], [], seed_of("a seed"), Level.WRITTEN, packings(Level.WRITTEN), tell=told.append)
    bricks = len(found.manifest.bricks) + len(found.left_out)
    # The first brick waits for the framework.
    assert bricks > 3
    assert told == [BricksChecked(done, bricks, 2.0 * (bricks - done)) for done in range(2, bricks + 1)]


GIBIBYTE = 1 << 30


def packed_bricks(decomposition: Decomposition, framework: Framework) -> Sequence[PackedBrick]:
    """Return the files of all bricks of a model, each read back."""
    model = SuiteModel(decomposition)
    reader = MXNetReader(framework, decomposition.graph.level, 64 * GIBIBYTE)
    return list(Packing(reader.read).packed(model, model.bricks))


@pytest.fixture
def private(tmp_path: Path) -> Path:
    path = tmp_path / "private-symbol.json"
    path.write_bytes(network((8, 16, 24)))
    return path


@pytest.mark.parametrize("level", list(Level))
def test_a_brick_arrives_unchanged_between_its_neighbours_and_behind_what_sets_layouts(
    private: Path, tmp_path: Path, level: Level
) -> None:
    graph = Loader(tmp_path / "cache", TableFramework()).load(source_of(private), level)
    found = packed_bricks(decompose(graph), TableFramework())
    assert len(found) == len(set(keys(graph))) and not [it.reason for it in found if it.reason]
    reader = MXNetReader(TableFramework(), level, GIBIBYTE)
    pools = [it.index for it in graph.layers if it.op == "max_pool"]
    read = reader.read(next(MXNetExcerpts(graph).around(pools[0])))
    # The image and the convolution in front of the pooling set its layout.
    expected = range(pools[0] + 2)
    assert keys(read) == [keys(graph)[index] for index in expected]
    assert [layer.feeds for layer in read.layers] == [graph.layers[index].feeds for index in expected]
    # Results of the excerpt: what the rest of the model reads.
    assert read.heads == (Feed(expected[-1], 0),)


def test_a_brick_whose_neighbour_cannot_travel_travels_without_it(private: Path, tmp_path: Path) -> None:
    graph = Loader(tmp_path / "cache", TableFramework()).load(source_of(private))
    relu = next(it for it in graph.layers if it.op == "relu")
    custom = replace(relu, operators=(replace(relu.operators[0], native=NativeNode("Custom")),))
    changed = replace(graph, layers=tuple(custom if it is relu else it for it in graph.layers))
    (content,) = MXNetExcerpts(changed).around(relu.index - 1)
    assert keys(MXNetReader(TableFramework(), Level.WRITTEN, GIBIBYTE).read(content)) == keys(graph)[: relu.index]


@pytest.mark.mxnet
@pytest.mark.parametrize(
    ("names", "levels"),
    [
        (["CapsNet Trained on MNIST Data"], [Level.WRITTEN]),
        pytest.param([], Level, marks=pytest.mark.soak),
    ],
    ids=["one", "all samples"],
)
def test_bricks_of_real_models_arrive_unchanged_with_mxnet(
    our_runtime: Runtime, mxnet_worker: Worker, tmp_path: Path, names: list[str], levels: list[Level]
) -> None:
    framework = framework_of(our_runtime, mxnet_worker)
    library, loader = Library(SAMPLE_MODELS, tmp_path), Loader(tmp_path / "cache", framework)
    for source in library.find_all(names) if names else library.samples():
        for level in levels if source.format is Format.MXNET else ():
            found = packed_bricks(decompose(loader.load(source, level)), framework)
            assert not [it.reason for it in found if it.reason]


def of_mxnet(graph: LayerGraph) -> LayerGraph:
    """Return a graph of relus as MXNet spells them."""
    return replace(graph, layers=tuple(replace(it, operators=(relu(it.operators[0]),)) for it in graph.layers))


def test_a_layer_that_is_repeated_travels_once() -> None:
    graph = of_mxnet(built([Spec("relu", DATA, times=4), Spec("relu", after(0), times=2)]))
    nodes = json.loads(next(MXNetExcerpts(graph).around(0)))["nodes"]
    assert [node["op"] for node in nodes if node["op"] != "null"] == ["relu", "relu"]


def test_results_that_other_layers_read_are_outputs_of_an_excerpt() -> None:
    # The last one reads the first one, too, and is no neighbour of the second one.
    graph = of_mxnet(built([Spec("relu", DATA), *(Spec("relu", after(it)) for it in (0, 1, 0))]))
    document = json.loads(next(MXNetExcerpts(graph).around(1)))
    assert [document["nodes"][node]["attrs"]["__layer__"] for node, *_ in document["heads"]] == ["0", "2"]


def relu(operator: Operator) -> Operator:
    """Return an operator as MXNet spells a relu."""
    return replace(operator, native=NativeNode("relu"))


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
    graphs = [loader.load(source_of(path)) for path in (plain, other)]
    one, same = ([it.content for it in packed_bricks(decompose(graph), TableFramework())] for graph in graphs)
    assert one == same


def test_a_brick_with_an_undeclared_parameter_is_not_exported(tmp_path: Path) -> None:
    content = json.loads(network((8,)))
    content["nodes"][-1]["attrs"]["note"] = "from the lab"
    path = tmp_path / "noted-symbol.json"
    path.write_text(json.dumps(content))
    found = packed_bricks(
        decompose(Loader(tmp_path / "cache", TableFramework()).load(source_of(path))), TableFramework()
    )
    assert not [it for it in found if b"lab" in it.content]
    assert [it.reason for it in found if it.reason] == ["would not be read back as the same brick"]


@pytest.mark.parametrize(
    ("native", "said"),
    [
        *((NativeNode(op), op) for op in ("Custom", "_NDArray", "_cvimread", "MadeUp")),
        (NativeNode("_foreach", (), ("{}",)), "graph inside"),
    ],
)
def test_operators_with_code_files_or_graphs_are_not_exported(
    private: Path, tmp_path: Path, native: NativeNode, said: str
) -> None:
    graph = Loader(tmp_path / "cache", TableFramework()).load(source_of(private))
    operator = replace(graph.layers[0].operators[0], native=native)
    evil = replace(graph, layers=(replace(graph.layers[0], operators=(operator,)),), heads=(Feed(0, 0),))
    with pytest.raises(UnsuitableLayersError, match=said):
        packed(evil)


@pytest.mark.parametrize(("dtype", "number"), [("float16", 2), ("uint8", 3), ("int32", 4), ("int64", 6)])
def test_data_types_are_exported_as_the_numbers_of_mxnet(dtype: str, number: int) -> None:
    graph = built([Spec("relu", DATA)])
    alone = replace(
        graph,
        layers=(replace(graph.layers[0], operators=(relu(graph.layers[0].operators[0]),)),),
        inputs=(graph.inputs[0]._replace(type=TensorType((1, 8), dtype)),),
    )
    assert f'"__dtype__":"{number}"' in packed(alone).decode()


def of_relus(folder: Path, count: int, width: int) -> LayerGraph:
    """Return a chain of a fully connected layer and relus."""
    relus = " ".join(f"y{number + 1} = Relu (y{number})" for number in range(count))
    graph = f"(float[1,8] x) => (y{count}) <float[{width},8] w> {{ y0 = Gemm <transB = 1> (x, w) {relus} }}"
    return loaded(folder, onnx_cases.network(graph))


def keys(graph: LayerGraph) -> list[str]:
    return [brick_of(graph, (layer.index,)).key for layer in graph.layers]


@pytest.fixture
def graphs(tmp_path: Path) -> list[LayerGraph]:
    return [loaded(tmp_path, small()), of_relus(tmp_path, 2, 4), loaded(tmp_path, small())]


def test_a_joined_network_has_the_bricks_of_its_parts_in_their_order(graphs: list[LayerGraph]) -> None:
    assert keys(joined(graphs)) == [key for graph in graphs for key in keys(graph)]


def test_parts_share_no_tensor_and_no_weight(graphs: list[LayerGraph]) -> None:
    network = joined(graphs)
    first = len(graphs[0].layers)
    assert all(feed.layer is None or feed.layer >= first for layer in network.layers[first:] for feed in layer.feeds)
    arrays = [network.layers[index].array(0) for index in (0, first + len(graphs[1].layers))]
    assert len(set(arrays)) == 2
    assert len(network.inputs) == len({given.name for given in network.inputs}) == 3
    # Outputs of all parts stay outputs.
    assert list(network.heads) == [Feed(4, 0), Feed(7, 0), Feed(12, 0)]


def test_layers_at_an_edge_do_not_stand_for_bricks_that_are_inside_of_another_excerpt(tmp_path: Path) -> None:
    # The relu is at an edge of the first chain, and inside of the second.
    short, long = of_relus(tmp_path, 1, 4), of_relus(tmp_path, 2, 4)
    (network,) = joined_excerpts([short, long], [])
    at_edges = {(index, network.graph.layers[index].op) for index in network.edges}
    assert at_edges == {(1, "relu"), (4, "relu")}
    # A brick that is at edges only is timed there.
    assert not joined_excerpts([short], [])[0].edges


def test_networks_are_of_about_equal_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_WARM_BYTES", 2_000)
    excerpts = [of_relus(tmp_path, 1, 8) for _ in range(23)]
    sizes = [len(it.graph.layers) for it in joined_excerpts(excerpts, [])]
    assert len(sizes) > 2
    assert sum(sizes) == 46
    assert max(sizes) <= min(sizes) + 2


def test_excerpts_of_large_models_are_in_other_networks(tmp_path: Path) -> None:
    warm, cold = of_relus(tmp_path, 1, 4), of_relus(tmp_path, 1, 5)
    networks = joined_excerpts([warm], [cold])
    assert [keys(it.graph) for it in networks] == [keys(warm), keys(cold)]
    assert [it.graph.name for it in networks] == ["excerpts 1", "excerpts 2"]


def chain(folder: Path, *ops: str, batch: int | str = 1) -> LayerGraph:
    """Return a chain of operators on one tensor."""
    nodes = " ".join(f"y{number + 1} = {op} (y{number})" for number, op in enumerate(ops))
    return loaded(folder, onnx_cases.network(f"(float[{batch},4] y0) => (y{len(ops)}) {{ {nodes} }}"))


def read(folder: Path, content: bytes) -> ModelProto:
    """Return the model in a file, which the other side accepts."""
    check_network(content, GIBIBYTE)
    made: ModelProto = ModelProto.FromString(content)
    return made


def ops_of(content: bytes) -> list[str]:
    return [node.op_type for node in ModelProto.FromString(content).graph.node]


def test_an_excerpt_reaches_one_layer_to_either_side_and_then_further(tmp_path: Path) -> None:
    graph = chain(tmp_path, "Relu", "Tanh", "Exp", "Sigmoid", "Sqrt")
    excerpts = OnnxExcerpts(graph, graph).around(2)
    assert [ops_of(each) for each in islice(excerpts, 2)] == [
        ["Tanh", "Exp", "Sigmoid"],
        ["Relu", "Tanh", "Exp", "Sigmoid", "Sqrt"],
    ]
    graph = chain(tmp_path, *(["Relu", "Tanh"] * 10))
    contents = list(OnnxExcerpts(graph, graph).around(10))
    assert len(contents) == MOST_HOPS == 4
    assert len(ops_of(contents[-1])) == 9


def test_excerpts_have_the_shapes_of_the_model_and_the_layers_are_the_same(tmp_path: Path) -> None:
    graph = loaded(tmp_path, small())
    content = next(OnnxExcerpts(graph, graph).around(2))
    path = tmp_path / "excerpt.onnx"
    path.write_bytes(content)
    excerpt = Loader(tmp_path / "cache", TableFramework()).load(source_of(path), Level.WRITTEN)
    own = [layer for layer in excerpt.layers if layer.op != "constant"]
    assert [layer.outputs for layer in own] == [layer.outputs for layer in graph.layers[1:4]]


@pytest.mark.parametrize(("private", "told"), [("0, 0", [0, 0]), ("0, 7", [1, 1])])
def test_of_the_zero_points_of_channels_it_is_told_only_whether_all_are_zero(
    tmp_path: Path, private: str, told: list[int]
) -> None:
    stored = f"<int8[2,2] w = {{3, 4, 5, 6}}, float[2] s = {{0.1, 0.2}}, int8[2] z = {{{private}}}>"
    nodes = "{ d = DequantizeLinear <axis = 1> (w, s, z) a = MatMul (x, d) y = Relu (a) }"
    graph = loaded(tmp_path, onnx_cases.network(f"(float[1,2] x) => (y) {stored} {nodes}"))
    made = read(tmp_path, next(OnnxExcerpts(graph, graph).around(1))).graph
    (points,) = (node.input[2] for node in made.node if node.op_type == "DequantizeLinear")
    (found,) = (to_array(it).tolist() for it in made.initializer if it.name == points)
    assert found == told


def test_made_up_weights_keep_the_size_of_the_numbers_that_they_multiply(tmp_path: Path) -> None:
    graph = loaded(tmp_path, small())
    made = read(tmp_path, next(OnnxExcerpts(graph, graph).around(1))).graph
    filled = {it.output[0]: to_array(it.attribute[0].t).item() for it in made.node if it.op_type == "ConstantOfShape"}
    (weight,) = (filled[node.input[1]] for node in made.node if node.op_type == "Conv")
    # A result of the convolution is the sum of 27 products.
    assert 1 < weight * 27 < 2


def test_a_weight_that_callers_may_replace_travels_as_one(tmp_path: Path) -> None:
    made = small()
    made.graph.input.append(make_tensor_value_info("w", TensorProto.FLOAT, (8, 3, 3, 3)))
    graph = loaded(tmp_path, made)
    content = next(OnnxExcerpts(graph, graph).around(1))
    assert keys(loaded(tmp_path, read(tmp_path, content)))[0] == keys(graph)[0]


def test_tensors_that_others_read_stay_outputs(tmp_path: Path) -> None:
    made = onnx_cases.network("(float[1,4] x) => (y) { a = Relu (x) b = Tanh (a) c = Exp (b) y = Add (a, c) }")
    graph = loaded(tmp_path, made)
    made = read(tmp_path, next(OnnxExcerpts(graph, graph).around(1)))
    # The relu is read by the addition too, which the excerpt lacks.
    assert [node.op_type for node in made.graph.node] == ["Relu", "Tanh", "Exp"]
    assert [output.name for output in made.graph.output] == [
        made.graph.node[0].output[0],
        made.graph.node[2].output[0],
    ]


def test_an_excerpt_of_a_model_with_open_axes_is_also_tried_with_open_axes(tmp_path: Path) -> None:
    graph = chain(tmp_path, "Relu", "Tanh", "Exp", batch="batch")
    fixed, opened = (ModelProto.FromString(each) for each in islice(OnnxExcerpts(graph, graph).around(1), 2))
    axes = [it.graph.input[0].type.tensor_type.shape.dim for it in (fixed, opened)]
    assert [axis.dim_value for axis in axes[0]] == [1, 4]
    assert all(axis.dim_param.startswith("axis") for axis in axes[1])


def test_a_model_with_a_branch_cannot_be_cut(tmp_path: Path) -> None:
    graph = loaded(tmp_path, onnx_cases.CASES["If by data"]())
    with pytest.raises(UnsuitableLayersError, match="branches"):
        OnnxExcerpts(graph, graph)


def test_a_key_for_which_the_disk_has_no_room_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    key = SuiteKey("s", "0", Level.FUSED, ("a",), {}, frozenset())
    with monkeypatch.context() as patch, pytest.raises(ShareError, match="No space left on device; nothing was"):
        patch.setattr("dlbricks_tui.share.suite_files.os.fsync", refuse)
        write_key(tmp_path / "key.json", key)
    # The same suite can be exported once there is room.
    write_key(tmp_path / "key.json", key)
