"""The memory that a language model takes in onnxruntime-genai on CPUs."""

import math
from dataclasses import dataclass

from dlbricks_tui.language.architecture import BLOCK_SIZE, WINDOW_SLACK, Architecture, WeightPrecision
from dlbricks_tui.language.decoder import ATTENTION, Decoder
from dlbricks_tui.language.orders import LanguageQuestion
from dlbricks_tui.models.graph import Layer
from dlbricks_tui.models.kinds import Kind

_FLOAT_BYTES = 4
# The interpreter, ONNX Runtime and the engine without a model: of 10 models, 62 MB more or less 2.
_PROCESS_BYTES = 62 << 20
# The kernel maps about so much of a file around each row that is looked up.
_MAPPED_PIECE = 1 << 20
# For each scale in the file: itself, and one with a sum in the packed weights.
_FLOATS_PER_SCALE = 3


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """The memory of a language model, in bytes; the cache is that of the whole context."""

    weights: int
    cache: int
    buffers: int

    @property
    def total(self) -> int:
        return self.weights + self.cache + self.buffers


def memory_need(asked: LanguageQuestion, found: Decoder) -> MemoryNeed:
    """Return the memory for prompt and generated tokens, by the decoder of a step."""
    model, precision, context = asked.sizes, asked.precision, asked.prompt + asked.generate
    windowed = sum(model.windowed)
    held = model.window + WINDOW_SLACK if model.has_short_caches else context
    cache_tokens = (model.blocks - windowed) * context + windowed * held
    cache = 2 * cache_tokens * model.kv_heads * model.head_size * _FLOAT_BYTES
    layers = [it for it in found.graph.layers if it.kind is not Kind.EMBEDDING]
    # While weights are packed, they are there twice; the cache and all buffers come later.
    largest = max(it.size_bytes for layer in layers for it in layer.weights)
    # Arrays of logits that are there at once: a cap divides, bounds and multiplies them.
    logits = 3 if model.logit_cap else 2 if model.logit_scale != 1.0 else 1
    running = asked.prompt * _FLOAT_BYTES * (model.vocabulary * logits + _block_floats(model, precision))
    # All experts count: sooner or later each has a token.
    weights = sum(found.counts[it.index] * _kept_bytes(it) for it in layers)
    angles, table = context * model.rotary_size * _FLOAT_BYTES, model.vocabulary * model.hidden
    # It is a copy of the head's weights, or stays in its file. Tokens lie anywhere in it.
    file = table * _FLOAT_BYTES
    mapped = int(file * -math.expm1(-context * _MAPPED_PIECE / file))
    weights += angles + (table * precision.bits // 8 if model.is_tied else mapped)
    return MemoryNeed(weights, cache, _PROCESS_BYTES + max(running, largest - cache, 0))


def _kept_bytes(layer: Layer) -> int:
    """Return the bytes of weights; tables of angles, which all blocks share, do not count."""
    kept_rows = _FLOATS_PER_SCALE if layer.op.endswith("MatMulNBits") else 0 if layer.op.endswith(ATTENTION) else 1
    rows = sum(it.size_bytes for it in layer.weights if it.dtype == "float32" and len(it.shape or ()) == 2)
    return sum(it.size_bytes for it in layer.weights) + (kept_rows - 1) * rows


def _block_floats(model: Architecture, precision: WeightPrecision) -> int:
    """Return the numbers per token of all arrays of a block, as the arena of ONNX Runtime puts few in place of others.

    A later block reuses them.
    """
    queries, keys = model.heads * model.head_size, model.kv_heads * model.head_size
    # The packed queries, keys and values, and their rotated copies; with norms, also the parts and the normed ones.
    attention = (4 if model.qk_norm else 2) * (queries + 2 * keys) + queries
    # The state, the sums, the normed states, and the results of both products that end in a state.
    states = (8 if model.has_outer_norms else 6) * model.hidden
    inner = 3 * model.inner * max(1, model.active_experts)
    # Products round their inputs to 8 bits, with a scale for each block.
    rounded = (2 * model.hidden + queries + model.inner) * (BLOCK_SIZE + _FLOAT_BYTES) // BLOCK_SIZE // 4
    return states + attention + inner + (0 if precision is WeightPrecision.F32 else rounded)
