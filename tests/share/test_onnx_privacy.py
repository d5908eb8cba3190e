"""A reader of a suite of ONNX bricks learns no more about the models than documented."""

import gzip
import json
import math
import random
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
from onnx import ModelProto

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.content import GZIP_MAGIC
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.share.suites.exporting import assemble, chosen_decoys
from dlbricks_tui.share.suites.key_file import seed_of
from dlbricks_tui.share.suites.onnx_excerpts import OnnxPacking
from dlbricks_tui.share.suites.packing import PackedBrick, SuiteModel, SuitePair
from tests.models.onnx_models import saved
from tests.models.table_framework import TableFramework
from tests.share.onnx_network import SECRET, network
from tests.share.telling_apart import Exported, by_memory, by_regression, told
from tests.share.test_privacy import numbers_of_exports

# Published networks of several families and sizes.
NETWORKS = (
    "alexnet",
    "resnet18_v1",
    "vgg11",
    "squeezenet1.0",
    "squeezenet1.1",
    "mobilenet0.5",
    "mobilenetv2_1.0",
    "Colorful Image Colorization Trained on ImageNet Competition Data",
    "YOLO V2 Trained on MS-COCO Data",
)
SECRETS = (SECRET, "image", "scores", "test", "vault-7")
WEIGHT = 0.12345679


def of_written_layers(path: Path, cache: Path) -> SuiteModel:
    """Return a model whose layers are as written: no runtime is needed."""
    graph = Loader(cache, TableFramework()).load(source_of(path))
    return SuiteModel(decompose(graph), graph)


def packed_bricks(model: SuiteModel) -> tuple[PackedBrick, ...]:
    """Pack the bricks of a model; each layer and its neighbours, which are not read back."""
    return tuple(OnnxPacking(lambda content: model.decomposition.graph).packed(model, ()))


class PackedOnce:
    """A packing of bricks that are files already: a model has the same in every suite."""

    def __init__(self, models: Sequence[SuiteModel]) -> None:
        self._packed = {id(model): packed_bricks(model) for model in models}

    def pairs(self, model: SuiteModel) -> frozenset[SuitePair]:
        """Return the bricks of a model."""
        return frozenset(it.pair for it in self._packed[id(model)])

    def packed(self, model: SuiteModel, known: Container[SuitePair]) -> Iterator[PackedBrick]:
        """Return the bricks that are not known yet."""
        return (it for it in self._packed[id(model)] if it.pair not in known)


def secretive(folder: Path, widths: Sequence[int], name: str) -> SuiteModel:
    """Return a model with names and comments everywhere, and weights of one value."""
    made = network(widths, name)
    made.producer_name = made.doc_string = made.graph.doc_string = SECRETS[-1]
    made.metadata_props.add(key="author", value=SECRETS[-1])
    for node in made.graph.node:
        node.name, node.doc_string = f"{name} {node.op_type}", SECRETS[-1]
    for weight in made.graph.initializer:
        weight.doc_string = SECRETS[-1]
        if weight.float_data:
            weight.float_data[:] = [WEIGHT] * len(weight.float_data)
    return of_written_layers(saved(folder, made, name), folder / "cache")


def test_a_suite_holds_no_name_no_comment_and_no_weight_of_the_private_model(tmp_path: Path) -> None:
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


@numbers_of_exports
def test_decoys_cannot_be_distinguished_from_real_bricks(tmp_path: Path, exports: int) -> None:
    sources = [it.in_format(Format.ONNX) for it in Library(SAMPLE_MODELS, tmp_path).find_all(NETWORKS)]
    models = {source.path: of_written_layers(source.path, tmp_path / "cache") for source in sources}
    packing = PackedOnce(list(models.values()))
    packings = {"onnxruntime": packing}
    chance, exported = random.Random(2020), []
    for number in range(exports):
        mine = chance.choice(list(models))
        private = [models[mine]]

        def take(source: ModelSource, shapes: Mapping[str, Shape]) -> Sequence[SuiteModel]:
            if shapes:
                raise ModelError("models are packed once, at their own sizes")
            return [models[source.path]]

        others = [source for source in sources if source.path != mine]
        decoys = chosen_decoys(others, 3, seed_of(f"export {number}"), private, take, packings)
        suite = assemble(private, decoys, seed_of(f"export {number}"), Level.WRITTEN, packings)
        exported.append(Exported(suite, frozenset(pair for decoy in decoys for pair in packing.pairs(decoy))))
    contents = [content for each in exported for content in each.suite.networks.values()]
    operators = sorted({op for content in contents for op in _operators(content)})
    of_file = cache(partial(_of_file, operators=operators))
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


def _of_file(content: bytes, operators: Sequence[str]) -> Sequence[float]:
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
