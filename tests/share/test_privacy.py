"""A reader of a suite learns no more about the models than documented."""

import gzip
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

from dlbricks_tui.bricks.decomposition import Occurrence, decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.content import GZIP_MAGIC
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Shape
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.exporting import Assembled, assemble, chosen_decoys, like_sized, size_of
from dlbricks_tui.share.packing import PackedBrick, Packing, SuiteModel
from dlbricks_tui.share.suite_files import seed_of
from tests.models.onnx_models import saved
from tests.models.table_framework import TableFramework
from tests.share import onnx_network
from tests.share.trio import PRIVATE_WIDTHS, SECRET, Trio

# A test may fail by chance this often; the seeds are fixed.
P = 0.01
# How many seeds tell what depends on the model by rule, and how many also a slight tendency.
NUMBERS_OF_SEEDS = (150, pytest.param(500, marks=pytest.mark.soak))
# An attacker who sees few suites already finds what tells decoys apart by rule; who sees many, also a slight tendency.
numbers_of_exports = pytest.mark.parametrize("exports", [60, pytest.param(400, marks=pytest.mark.soak)])
# Published networks of several families and sizes; those that are one network under several names are left out.
NETWORKS: Mapping[Format, Sequence[str]] = {
    Format.ONNX: (
        *("alexnet", "resnet18_v1", "vgg11", "squeezenet1.0", "squeezenet1.1", "mobilenet0.5", "mobilenetv2_1.0"),
        "Colorful Image Colorization Trained on ImageNet Competition Data",
        "YOLO V2 Trained on MS-COCO Data",
    ),
    Format.MXNET: (
        *("alexnet", "resnet18_v1", "resnet34_v2", "resnet50_v2", "vgg11", "vgg16_bn", "squeezenet1.0"),
        *("squeezenet1.1", "mobilenet1.0", "mobilenet0.5", "mobilenetv2_1.0", "mobilenetv2_0.5"),
        "Age Estimation VGG-16 Trained on IMDB-WIKI and Looking at People Data",
        "Inception V1 Trained on ImageNet Competition Data",
        "ResNet-50 Trained on ImageNet Competition Data",
        "Wide ResNet-50-2 Trained on ImageNet Competition Data",
        "Yahoo Open NSFW Model V1",
        "Colorful Image Colorization Trained on ImageNet Competition Data",
        "SSD-VGG-300 Trained on PASCAL VOC Data",
        "YOLO V2 Trained on MS-COCO Data",
    ),
}
SECRETS = (onnx_network.SECRET, "image", "scores", "test", "vault-7")
WEIGHT = 0.12345679


def check_order(suites: Sequence[Assembled]) -> None:
    """Check that the places of real bricks are random."""
    total, real = len(suites[0].manifest.bricks), len(suites[0].key.meanings)
    assert 0 < real < total
    places = [
        place for suite in suites for place, brick in enumerate(suite.manifest.bricks) if brick.id in suite.key.meanings
    ]
    # A sum of ranks, as Wilcoxon has it.
    expected = len(suites) * real * (total - 1) / 2
    variance = len(suites) * real * (total - real) * (total + 1) / 12
    assert two_sided((sum(places) - expected) / math.sqrt(variance)) > P
    uniform = Counter(places)
    assert chi_square([uniform[place] for place in range(total)], len(places) / total) > P


def check_ids(suites: Sequence[Assembled]) -> None:
    """Check that the digits of ids are random, of real bricks and of decoys."""
    for digit in range(0, 32, 4):
        real, decoys = Counter[str](), Counter[str]()
        for suite in suites:
            for brick in suite.manifest.bricks:
                (real if brick.id in suite.key.meanings else decoys)[brick.id[digit]] += 1
        for counts in (real, decoys):
            assert chi_square([counts[each] for each in "0123456789abcdef"], counts.total() / 16) > P / 16
    everything = [brick.id for suite in suites for brick in suite.manifest.bricks]
    assert len(set(everything)) == len(everything)


def two_sided(deviation: float) -> float:
    """Return the probability that a standard normal number is at least this far from 0."""
    return math.erfc(abs(deviation) / math.sqrt(2))


