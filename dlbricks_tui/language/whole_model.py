"""A whole language model with random weights, as a folder that onnxruntime-genai opens.

Its graph is that of the carriers, with all blocks, the whole table, and sizes that are open until it runs.
"""

from __future__ import annotations

import json
import os
import shutil
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.bricks.programs import carrier_program
from dlbricks_tui.language.architecture import Architecture, LanguageError, WeightPrecision
from dlbricks_tui.language.decoder import Decoder, Step, decoder

if TYPE_CHECKING:
    from onnx import ModelProto

    from dlbricks_tui.runtime.traits import Traits

MODEL_FILE, DATA_FILE, CONFIG_FILE = "model.onnx", "model.onnx.data", "genai_config.json"
# A runtime maps weights into memory where they begin at a page.
_PAGE = 4096
_PAST, _PRESENT = "past_key_values.", "present."
# A prime number, so that no two weights begin at the same place.
_PATTERN_BYTES, _PATTERN_STEP = 1 << 23, 7919
# A disk that is full to the last byte stops other programs.
_LEFT_FREE = 1 << 28
# Weights of products, and scales of weights of 4 or 8 bits, such that values stay near one.
_WEIGHT, _SCALE = 0.02, 0.004


class WeightPlace(NamedTuple):
    """Where a weight lies in the file of data, and the name of the pattern that fills it."""

    begin: int
    end: int
    pattern: str


@dataclass(frozen=True, slots=True)
class WholeModelFiles:
    """A whole model before it is written: the graph, the place of each weight in the file of data, and the config."""

    proto: ModelProto
    # The weights in the order of the file.
    places: tuple[WeightPlace, ...]
    config: Mapping[str, object]

    @property
    def size_bytes(self) -> int:
        return self.places[-1].end

    def write(self, folder: Path, check: Callable[[], None] = lambda: None) -> None:
        """Write the files into an empty folder; `check` is called often, and may raise."""
        free = shutil.disk_usage(folder).free
        if self.size_bytes + _LEFT_FREE > free:
            raise LanguageError(
                f"the whole model needs {self.size_bytes / 1e9:.1f} GB in {folder}, where {free / 1e9:.1f} GB are "
                "free: free some, or name a data folder on a larger disk (--data-dir)"
            )
        try:
            with (folder / DATA_FILE).open("wb") as data:
                for number, weight in enumerate(self.places):
                    check()
                    data.write(bytes(weight.begin - data.tell()))
                    for part in _parts(weight, number):
                        data.write(part)
                data.flush()
                # What is written later would disturb what is timed.
                os.fsync(data.fileno())
            (folder / MODEL_FILE).write_bytes(self.proto.SerializeToString())
            (folder / CONFIG_FILE).write_text(json.dumps(self.config, indent=1), encoding="utf-8")
        except OSError as error:
            raise LanguageError(f"the whole model cannot be written to {folder}: {error.strerror}") from error


def whole_model_files(model: Architecture, precision: WeightPrecision, longest: int, traits: Traits) -> WholeModelFiles:
    """Return a whole model for contexts of so many tokens at most."""
    from onnx import ModelProto

    found = decoder(model, precision, Step.prefill(1, longest), traits, range(model.blocks), whole_table=True)
    written = carrier_program(found.graph)
    proto = ModelProto.FromString(b64decode(written.program.network.symbol))
    _name_as_engine_does(proto, found)
    return WholeModelFiles(proto, _placed(proto), _config(model, longest))


def _name_as_engine_does(proto: ModelProto, found: Decoder) -> None:
    """Give inputs and outputs the names that the engine looks for, and sizes of any length."""
    names = dict(zip([it.name for it in proto.graph.input], [it.name for it in found.graph.inputs], strict=True))
    caches = [it.name for it in found.graph.inputs if it.name.startswith(_PAST)]
    results = ["logits", *(it.replace(_PAST, _PRESENT) for it in caches)]
    names |= dict(zip([it.name for it in proto.graph.output], results, strict=True))
    for node in proto.graph.node:
        node.input[:] = [names.get(it, it) for it in node.input]
        node.output[:] = [names.get(it, it) for it in node.output]
    for value in (*proto.graph.input, *proto.graph.output):
        value.name = names[value.name]
    for value in proto.graph.input:
        axes = value.type.tensor_type.shape.dim
        axes[0].dim_param = "batch_size"
        if value.name.startswith(_PAST):
            axes[2].dim_param = "past_sequence_length"
        else:
            axes[1].dim_param = "sequence_length" if value.name == "input_ids" else "total_sequence_length"


