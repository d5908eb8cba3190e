"""A reader of a suite learns no more about the models than documented."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.bricks.excerpts import Excerpt, excerpt
from dlbricks_tui.bricks.layouts import Layouts
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Shape
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.share.networks.mxnet_network import packed
from dlbricks_tui.share.suites import packing
from dlbricks_tui.share.suites.exporting import Assembled, assemble, chosen_decoys
from dlbricks_tui.share.suites.key_file import seed_of
from dlbricks_tui.share.suites.packing import MXNetPacking, SuiteModel
from tests.models.table_framework import TableFramework
from tests.share.telling_apart import Exported, by_memory, by_regression, told
from tests.share.trio import PRIVATE_WIDTHS, SECRET, Trio

# A test may fail by chance this often; the seeds are fixed.
P = 0.01
# How many seeds tell what depends on the model by rule, and how many also a slight tendency.
NUMBERS_OF_SEEDS = (150, pytest.param(500, marks=pytest.mark.soak))


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


# An attacker who sees few suites already finds what tells decoys apart by rule; who sees many, also a slight tendency.
numbers_of_exports = pytest.mark.parametrize("exports", [60, pytest.param(400, marks=pytest.mark.soak)])
# Of several families and sizes; those that are one network under several names are left out.
NETWORKS = (
    "alexnet",
    "resnet18_v1",
    "resnet34_v2",
    "resnet50_v2",
    "vgg11",
    "vgg16_bn",
    "squeezenet1.0",
    "squeezenet1.1",
    "mobilenet1.0",
    "mobilenet0.5",
    "mobilenetv2_1.0",
    "mobilenetv2_0.5",
    "Age Estimation VGG-16 Trained on IMDB-WIKI and Looking at People Data",
    "Inception V1 Trained on ImageNet Competition Data",
    "ResNet-50 Trained on ImageNet Competition Data",
    "Wide ResNet-50-2 Trained on ImageNet Competition Data",
    "Yahoo Open NSFW Model V1",
    "Colorful Image Colorization Trained on ImageNet Competition Data",
    "SSD-VGG-300 Trained on PASCAL VOC Data",
    "YOLO V2 Trained on MS-COCO Data",
)


# Every file is accepted; other tests check the round trip.
UNCHECKED = {"mxnet": MXNetPacking(None)}


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
    return [
        assemble(mine, decoys, seed_of(f"seed {number}"), Level.WRITTEN, UNCHECKED) for number in range(request.param)
    ]


def test_the_order_shows_no_dependence_on_the_model(small: Sequence[Assembled]) -> None:
    check_order(small)


def test_each_brick_of_the_model_may_have_any_place(small: Sequence[Assembled]) -> None:
    total = len(small[0].manifest.bricks)
    for mine in {(meaning.brick, meaning.context) for meaning in small[0].key.meanings.values()}:
        places = Counter(
            place
            for suite in small
            for place, brick in enumerate(suite.manifest.bricks)
            for meaning in [suite.key.meanings.get(brick.id)]
            if meaning is not None and (meaning.brick, meaning.context) == mine
        )
        # One test for each brick: each may be as unlikely as one of so many is allowed to be.
        assert chi_square([places[place] for place in range(total)], len(small) / total) > P / total


def test_the_ids_show_no_dependence_on_the_model(small: Sequence[Assembled]) -> None:
    check_ids(small)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Path, Decomposition]:
    cache = tmp_path_factory.mktemp("cache")
    # Their types come with them, so that no framework is asked.
    loader = Loader(cache, TableFramework())
    sources = Library(SAMPLE_MODELS, cache).find_all(NETWORKS)
    return {source.path: decompose(loader.load(source)) for source in sources}


@pytest.fixture
def packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sequence of the same model is the same file in every suite."""
    alone: dict[tuple[int, Sequence[int]], Excerpt] = {}
    files: dict[int, bytes] = {}

    def taken_out(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> Excerpt:
        key = id(graph), layers
        if key not in alone:
            alone[key] = excerpt(graph, layers, layouts)
        return alone[key]

    def written(found: Excerpt) -> bytes:
        if id(found) not in files:
            files[id(found)] = packed(found)
        return files[id(found)]

    monkeypatch.setattr(packing, "excerpt", taken_out)
    monkeypatch.setattr(packing, "packed", written)


@pytest.mark.usefixtures("packed_once")
@numbers_of_exports
def test_decoys_cannot_be_distinguished_from_real_bricks(networks: Mapping[Path, Decomposition], exports: int) -> None:
    chance = random.Random(2020)
    exported = []
    for number in range(exports):
        mine = chance.choice(list(networks))
        private = [SuiteModel(networks[mine])]
        others = [source_of(path) for path in networks if path != mine]

        def take(source: ModelSource, shapes: Mapping[str, Shape]) -> Sequence[SuiteModel]:
            if shapes:
                raise ModelError("no framework is here that would find out other shapes")
            return [SuiteModel(networks[source.path])]

        seed = seed_of(f"export {number}")
        decoys = chosen_decoys(others, 3, seed, private, take, UNCHECKED)
        suite = assemble(private, decoys, seed, Level.WRITTEN, UNCHECKED)
        exported.append(Exported(suite, frozenset(pair for decoy in decoys for pair in decoy.decomposition.suite)))
    halves = told(exported[: exports // 2]), told(exported[exports // 2 :])
    for classify in (by_regression, by_memory):
        # Each half is used for learning once, which halves the influence of chance.
        assert (classify(*halves) + classify(*halves[::-1])) / 2 <= 0.55
