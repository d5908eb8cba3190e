"""The layers of language models: those of onnxruntime-genai's model builder, and as many of each as the model has.

`builder.json` has what the builder makes of tiny models with random weights: for each family and precision the
config.json, and each operator with its attributes, the types of its weights, and how often it occurs. It leaves out
what ONNX Runtime folds when it opens the file: constants, the reshaped table, and biases and sigmoids that become part
of the operator before.
"""

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from onnx import NodeProto
from onnx.helper import get_attribute_value

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.language.architecture import Architecture, WeightPrecision
from dlbricks_tui.language.config_file import architecture_of_config
from dlbricks_tui.language.decoder import Decoder, ModelPart, Step, decoder, distinct_blocks
from dlbricks_tui.language.opening import library_models, open_language_model
from dlbricks_tui.language.predicting import work_of
from dlbricks_tui.runtime.traits import traits_of

BUILT = json.loads(Path(__file__).with_name("builder.json").read_bytes())
ONNX_RUNTIME = traits_of("onnxruntime")
_PRECISIONS = {"fp32": WeightPrecision.F32, "int4": WeightPrecision.INT4, "int8": WeightPrecision.INT8}
_OF_PRODUCTS = ("K", "N", "bits", "block_size", "accuracy_level", "k", "expert_weight_bits")
_OF_ATTENTION = ("num_heads", "kv_num_heads", "local_window_size", "sliding_window_cache", "softcap", "do_rotary")
COMPARED = frozenset({*_OF_PRODUCTS, *_OF_ATTENTION, "axis", "epsilon", "approximate"})


def operators_of(found: Decoder) -> Iterator[tuple[str, dict[str, Any], list[list[Any]]]]:
    """Yield each layer as `builder.json` has it."""
    for layer in found.graph.layers:
        (operator,) = layer.operators
        node = NodeProto.FromString(b64decode(dict(operator.native.attributes)["node"]))
        given = {it.name: get_attribute_value(it) for it in node.attribute if it.name in COMPARED}
        shown = {
            name: value.decode() if isinstance(value, bytes) else round(value, 6) if isinstance(value, float) else value
            for name, value in given.items()
        }
        weights = [[it.dtype, list(it.shape or ())] for it in layer.weights]
        if node.op_type in ("Gather", "GatherBlockQuantized"):
            weights = []
        elif node.op_type == "GroupQueryAttention":
            # The tables of angles are as long as the context asks.
            weights = [it for it in weights if len(it[1]) == 1]
        yield node.op_type, {} if node.op_type == "Gather" else shown, weights


@pytest.mark.parametrize("name", BUILT)
def test_a_model_has_the_operators_of_the_model_builder(name: str) -> None:
    family, _, precision = name.rpartition("-")
    model = architecture_of_config(BUILT[name]["config"])
    found = decoder(model, _PRECISIONS[precision], Step.prefill(64), ONNX_RUNTIME, range(model.blocks))
    ours = Counter(json.dumps(it, sort_keys=True) for it in operators_of(found))
    theirs = Counter({json.dumps(it, sort_keys=True): count for *it, count in BUILT[name]["operators"]})
    assert ours == theirs, family


def bricks_of(found: Decoder) -> Counter[str]:
    """Return how often the model runs each brick."""
    counted: Counter[str] = Counter()
    for layer, count in zip(found.graph.layers, found.counts, strict=True):
        counted[brick_of(found.graph, (layer.index,)).key] += count
    return counted


def library(name: str) -> Architecture:
    """Return a model of the library."""
    return open_language_model(name).architecture


@pytest.mark.parametrize("name", ["smollm2-135m", "gemma-3-1b", "gpt-oss-20b", "qwen3-0.6b", "granite-3.3-2b"])
@pytest.mark.parametrize("fewest", [True, False])
def test_few_blocks_stand_for_all_layers_of_the_model(name: str, *, fewest: bool) -> None:
    model = library(name)
    step = Step.decode(100)
    whole = decoder(model, WeightPrecision.INT4, step, ONNX_RUNTIME, range(model.blocks))
    few = decoder(model, WeightPrecision.INT4, step, ONNX_RUNTIME, distinct_blocks(model, fewest=fewest))
    assert set(whole.counts) == {1}
    assert len(few.graph.layers) < len(whole.graph.layers) / 3
    if fewest:
        # The first norm of the model stands for those of its kind, which add a residual.
        assert bricks_of(few).keys() <= bricks_of(whole).keys()
    else:
        assert bricks_of(few) == bricks_of(whole)


def test_blocks_of_one_kind_need_two_blocks_and_windowed_ones_a_third() -> None:
    assert distinct_blocks(library("llama-3.2-1b")) == (0, 1)
    assert distinct_blocks(library("llama-3.2-1b"), fewest=True) == (0,)
    assert distinct_blocks(library("gemma-3-1b")) == (0, 1, 5)
    assert distinct_blocks(library("gemma-3-1b"), fewest=True) == (0, 5)


def test_caches_are_written_in_place_and_windowed_ones_hold_their_window() -> None:
    found = decoder(library("gemma-3-1b"), WeightPrecision.INT4, Step.decode(4096), ONNX_RUNTIME)
    caches = {found.graph.inputs[given].name: found.graph.inputs[given].type.shape for given in found.in_place}
    assert caches["past_key_values.0.key"] == (1, 1, 512 + 16, 256)
    assert caches["past_key_values.5.value"] == (1, 1, 4097, 256)
    for given, place in found.in_place.items():
        head = found.graph.heads[place]
        assert head.layer is not None
        assert found.graph.layers[head.layer].outputs[head.output] == found.graph.inputs[given].type


@pytest.mark.parametrize("precision", WeightPrecision)
def test_every_model_of_the_library_has_layers_in_every_precision(precision: WeightPrecision) -> None:
    for named in library_models():
        model = named.architecture
        found = decoder(model, precision, Step.prefill(16), ONNX_RUNTIME)
        layers = zip(found.graph.layers, found.parts, found.counts, strict=True)
        products = sum(
            count * work_of(layer).operations / 2 / 16
            for layer, part, count in layers
            if part in (ModelPart.PRODUCTS, ModelPart.HEAD)
        )
        if not model.experts:
            table = model.vocabulary * model.hidden
            assert products == pytest.approx(model.parameters - (0 if model.is_tied else table), rel=0.02), named.name


@pytest.mark.parametrize("precision", [WeightPrecision.INT4, WeightPrecision.INT8])
def test_openvino_gets_the_blocks_of_its_own_tools_and_scores_of_the_last_token(precision: WeightPrecision) -> None:
    # Rows of 576 and 1536 weights.
    found = decoder(library("smollm2-135m"), precision, Step.prefill(16), traits_of("openvino"))
    packings = {
        part.value: {(it["K"], it["bits"], it["block_size"])}
        for part, (op, it, _) in zip(found.parts, operators_of(found), strict=True)
        if op == "MatMulNBits" and (part is ModelPart.HEAD or it["K"] == 1536)
    }
    by_row = precision is WeightPrecision.INT8
    assert packings == {"products": {(1536, *((8, 1536) if by_row else (4, 128)))}, "head": {(576, 8, 576)}}
    product = found.graph.layers[-1]
    assert [it.shape for it in product.weights] == [(49152, 1, 576), (49152, 1), (49152, 1)]
    assert product.outputs[0].shape == (1, 1, 49152)