def _placed(proto: ModelProto) -> tuple[WeightPlace, ...]:
    """Tell each weight its place in the file of data, and return all places."""
    quantised = {it.name for it in proto.graph.initializer if it.external_data and it.data_type == it.UINT8}
    scales = {it for node in proto.graph.node if quantised & set(node.input) for it in node.input}
    found: list[WeightPlace] = []
    end = 0
    for weight in proto.graph.initializer:
        if not weight.external_data:
            continue
        begin = -(-end // _PAGE) * _PAGE
        is_packed = weight.data_type == weight.UINT8
        end = begin + prod(weight.dims) * (1 if is_packed else 4)
        kind = "factors" if len(weight.dims) == 1 else "scales" if weight.name in scales else "weights"
        found.append(WeightPlace(begin, end, "packed" if is_packed else kind))
        del weight.external_data[:]
        for key, value in (("location", DATA_FILE), ("offset", begin), ("length", end - begin)):
            weight.external_data.add(key=key, value=str(value))
    return tuple(found)


def _parts(weight: WeightPlace, number: int) -> Iterator[memoryview]:
    """Yield the bytes of a weight. ONNX Runtime keeps equal weights once, so each begins elsewhere in its pattern."""
    pattern = memoryview(_patterns()[weight.pattern])
    begin, left = 4 * (number * _PATTERN_STEP % (len(pattern) // 4)), weight.end - weight.begin
    while left:
        part = pattern[begin : begin + left]
        yield part
        begin, left = 0, left - len(part)


@cache
def _patterns() -> Mapping[str, bytes]:
    from numpy import float32
    from numpy.random import default_rng

    random, count = default_rng(1), _PATTERN_BYTES // 4
    factors = random.uniform(0.5, 1.5, count).astype(float32)
    return {
        "packed": random.bytes(_PATTERN_BYTES),
        "factors": factors.tobytes(),
        "scales": (factors * float32(_SCALE)).tobytes(),
        "weights": (random.standard_normal(count, float32) * float32(_WEIGHT)).tobytes(),
    }


def _config(model: Architecture, longest: int) -> dict[str, object]:
    # The engine refuses caches that are shorter than the window.
    longest, kinds = max(longest, model.window), ("key", "value")
    files: dict[str, object] = {
        "session_options": {"provider_options": []},
        "filename": MODEL_FILE,
        "head_size": model.head_size,
        "hidden_size": model.hidden,
        "num_attention_heads": model.heads,
        "num_hidden_layers": model.blocks,
        "num_key_value_heads": model.kv_heads,
        "inputs": {it: it for it in ("input_ids", "attention_mask")}
        | {f"past_{it}_names": f"{_PAST}%d.{it}" for it in kinds},
        "outputs": {"logits": "logits"} | {f"present_{it}_names": f"{_PRESENT}%d.{it}" for it in kinds},
    }
    if model.window and model.has_short_caches:
        # The caches of these blocks hold little more than the window.
        windowed = [number for number, it in enumerate(model.windowed) if it]
        slides = {"slide_key_value_cache": False, "slide_inputs": False}
        files["sliding_window"] = {"window_size": model.window, "layers": windowed, **slides}
    special = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), 0)
    # Any decoder, whose family the engine needs not know.
    sizes = {"type": "decoder", "context_length": longest, "vocab_size": model.vocabulary}
    search = {"max_length": longest, "do_sample": False, "num_beams": 1, "past_present_share_buffer": True}
    return {"model": {**sizes, "decoder": files, **special}, "search": search}
