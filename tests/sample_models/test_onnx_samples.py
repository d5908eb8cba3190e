"""The ONNX samples: valid files without weights, of which ONNX Runtime makes the same as of files with weights."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy
import pytest
from onnx import GraphProto, ModelProto, load_from_string
from onnx.checker import check_model
from onnx.helper import tensor_dtype_to_np_dtype
from packaging.version import Version

from dlbricks_tui.runtime.inside.ort_session import options
from sample_models.builders.__main__ import SAMPLES as FOLDER
from sample_models.builders.onnx.samples import SAMPLES, OnnxSample
from tests.models.onnx_models import ORT_VERSION
from tests.sample_models.weights import store_weights

# The transformers and the detector take longer than all the others.
QUICK = [it for it in SAMPLES if it.name not in ("gpt2_step", "minilm", "yolov8n")]
every_quick_sample = pytest.mark.parametrize("sample", QUICK, ids=lambda sample: sample.name)
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)


def _model(sample: OnnxSample) -> ModelProto:
    return load_from_string((FOLDER / sample.path).read_bytes())


@every_sample
def test_a_sample_is_a_valid_file_of_less_than_200_kilobytes(sample: OnnxSample) -> None:
    check_model(_model(sample), full_check=True)
    assert (FOLDER / sample.path).stat().st_size < 200_000


@every_quick_sample
def test_onnx_runtime_runs_a_sample_as_it_stands(sample: OnnxSample, ort: Any) -> None:
    session = ort.InferenceSession(
        FOLDER / sample.path, options(ort, optimised=True), providers=["CPUExecutionProvider"]
    )
    generator = numpy.random.default_rng(0)
    fed = {}
    for given in _model(sample).graph.input:
        dtype, shape = tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type), sample.inputs[given.name]
        numbers = generator.random(shape) if dtype.kind == "f" else generator.integers(0, 2, shape)
        fed[given.name] = numpy.asarray(sample.values.get(given.name, numbers), dtype)
    outputs = session.run(None, fed)
    # Older versions find a variance below zero in rows of equal numbers, and normalise them to NaN.
    if Version("1.24") <= ORT_VERSION:
        assert all(numpy.isfinite(output).all() for output in outputs)


@every_quick_sample
def test_onnx_runtime_fuses_a_sample_as_the_same_network_with_stored_weights(
    sample: OnnxSample, ort: Any, tmp_path: Path
) -> None:
    without, stored, generator = _model(sample), _model(sample), numpy.random.default_rng(0)

    def drawn(name: str, shape: Sequence[int], filling: Any) -> Any:
        if filling.dtype == numpy.int8 and filling:
            return generator.integers(-127, 128, shape, numpy.int8)
        if filling.dtype == numpy.float32 and not name.endswith("_scale"):
            return (filling * generator.uniform(0.5, 1.5, shape)).astype(numpy.float32)
        return numpy.full(shape, filling)

    assert store_weights(stored.graph, drawn) or sample.name == "boosted_trees"
    assert _structure(_optimised(ort, without, tmp_path)) == _structure(_optimised(ort, stored, tmp_path))


def _optimised(ort: Any, model: ModelProto, folder: Path) -> GraphProto:
    """Return the graph that ONNX Runtime runs."""
    settings = options(ort, optimised=True)
    settings.optimized_model_filepath = str(folder / "optimised.onnx")
    ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    return load_from_string((folder / "optimised.onnx").read_bytes()).graph


def _structure(graph: GraphProto) -> list[str]:
    """Return operators, attributes and wiring, without the names that ONNX Runtime makes up, and in any order."""
    sources = {it.name: f"stored {it.data_type} {tuple(it.dims)}" for it in graph.initializer}
    forms = []
    for node in graph.node:
        inner = [_structure(it.g) for it in node.attribute if it.HasField("g")]
        attributes = sorted(it.SerializeToString() for it in node.attribute if not it.HasField("g"))
        wiring = [sources.get(name, name) for name in node.input]
        forms.append(sha256(repr((node.op_type, attributes, wiring, inner)).encode()).hexdigest())
        sources.update((name, f"{forms[-1]} {place}") for place, name in enumerate(node.output))
    return sorted(forms)
