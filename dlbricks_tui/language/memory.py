"""The memory that a language model takes in onnxruntime-genai on CPUs."""

from __future__ import annotations

import math
from typing import NamedTuple

from dlbricks_tui.language.architecture import Architecture
from dlbricks_tui.language.decoder import BLOCK_SIZE, WINDOW_SLACK
from dlbricks_tui.language.precision import WeightPrecision

_FLOAT_BYTES = 4
# The interpreter, ONNX Runtime and the engine without a model: of 10 models, 62 MB more or less 2.
_PROCESS_BYTES = 62 << 20
# The kernel maps about so much of a file around each row that is looked up.
_MAPPED_PIECE = 1 << 20
# Packed weights come with their scales and with sums of blocks; the scales of the file stay, too.
_FLOATS_PER_BLOCK = 3


class LanguageMemory(NamedTuple):
    """The most bytes that a model holds: its weights, the cache of a context, and all else."""

    weights: int
    cache: int
    buffers: int


def memory_need(model: Architecture, precision: WeightPrecision, context: int, prompt: int) -> LanguageMemory:
    """Return the memory for a context of so many tokens, of which a prompt is computed at once."""
    cache = _cache_bytes(model, context)
    # While the head is packed, its weights are there twice; the cache and all buffers come later.
    head = model.vocabulary * model.hidden * precision.bits // 8
    running = prompt * _FLOAT_BYTES * (model.vocabulary * _logits(model) + _block_floats(model, precision))
    return LanguageMemory(
        _weight_bytes(model, precision, context), cache, _PROCESS_BYTES + max(running, head - cache, 0)
    )


def _weight_bytes(model: Architecture, precision: WeightPrecision, context: int) -> int:
    queries, keys = model.heads * model.head_size, model.kv_heads * model.head_size
    inner = 3 * model.hidden * model.inner * max(1, model.experts) + model.hidden * model.experts
    table = model.vocabulary * model.hidden
    products = model.blocks * (2 * model.hidden * (queries + keys) + inner)
    tables = table if model.is_tied else 2 * table
    vectors = model.parameters - products - tables
    angles = context * model.rotary_size
    packed = _packed_bytes(products + table, precision) + (vectors + angles) * _FLOAT_BYTES
    if model.is_tied:
        # The table is the head's weights in another shape: a copy.
        return packed + table * precision.bits // 8
    # The table stays in its file. Tokens lie anywhere in it.
    file = table * _FLOAT_BYTES
    return packed + int(file * -math.expm1(-context * _MAPPED_PIECE / file))


def _packed_bytes(numbers: int, precision: WeightPrecision) -> int:
    """Return the bytes of the weights of products; ONNX Runtime repacks them and drops those of the file."""
    if precision is WeightPrecision.F32:
        return numbers * _FLOAT_BYTES
    return numbers * precision.bits // 8 + numbers // BLOCK_SIZE * _FLOATS_PER_BLOCK * _FLOAT_BYTES


def _cache_bytes(model: Architecture, context: int) -> int:
    windowed = sum(model.windowed)
    tokens = (model.blocks - windowed) * context + windowed * (model.window + WINDOW_SLACK)
    return 2 * tokens * model.kv_heads * model.head_size * _FLOAT_BYTES


def _logits(model: Architecture) -> int:
    """Return how many arrays of logits there are at once."""
    return 2 if model.logit_cap or model.logit_scale != 1.0 else 1


def _block_floats(model: Architecture, precision: WeightPrecision) -> int:
    """Return the numbers per token of all arrays of a block, as the arena of ONNX Runtime puts few in place of others.

    A later block reuses them.
    """
    queries, keys = model.heads * model.head_size, model.kv_heads * model.head_size
    packed = queries + 2 * keys
    # The packed queries, keys and values, and their rotated copies; with norms, also the parts and the normed ones.
    attention = (4 if model.qk_norm else 2) * packed + queries
    # The state, the sums, the normed states, and the results of both products that end in a state.
    states = (8 if model.has_outer_norms else 6) * model.hidden
    inner = 3 * model.inner * max(1, model.active_experts)
    quantised = 0
    if precision is not WeightPrecision.F32:
        # Products round their inputs to 8 bits, with a scale for each block.
        quantised = (2 * model.hidden + queries + model.inner) * (BLOCK_SIZE + _FLOAT_BYTES) // BLOCK_SIZE // 4
    return states + attention + inner + quantised