def chi_square(counts: Sequence[int], expected: float) -> float:
    """Return the probability of such different counts with equal chances (Wilson-Hilferty approximation)."""
    freedom = len(counts) - 1
    statistic = sum((count - expected) ** 2 / expected for count in counts)
    spread = 2 / (9 * freedom)
    return 0.5 * math.erfc(((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(2 * spread))


# An attack on suites: learn from suites with keys, and guess the decoys of other suites.
Numbers = NDArray[np.float64]
_OPS = ("Convolution", "FullyConnected", "BatchNorm", "Activation", "Pooling", "Concat", "elemwise_add", "Flatten")
_STEPS, _RATE, _RIDGE = 400, 0.5, 1e-3


@dataclass(frozen=True)
class Told:
    """Every brick of some suites: all its fields as numbers, its file, and whether it is real."""

    fields: Numbers
    files: Sequence[bytes]
    real: NDArray[np.bool_]


@dataclass(frozen=True)
class Exported:
    """A suite, and the bricks that its decoys are made of."""

    suite: Assembled
    decoys: frozenset[str]

    def is_both(self, name: str) -> bool:
        """True if a brick belongs to both a private model and a decoy: no guess about it is right or wrong."""
        meaning = self.suite.key.meanings.get(name)
        return meaning is not None and meaning.brick in self.decoys


def told(exported: Sequence[Exported], of_file: Callable[[bytes], Sequence[float]] | None = None) -> Told:
    """Return the features of suites and the truth about their bricks."""
    rows, files, real, described = [], [], [], of_file or _of_mxnet_file
    for each in exported:
        suite, bricks = each.suite, each.suite.manifest.bricks
        for place, brick in enumerate(bricks):
            if each.is_both(brick.id):
                continue
            content = suite.networks[brick.id]
            where = place / len(bricks)
            about = [where, len(bricks), brick.layers, int(brick.cold), brick.bytes]
            rows.append([*about, *_of_id(brick.id), *described(content)])
            files.append(content)
            real.append(brick.id in suite.key.meanings)
    return Told(np.array(rows, dtype=np.float64), files, np.array(real))


def by_regression(seen: Told, other: Told) -> float:
    """Return the accuracy of logistic regression on all fields, with as many real bricks as decoys."""
    mean, scale = seen.fields.mean(axis=0), seen.fields.std(axis=0)
    known, unknown = ((it.fields - mean) / np.where(scale > 0, scale, 1.0) for it in (seen, other))
    # Both kinds count alike, however many there are.
    importance = np.where(seen.real, 0.5 / seen.real.sum(), 0.5 / (~seen.real).sum())
    slope, offset = np.zeros(known.shape[1]), 0.0
    for _ in range(_STEPS):
        error = importance * (1 / (1 + np.exp(-(np.einsum("ij,j->i", known, slope) + offset))) - seen.real)
        slope -= _RATE * (np.einsum("ij,i->j", known, error) + _RIDGE * slope)
        offset -= _RATE * error.sum()
    return _balanced(other, np.einsum("ij,j->i", unknown, slope) + offset > 0)


def by_memory(seen: Told, other: Told) -> float:
    """Return the accuracy of naive Bayes on the files: more often real, or more often a decoy."""
    real, decoys = Counter[bytes](), Counter[bytes]()
    for file, is_real in zip(seen.files, seen.real, strict=True):
        (real if is_real else decoys)[file] += 1
    odds = sum(real.values()) / sum(decoys.values())
    return _balanced(other, np.array([real[file] + odds / 2 > odds * (decoys[file] + 0.5) for file in other.files]))


def _balanced(other: Told, guessed_real: NDArray[np.bool_]) -> float:
    right_of_real, right_of_decoys = guessed_real[other.real].mean(), (~guessed_real)[~other.real].mean()
    return float(right_of_real + right_of_decoys) / 2


def _of_id(name: str) -> list[float]:
    return [int(name[start : start + 2], 16) / 255 for start in range(0, len(name), 2)]


@cache
def _of_mxnet_file(content: bytes) -> list[float]:
    document: dict[str, Any] = json.loads(content)
    nodes = document["nodes"]
    ops = Counter(node["op"] for node in nodes)
    shapes = [_numbers(node["attrs"]["__shape__"]) for node in nodes if node["op"] == "null"]
    kernels = [_numbers(node["attrs"]["kernel"]) for node in nodes if "kernel" in node["attrs"]]
    inputs = [_numbers(node["attrs"]["__shape__"]) for node in nodes if node["name"].startswith("data")]
    first = (inputs or [(1,)])[0]
    axes = [math.log(size) for size in (*first, 1, 1, 1, 1)[:4]]
    return [
        len(nodes),
        len(document["heads"]),
        len(inputs),
        len(shapes),
        sum(map(math.log, map(math.prod, shapes))),
        max(map(math.prod, shapes)) ** 0.25,
        *axes,
        *(first[-1] % divisor == 0 for divisor in (7, 8, 16, 32)),
        *((*first, 1)[1] % divisor == 0 for divisor in (3, 8, 16, 32)),
        kernels[-1][0] if kernels else 0,
        *(ops[op] for op in _OPS),
        sum(ops.values()) - sum(ops[op] for op in _OPS),
    ]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.strip("()").split(",") if each.strip())


def test_a_suite_holds_no_name_no_file_name_and_no_comment_of_the_private_models(tmp_path: Path) -> None:
    trio = Trio(tmp_path)
    trio.export(Level.FUSED)
    graph = trio.taken_apart(PRIVATE_WIDTHS, Level.WRITTEN).graph
    names = {layer.name for layer in graph.layers} | {graph.name, SECRET, "v7", "__comment__", str(tmp_path)}
    files = [path for path in trio.suite.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        text = path.read_text()
        assert not [name for name in names if name in text or name in path.name]


def test_files_differ_in_nothing_but_their_names_and_contents(tmp_path: Path) -> None:
    trio = Trio(tmp_path)
    trio.export()
    facts = {
        (it.stat().st_mtime_ns, it.stat().st_mode, it.stat().st_uid) for it in trio.suite.rglob("*") if it.is_file()
    }
    assert len(facts) == 1
    assert len({path.stat().st_mtime_ns for path in trio.suite.rglob("*")}) == 1


@pytest.fixture(scope="module", params=NUMBERS_OF_SEEDS)
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Assembled]:
    trio = Trio(tmp_path_factory.mktemp("small"))
    mine = [SuiteModel(trio.taken_apart((24, 40), Level.WRITTEN))]
    decoys = [SuiteModel(trio.taken_apart((16, 48), Level.WRITTEN, "decoy"))]
    packing = PackedOnce([*mine, *decoys])
    return [
        assemble(mine, decoys, seed_of(f"seed {number}"), Level.WRITTEN, {"mxnet": packing})
        for number in range(request.param)
    ]


def test_the_order_shows_no_dependence_on_the_model(small: Sequence[Assembled]) -> None:
    check_order(small)


def test_each_brick_of_the_model_may_have_any_place(small: Sequence[Assembled]) -> None:
    total = len(small[0].manifest.bricks)
    for mine in {meaning.brick for meaning in small[0].key.meanings.values()}:
        places = Counter(
            place
            for suite in small
            for place, brick in enumerate(suite.manifest.bricks)
            for meaning in [suite.key.meanings.get(brick.id)]
            if meaning is not None and meaning.brick == mine
        )
        # One test for each brick: each may be as unlikely as one of so many is allowed to be.
        assert chi_square([places[place] for place in range(total)], len(small) / total) > P / total


def test_the_ids_show_no_dependence_on_the_model(small: Sequence[Assembled]) -> None:
    check_ids(small)


def of_written_layers(path: Path, cache: Path) -> SuiteModel:
    """Return a model whose layers are as written: no runtime is needed."""
    graph = Loader(cache, TableFramework()).load(source_of(path))
    return SuiteModel(decompose(graph), graph)


class PackedOnce(Packing):
    """A packing of bricks that are files already: a model has the same in every suite. No file is read back."""

    def __init__(self, models: Sequence[SuiteModel]) -> None:
        self._packed: dict[int, Sequence[PackedBrick]] = {}
        for model in models:
            graph = model.decomposition.graph
            # Each layer and its neighbours.
            self._packed[id(model)] = tuple(Packing(partial(_same, graph)).packed(model, model.bricks))

    def packed(self, model: SuiteModel, bricks: Mapping[str, Occurrence]) -> Iterator[PackedBrick]:
        """Return these bricks."""
        return (it for it in self._packed[id(model)] if it.brick in bricks)


def _same(graph: LayerGraph, _: bytes) -> LayerGraph:
    return graph


def secretive(folder: Path, widths: Sequence[int], name: str) -> SuiteModel:
    """Return a model with names and comments everywhere, and weights of one value."""
    made = onnx_network.network(widths, name)
    made.producer_name = made.doc_string = made.graph.doc_string = SECRETS[-1]
    made.metadata_props.add(key="author", value=SECRETS[-1])
    for node in made.graph.node:
        node.name, node.doc_string = f"{name} {node.op_type}", SECRETS[-1]
    for weight in made.graph.initializer:
        weight.doc_string = SECRETS[-1]
        if weight.float_data:
            weight.float_data[:] = [WEIGHT] * len(weight.float_data)
    return of_written_layers(saved(folder, made, name), folder / "cache")


def test_a_suite_holds_no_name_no_comment_and_no_weight_of_a_private_onnx_model(tmp_path: Path) -> None:
    model = secretive(tmp_path, (24, 40), SECRET)
    suite = assemble([model], [], seed_of("a seed"), Level.WRITTEN, {"onnxruntime": PackedOnce([model])})
    manifest = suite.manifest.text()
    assert not [secret for secret in (*SECRETS, str(tmp_path)) if secret in manifest]
    assert len(suite.networks) > 5
    for packed in suite.networks.values():
        content = gzip.decompress(packed) if packed.startswith(GZIP_MAGIC) else packed
        assert not [secret for secret in (*SECRETS, str(tmp_path)) if secret.encode() in content]
        assert np.float32(WEIGHT).tobytes() not in content
        assert str(WEIGHT).encode() not in content


def test_a_suite_does_not_tell_which_version_of_operators_a_model_states(tmp_path: Path) -> None:
    packed = []
    for version in (17, 18):
        made = onnx_network.network((24, 40))
        made.opset_import[0].version = version
        model = of_written_layers(saved(tmp_path, made), tmp_path / "cache")
        packed.append([it.content for it in PackedOnce([model]).packed(model, model.bricks)])
    assert packed[0] == packed[1] and all(packed[0])


def test_decoys_are_of_a_size_class_that_is_the_same_for_all_models_in_it(tmp_path: Path) -> None:
    pool = [it for it in Library(SAMPLE_MODELS, tmp_path).samples() if it.format is Format.MXNET]
    small = next(it for it in pool if it.name == "mobilenet0.25")
    model = of_written_layers(small.path, tmp_path / "cache")
    by_class: dict[frozenset[Path], set[Path]] = {}
    for path in {it.path for it in pool}:
        near = like_sized(pool, {path: model}, 3)
        assert path not in {it.path for it in near}
        by_class.setdefault(frozenset({path, *(it.path for it in near)}), set()).add(path)
    assert all(held == chosen for held, chosen in by_class.items())
    assert len(by_class) > 5 and min(map(len, by_class)) >= 8
    # A model that is no sample has the class of its size.
    near = like_sized(pool, {tmp_path / "mine-symbol.json": model}, 3)
    assert max(map(size_of, near)) <= median(map(size_of, pool))
    assert like_sized([small], {small.path: model}, 3) == like_sized([], {small.path: model}, 3) == []


@numbers_of_exports
@pytest.mark.parametrize("form", list(Format))
def test_decoys_cannot_be_distinguished_from_real_bricks(tmp_path: Path, form: Format, exports: int) -> None:
    sources = [it.in_format(form) for it in Library(SAMPLE_MODELS, tmp_path).find_all(NETWORKS[form])]
    models = {source.path: of_written_layers(source.path, tmp_path / "cache") for source in sources}
    packing = PackedOnce(list(models.values()))
    chance, exported = random.Random(2020), []

    def take(source: ModelSource, shapes: Mapping[str, Shape]) -> Sequence[SuiteModel]:
        if shapes:
            raise ModelError("models are packed once, at their own sizes")
        return [models[source.path]]

    for number in range(exports):
        mine, seed = chance.choice(list(models)), seed_of(f"export {number}")
        private, others = [models[mine]], [source for source in sources if source.path != mine]
        packings = {models[mine].framework: packing}
        decoys = chosen_decoys(others, 3, seed, private, take)
        suite = assemble(private, decoys, seed, Level.WRITTEN, packings)
        exported.append(Exported(suite, frozenset(brick for decoy in decoys for brick in decoy.bricks)))
    of_file = None
    if form is Format.ONNX:
        contents = [content for each in exported for content in each.suite.networks.values()]
        operators = sorted({op for content in contents for op in _operators(content)})
        of_file = cache(partial(_of_onnx_file, operators=operators))
    halves = [told(half, of_file) for half in (exported[: exports // 2], exported[exports // 2 :])]
    for classify in (by_regression, by_memory):
        # Each half is used for learning once, which halves the influence of chance.
        assert (classify(*halves) + classify(*halves[::-1])) / 2 <= 0.55


@cache
def _parsed(content: bytes) -> ModelProto:
    made: ModelProto = ModelProto.FromString(gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content)
    return made


@cache
def _operators(content: bytes) -> Mapping[str, int]:
    return Counter(node.op_type for node in _parsed(content).graph.node)


def _of_onnx_file(content: bytes, operators: Sequence[str]) -> Sequence[float]:
    """Return the fields of a file as numbers: its versions, operators, inputs, weights and axes."""
    made = _parsed(content)
    said = json.loads(made.metadata_props[0].value)
    shapes = [it["shape"] for it in said.values() if "shape" in it] or [[1]]
    axes = [axis for it in made.graph.input for axis in it.type.tensor_type.shape.dim]
    return [
        made.ir_version,
        made.opset_import[0].version,
        len(made.opset_import),
        len(made.graph.input),
        len(made.graph.output),
        len(made.graph.initializer),
        sum(bool(axis.dim_param) for axis in axes),
        *(math.log(1 + size) for size in (*shapes[0], 1, 1, 1, 1)[:4]),
        *(shapes[0][-1] % divisor == 0 for divisor in (7, 8, 16, 32)),
        *(_operators(content)[op] for op in operators),
    ]
