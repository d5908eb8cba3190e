"""The layers of language models against onnxruntime-genai's model builder itself, where torch is installed.

`test_decoder.py` compares with what the builder made once; this test tells when a newer builder makes something else.
"""

import importlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.language.config_file import architecture_of_config
from dlbricks_tui.language.decoder import Step, decoder
from tests.language.test_decoder import COMPARED, ONNX_RUNTIME, operators_of

_SIZES = {
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
_CONSTANTS = frozenset({"Constant", "Sigmoid"})


def built(folder: Path, family: str) -> Any:
    """Return the graph that the builder makes of a tiny model with random weights."""
    # Loaded here: torch is no dependency of this project.
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    tokenizers = importlib.import_module("tokenizers")
    config = transformers.AutoConfig.for_model(family, **_SIZES)
    model = transformers.AutoModelForCausalLM.from_config(config).to(torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # The builder leaves out biases that are zero.
            if name.endswith("bias"):
                parameter.normal_(0, 0.02)
    model.save_pretrained(folder / "model")
    words = tokenizers.models.WordLevel({"<s>": 1, "</s>": 2, "<unk>": 3, "<pad>": 0}, unk_token="<unk>")
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(words), **special)
    tokenizer.save_pretrained(folder / "model")
    options = ("-i", folder / "model", "-o", folder / "built", "-c", folder / "cache", "-p", "int4", "-e", "cpu")
    subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", *map(str, options)], check=True)
    return importlib.import_module("onnx").load(folder / "built" / "model.onnx", load_external_data=False).graph


def operators_in(graph: Any) -> Iterator[tuple[str, dict[str, Any], list[list[int]]]]:
    """Yield the operators of a graph as ONNX Runtime executes them: sigmoids and biases join the operator before."""
    from onnx.helper import get_attribute_value

    stored = {it.name: list(it.dims) for it in graph.initializer}
    readers = {name: node for node in graph.node for name in node.input}
    joined = set()
    for node in graph.node:
        if node.op_type in _CONSTANTS or node.name in joined:
            continue
        weights = [stored[it] for it in node.input if it in stored]
        reader, op = readers.get(node.output[0]), node.op_type
        if op == "MatMulNBits" and reader is not None and reader.op_type == "Add":
            joined.add(reader.name)
            weights += [stored[it] for it in reader.input if it in stored]
        if op == "Mul" and node.name.endswith("act_fn/Mul"):
            op = "QuickGelu"
        given = {it.name: get_attribute_value(it) for it in node.attribute if it.name in COMPARED}
        if op == "GroupQueryAttention":
            weights = [it for it in weights if len(it) == 1]
            given.pop("local_window_size", None)
        elif op == "Gather":
            weights, given = [], {}
        yield op, {name: round(it, 6) if isinstance(it, float) else it for name, it in given.items()}, weights


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "mistral"])
def test_the_installed_builder_makes_the_layers_of_our_models(
    tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("torch", "transformers", "onnxruntime_genai"):
        pytest.importorskip(module)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    graph = built(tmp_path, family)
    config = json.loads((tmp_path / "model" / "config.json").read_bytes())
    model = architecture_of_config(config)
    ours = decoder(model, WeightPrecision.INT4, Step.prefill(8), ONNX_RUNTIME, range(model.blocks))
    shapes = ((op, given, [shape for _, shape in weights]) for op, given, weights in operators_of(ours))
    assert Counter(json.dumps(it, sort_keys=True) for it in shapes) == Counter(
        json.dumps(it, sort_keys=True) for it in operators_in(graph)
    )
