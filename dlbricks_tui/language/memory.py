"""The memory that a language model takes in onnxruntime-genai on CPUs."""

import math
from dataclasses import dataclass

from dlbricks_tui.language.architecture import BLOCK_SIZE, WINDOW_SLACK, Architecture, WeightPrecision

_FLOAT_BYTES = 4
# The interpreter, ONNX Runtime and the engine without a model: of 10 models, 62 MB more or less 2.
_PROCESS_BYTES = 62 << 20
# The kernel maps about so much of a file around each row that is looked up.
_MAPPED_PIECE = 1 << 20
# Floats per block of packed weights: scales and sums, and the scales of the file, which stay. Experts have only these.
_FLOATS_PER_BLOCK = 3


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """The memory of a language model, in bytes; the cache is that of the whole context."""

    weights: int
    cache: int
    buffers: int

    @property
    def total(self) -> int:
        return self.weights + self.cache + self.buffers


def memory_need(model: Architecture, precision: WeightPrecision, context: int, prompt: int) -> MemoryNeed:
    """Return the memory for a context of so many tokens, of which a prompt is computed at once."""
    windowed = sum(model.windowed)
    held = model.window + WINDOW_SLACK if model.has_short_caches else context
    cache_tokens = (model.blocks - windowed) * context + windowed * held
    cache = 2 * cache_tokens * model.kv_heads * model.head_size * _FLOAT_BYTES
    # While weights are packed, they are there twice; the cache and all buffers come later.
    largest = max(model.vocabulary, 2 * model.experts * model.inner) * model.hidden * precision.bits // 8
    # Arrays of logits that are there at once: a cap divides, bounds and multiplies them.
    logits = 3 if model.logit_cap else 2 if model.logit_scale != 1.0 else 1
    running = prompt * _FLOAT_BYTES * (model.vocabulary * logits + _block_floats(model, precision))
    buffers = _PROCESS_BYTES + max(running, largest - cache, 0)
    return MemoryNeed(_weight_bytes(model, precision, context), cache, buffers)


def _weight_bytes(model: Architecture, precision: WeightPrecision, context: int) -> int:
    queries, keys = model.heads * model.head_size, model.kv_heads * model.head_size
    table = model.vocabulary * model.hidden
    experts = model.blocks * 3 * model.hidden * model.inner * model.experts
    inner = model.experts if model.experts else 3 * model.inner
    products = model.blocks * model.hidden * (2 * (queries + keys) + inner)
    vectors = model.parameters - products - experts - (table if model.is_tied else 2 * table)
    angles = context * model.rotary_size
    packed = _packed_bytes(products + table, precision, _FLOATS_PER_BLOCK) + (vectors + angles) * _FLOAT_BYTES
    # All experts count: sooner or later each has a token.
    packed += _packed_bytes(experts, precision, 1)
    if model.is_tied:
        # The table is the head's weights in another shape: a copy.
        return packed + table * precision.bits // 8
    # The table stays in its file. Tokens lie anywhere in it.
    file = table * _FLOAT_BYTES
    return packed + int(file * -math.expm1(-context * _MAPPED_PIECE / file))


def _packed_bytes(numbers: int, precision: WeightPrecision, floats_per_block: int) -> int:
    """Return the bytes of weights; ONNX Runtime repacks them, and drops those of the file but for scales."""
    blocks = 0 if precision is WeightPrecision.F32 else numbers // BLOCK_SIZE
    return numbers * precision.bits // 8 + blocks * floats_per_block * _FLOAT_BYTES


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
    quantised = 0
    if precision is not WeightPrecision.F32:
        # Products round their inputs to 8 bits, with a scale for each block.
        quantised = (2 * model.hidden + queries + model.inner) * (BLOCK_SIZE + _FLOAT_BYTES) // BLOCK_SIZE // 4
    return states + attention + inner + quantised
