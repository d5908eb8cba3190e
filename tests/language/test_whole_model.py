"""Whole language models on disk, and the engine that runs them."""

import errno
import json
import os
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import numpy_helper

from dlbricks_tui.language import end_to_end
from dlbricks_tui.language.architecture import Architecture, LanguageError, WeightPrecision
from dlbricks_tui.language.end_to_end import DATA_FILE, WholeModelEngine, WholeModelFiles, whole_model_files
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import LanguageQuestion
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import Traits
from tests.language.test_decoder import ONNX_RUNTIME, library

SMALL: dict[str, Any] = {"hidden": 64, "blocks": 3, "heads": 2, "kv_heads": 1, "head_size": 32, "rotary_size": 32}
LONGEST = 64


def small(name: str, **sizes: Any) -> Architecture:
    """Return a model of some ten thousand weights with the layers of one of the library."""
    return replace(library(name), **SMALL, inner=256, vocabulary=320, positions=128, **sizes)


LLAMA = small("llama-3.2-1b")
MIXTURE = small("qwen3-30b-a3b", experts=4, active_experts=2)


def written(
    folder: Path,
    model: Architecture = LLAMA,
    precision: WeightPrecision = WeightPrecision.INT4,
    traits: Traits = ONNX_RUNTIME,
) -> WholeModelFiles:
    files = whole_model_files(model, precision, LONGEST, traits)
    files.write(folder)
    return files


def stored_weights(folder: Path) -> dict[str, bytes]:
    """Return the bytes of the weights in the file of data, by name."""
    weights = onnx.load(folder / "model.onnx").graph.initializer
    return {it.name: numpy_helper.to_array(it).tobytes() for it in weights if it.name.startswith("weight")}


def runtime_with(folder: Path, module: str = "") -> Runtime:
    """Return a runtime with one thread; a `module` stands in for onnxruntime-genai."""
    variables: tuple[tuple[str, str], ...] = ()
    if module:
        (folder / "modules").mkdir()
        (folder / "modules" / "onnxruntime_genai.py").write_text(f"import os, time\n{module}\n")
        variables = (("PYTHONPATH", str(folder / "modules")),)
    return Runtime("here", sys.executable, "onnxruntime", "1.0", "3.11", Settings(1, variables))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a whole model."""
    found = tmp_path / "whole"
    found.mkdir()
    return found


def test_the_model_has_the_names_and_open_sizes_that_the_engine_expects(folder: Path) -> None:
    written(folder)
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    axes = {it.name: it.type.tensor_type.shape.dim for it in graph.input}
    inputs = {name: [it.dim_param or it.dim_value for it in of_input] for name, of_input in axes.items()}
    assert inputs.pop("input_ids") == ["batch_size", "sequence_length"]
    assert inputs.pop("attention_mask") == ["batch_size", "total_sequence_length"]
    assert inputs == {
        f"past_key_values.{block}.{what}": ["batch_size", 1, "past_sequence_length", 32]
        for block in range(3)
        for what in ("key", "value")
    }
    caches = [f"present.{block}.{what}" for block in range(3) for what in ("key", "value")]
    assert [it.name for it in graph.output] == ["logits", *caches]
    config = json.loads((folder / "genai_config.json").read_bytes())
    assert config["model"]["vocab_size"] == 320
    assert config["search"]["past_present_share_buffer"]


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("precision", WeightPrecision)
def test_weights_of_a_shape_differ(folder: Path, precision: WeightPrecision, is_tied: bool) -> None:
    # ONNX Runtime keeps equal weights once, and would read them from caches that a real model does not have.
    files = written(folder, replace(LLAMA, is_tied=is_tied), precision)
    stored = stored_weights(folder)
    assert len(set(stored.values())) == len(stored)
    assert files.size_bytes == (folder / DATA_FILE).stat().st_size


@pytest.mark.parametrize("precision", WeightPrecision)
def test_a_tied_table_is_made_of_the_head(folder: Path, precision: WeightPrecision) -> None:
    written(folder, LLAMA, precision)
    nodes = onnx.load(folder / "model.onnx").graph.node
    head = [it for it in nodes if it.op_type.startswith("MatMul")][-1]
    (made,) = [it for it in nodes if it.op_type in ("Reshape", "Transpose") and it.input[0] == head.input[1]]
    (table,) = [it for it in nodes if it.op_type.startswith("Gather") and it.input[0] == made.output[0]]
    if precision.bits <= 8:
        assert table.input[2] == head.input[2], "the scales"


def test_a_full_disk_is_told_before_anything_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10**8}))
    with pytest.raises(LanguageError, match=r"needs 0\.0 GB in .*, where 0\.1 GB are free.*--data-dir"):
        written(folder)
    assert not list(folder.iterdir())


def test_a_disk_that_becomes_full_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LanguageError, match="No space left on device"):
        written(folder)


@pytest.mark.onnxruntime_genai
@pytest.mark.parametrize(
    ("model", "precision"),
    [
        (LLAMA, WeightPrecision.INT4),
        (replace(LLAMA, is_tied=False), WeightPrecision.F32),
        (small("gemma-3-1b", window=16, windowed=(True, True, False)), WeightPrecision.INT8),
        (small("llama-3.2-1b", window=8, windowed=(True,) * 3), WeightPrecision.INT4),
        (MIXTURE, WeightPrecision.INT4),
    ],
    ids=["llama", "untied", "gemma", "windowed", "mixture"],
)
def test_the_engine_generates(folder: Path, model: Architecture, precision: WeightPrecision) -> None:
    installed = replace(runtime_with(folder.parent), version=version("onnxruntime"))
    written(folder, LanguageQuestion(NamedModel("small", model), installed, precision, 1, 1).sizes, precision)
    with WholeModelEngine(installed, folder, folder.parent / "log") as started:
        found = started.run(prompt=40, generate=4)
        assert len(found.later_ns) == 3
        assert min(found.first_ns, *found.later_ns) > 0
        assert found.processor_ns > 0
        assert found.peak_bytes > 1 << 24
        started.load()
        assert started.run(prompt=1, generate=1).later_ns == ()
        assert started.version


_LOADS = "class Config:\n def __init__(self, folder): pass\n def overlay(self, text): pass\n"


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("raise ImportError('no such module')", r"onnxruntime-genai cannot be imported: no such module.*\[llm\]"),
        (f"{_LOADS}def Model(config): os.kill(os.getpid(), 9)", "does not fit into the memory"),
        (f"{_LOADS}def Model(config): raise MemoryError('bad_alloc')", "does not fit into the memory"),
        (f"{_LOADS}def Model(config): raise RuntimeError('unknown type\\nx')", "onnxruntime-genai: unknown type$"),
        (f"{_LOADS}def Model(config): os.abort()", "killed by SIGABRT"),
        (f"{_LOADS}def Model(config): time.sleep(60)", "did not answer within"),
    ],
    ids=["missing", "killed", "memory", "refused", "crashed", "hung"],
)
def test_an_engine_that_fails_is_told_in_a_line(
    folder: Path, module: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in module:
        monkeypatch.setattr(end_to_end, "_SECONDS", 2.0)
    with (
        pytest.raises(LanguageError, match=told),
        WholeModelEngine(runtime_with(folder.parent, module), folder, folder / "log"),
    ):
        pass
