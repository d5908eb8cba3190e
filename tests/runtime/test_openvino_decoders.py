"""Language models in OpenVINO: the same numbers as in ONNX Runtime, attention in one piece, and caches that grow."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest

from dlbricks_tui.bricks.programs import model_program
from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.language.decoder import Step, decoder
from dlbricks_tui.language.end_to_end import MODEL_FILE
from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.language_engines import OpenVinoEngine, openvino_engine
from dlbricks_tui.runtime.inside.openvino_backend import OpenVino
from dlbricks_tui.runtime.inside.openvino_decoders import _apart_in_bytes, decoder_extensions, with_state
from dlbricks_tui.runtime.inside.ort_session import options
from dlbricks_tui.runtime.protocol import Generate, OpenEngine
from dlbricks_tui.runtime.traits import TRAITS
from tests.language.test_whole_model import LLAMA, MIXTURE, small, written

pytestmark = pytest.mark.openvino

# Without what the plugin rounds by itself.
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
WINDOW = {"window": 4, "has_short_caches": False}
FAMILIES = {
    "llama": LLAMA,
    "norms of queries and keys": small("qwen3-0.6b"),
    "biases": small("qwen2.5-0.5b"),
    "windows": small("gemma-3-270m", windowed=(True, False, True), **WINDOW),
    "factors": small("granite-3.3-2b"),
    "partly rotated": replace(LLAMA, rotary_size=16),
    "caps": small("gemma-2-2b", windowed=(True, False, True), **WINDOW),
}


@pytest.fixture(scope="module")
def openvino() -> Any:
    return pytest.importorskip("openvino")


def in_openvino(openvino: Any, folder: Path) -> Any:
    """Return a model in a folder, compiled."""
    core = openvino.Core()
    for extension in decoder_extensions(openvino):
        core.add_extension(extension)
    return core.compile_model(with_state(core.read_model(str(folder / MODEL_FILE))), "CPU", EXACT)


class InOnnxRuntime:
    """A model in a folder, with its caches."""

    def __init__(self, ort: Any, folder: Path) -> None:
        settings = options(ort, optimised=True)
        self.session = ort.InferenceSession(folder / MODEL_FILE, settings, providers=["CPUExecutionProvider"])
        inputs = [it for it in self.session.get_inputs() if it.name.startswith("past")]
        self.caches = {it.name: numpy.zeros((1, it.shape[1], 0, it.shape[3]), "float32") for it in inputs}

    def logits(self, fed: dict[str, Any]) -> Any:
        names = [it.name for it in self.session.get_outputs()]
        made = dict(zip(names, self.session.run(None, {**fed, **self.caches}), strict=True))
        self.caches = {it: made[it.replace("past_key_values", "present")] for it in self.caches}
        return made["logits"]


def steps() -> list[dict[str, Any]]:
    """Return what is fed: a prompt, and two more tokens."""
    counts = [(9, 9), (1, 10), (1, 11)]
    return [
        {"input_ids": numpy.arange(new)[None] * 7 + total, "attention_mask": numpy.ones((1, total), "int64")}
        for new, total in counts
    ]


@pytest.mark.parametrize("precision", WeightPrecision)
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_onnx_runtime(
    openvino: Any, ort: Any, tmp_path: Path, family: str, precision: WeightPrecision
) -> None:
    model = FAMILIES[family]
    # Windows in ONNX Runtime 1.23, the last for Python 3.10, hold a token more than asked.
    sees_more = bool(model.window) and ort.__version__.startswith("1.23.")
    for folder, window in (("openvino", model.window), ("ort", model.window - sees_more)):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, replace(model, window=window), precision, TRAITS["openvino"])
    request = in_openvino(openvino, tmp_path / "openvino").create_infer_request()
    other = InOnnxRuntime(ort, tmp_path / "ort")
    request.reset_state()
    # ONNX Runtime rounds activations to 8 bits where weights are packed.
    most = 1e-4 if precision is WeightPrecision.F32 else 0.1
    for fed in steps():
        expected = other.logits(fed)
        found = request.infer({**fed, "beam_idx": numpy.zeros(1, "int32")})["logits"]
        assert numpy.abs(found - expected).max() <= most * numpy.abs(expected).max()


def test_attention_is_one_operator_and_products_unpack_their_weights(openvino: Any, tmp_path: Path) -> None:
    written(tmp_path, traits=TRAITS["openvino"])
    nodes = in_openvino(openvino, tmp_path).get_runtime_model().get_ops()
    kinds = Counter(str(it.get_rt_info()["layerType"].astype(str)) for it in nodes)
    assert (kinds["ScaledDotProductAttention"], kinds["RoPE"], kinds["Softmax"]) == (3, 6, 0)
    # Six products of each block, with the gate's and up's apart, and the head.
    assert kinds["FullyConnected"] == 3 * 5 + 1


def carrier(openvino: Any, step: Step) -> Any:
    """Return the carrier of a step, ready to run."""
    found = decoder(LLAMA, WeightPrecision.INT4, step, TRAITS["openvino"])
    network = model_program(found.graph).network
    names = list(network.inputs)
    in_place = {names[given]: place for given, place in found.in_place.items()}
    return OpenVino(openvino).bind(replace(network, in_place=in_place, distinct=True))


def cached(bound: Any) -> int:
    """Return the tokens in the caches of a carrier."""
    length: int = bound._request.request.query_state()[0].state.shape[2]
    return length


def test_caches_grow_from_run_to_run_and_begin_anew(openvino: Any) -> None:
    bound, lengths = carrier(openvino, Step.decode(20)), []
    for _ in range(2):
        bound.begin()
        bound.run()
        bound.prepare()
        bound.run()
        lengths.append(cached(bound))
    # The run that puts caches where they grow, and both others.
    assert lengths == [23, 23]


def test_a_prompt_is_read_behind_a_step_of_one_token(openvino: Any) -> None:
    bound, lengths = carrier(openvino, Step.prefill(9)), []
    for _ in range(2):
        bound.begin()
        bound.prepare()
        lengths.append(cached(bound))
        bound.run()
        lengths.append(cached(bound))
    assert lengths == [1, 9, 1, 9]


def test_zeros_of_a_row_begin_in_a_byte_of_their_own() -> None:
    packed = numpy.array([0x21, 0x03, 0x54, 0xF6], numpy.uint8)
    assert _apart_in_bytes(packed, 4, 2, 3).tolist() == [1, 2, 3, 4, 5, 6]
    assert _apart_in_bytes(packed, 8, 2, 2).tolist() == [0x21, 0x03, 0x54, 0xF6]


@pytest.mark.parametrize("is_genai", [True, False])
def test_the_engine_generates_tokens(openvino: Any, tmp_path: Path, *, is_genai: bool) -> None:
    written(tmp_path, traits=TRAITS["openvino"])
    if is_genai:
        pytest.importorskip("openvino_genai")
    engine = openvino_engine(openvino) if is_genai else OpenVinoEngine(openvino)
    with pytest.raises(RefusalError, match="no model is loaded"):
        engine.generate(Generate(8, 3))
    opened = engine.open(OpenEngine(str(tmp_path), 1))
    made = engine.generate(Generate(8, 3))
    assert (opened.version[0].isdigit(), opened.name) == (True, "openvino-genai" if is_genai else "openvino")
    assert (made.first_ns > 0, len(made.later_ns)) == (True, 2)


def test_a_mixture_of_experts_is_refused_by_the_name_of_its_operator(openvino: Any, tmp_path: Path) -> None:
    written(tmp_path, MIXTURE)
    with pytest.raises(RefusalError, match=r"OpenVINO lacks .*QMoE"):
        OpenVinoEngine(openvino).open(OpenEngine(str(tmp_path), 1))
