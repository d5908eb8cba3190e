"""The sizes of a language model, how its weights are stored, and what follows from the sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from dlbricks_tui.errors import UserError

# Weights of 4 or 8 bits share a scale in blocks of so many.
BLOCK_SIZE = 32
# The same where OpenVINO's tools store them: the largest that divides a row.
_BLOCK_SIZES = (128, 64, 32)
# The cache of a windowed block holds its window and so many tokens more.
WINDOW_SLACK = 16
MIXTURES = frozenset({"qwen3_moe", "mixtral", "gpt_oss"})
MOST_PARAMETERS = 10**13


class LanguageError(UserError):
    """A language model that is not known, cannot be read, or is impossible."""


class LanguagePhase(str, Enum):
    """The parts of an answer whose latency is compared: all of it, its prompt, or each generated token."""

    TOTAL = "total"
    PREFILL = "prefill"
    DECODE = "decode"


class WeightPrecision(str, Enum):
    """How the weights of products are stored: 4 or 8 bits in blocks, or floating point.

    Those from `q4_k_m` on are the ones of GGUF files.
    """

    INT4 = "int4"
    INT8 = "int8"
    F32 = "f32"
    # Computed in bfloat16, too.
    BF16 = "bf16"
    Q4_K_M = "q4_k_m"
    Q4_0 = "q4_0"
    Q8_0 = "q8_0"
    F16 = "f16"

    @property
    def bits(self) -> int:
        return int(re.findall(r"\d+", self.value)[0])

    @property
    def layout(self) -> WeightPrecision:
        """The precision in which the layers of the model are laid out to predict this one."""
        return {4: WeightPrecision.INT4, 8: WeightPrecision.INT8}.get(self.bits, WeightPrecision.F32)


class WeightPacking(NamedTuple):
    """How quantised weights are stored: their bits, how many in a row share a scale, and whether also a zero point."""

    bits: int
    block: int
    has_zeros: bool = False

    @classmethod
    def of(cls, precision: WeightPrecision, width: int, *, by_row: bool, is_outer: bool = False) -> WeightPacking:
        """Return that of rows of so many weights; `is_outer` stands for table and head."""
        if not by_row:
            return cls(precision.bits, BLOCK_SIZE)
        block = next((it for it in _BLOCK_SIZES if width % it == 0), 0)
        is_4_bits = precision is WeightPrecision.INT4 and not is_outer and block
        return cls(4, block, True) if is_4_bits else cls(8, width, True)

    def blocks(self, width: int) -> int:
        """Return the number of blocks in a row of so many weights."""
        return -(-width // self.block)

    def row_bytes(self, width: int) -> int:
        """Return the bytes of a row of so many weights, without scales and zeros."""
        return self.blocks(width) * self.block * self.bits // 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The sizes of a decoder: a table, blocks, a last norm, and a head. Impossible sizes raise LanguageError."""

    # The models whose blocks have the same form, such as llama.
    family: str
    # Numbers per token between blocks.
    hidden: int
    blocks: int
    heads: int
    # Heads of keys and values, each shared by as many heads of queries.
    kv_heads: int
    head_size: int
    # The width of the feed-forward part; in a mixture, of one expert.
    inner: int
    vocabulary: int
    # The longest context in tokens.
    positions: int
    # The head multiplies with the table of the embedding.
    is_tied: bool
    # Between the products of the feed-forward part: GELU instead of SiLU.
    has_gelu: bool
    qkv_bias: bool
    output_bias: bool
    # In a mixture, the router has a bias, too.
    inner_bias: bool
    # The queries and keys of each head are normalised.
    qk_norm: bool
    # Numbers per head that are rotated.
    rotary_size: int
    # The tokens that a windowed block sees; 0: no block is windowed.
    window: int = 0
    # For each block; empty: none.
    windowed: tuple[bool, ...] = ()
    # The caches of windowed blocks hold their window only: older versions of ONNX Runtime keep everything.
    has_short_caches: bool = True
    # The head reads only the last token of a prompt, whatever the engine usually does.
    scores_last_only: bool = False
    # Soft caps of the attention's and the head's logits; 0: none.
    attention_cap: float = 0.0
    logit_cap: float = 0.0
    # Attention and feed-forward part have norms after them, too.
    has_outer_norms: bool = False
    # Each head has a logit that takes attention from all tokens.
    has_sinks: bool = False
    experts: int = 0
    # The experts that compute for a token.
    active_experts: int = 0
    epsilon: float = 1e-6
    # Factors of the rows of the table, of what a block adds, of the attention's and of the head's logits.
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    # 0: one over the root of the head size.
    attention_scale: float = 0.0
    logit_scale: float = 1.0

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise LanguageError(f"{problem}; correct the sizes of the model")

    @property
    def parameters(self) -> int:
        return self._parameters(self.experts)

    @property
    def active_parameters(self) -> int:
        """The number of weights without the experts that are idle for a token."""
        return self._parameters(self.active_experts)

    @property
    def kinds(self) -> tuple[int, ...]:
        """The number of each block's kind, by first appearance; blocks of a kind have equal operators and shapes."""
        numbers: dict[bool, int] = {}
        return tuple([numbers.setdefault(it, len(numbers)) for it in self.windowed or (False,) * self.blocks])

    def _parameters(self, experts: int) -> int:
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        attention = 2 * self.hidden * (queries + keys)
        attention += self.qkv_bias * (queries + 2 * keys) + self.output_bias * self.hidden
        attention += self.qk_norm * 2 * self.head_size + self.has_sinks * self.heads
        inner = 3 * self.hidden * self.inner + self.inner_bias * (2 * self.inner + self.hidden)
        if self.experts:
            inner = experts * inner + self.experts * (self.hidden + self.inner_bias)
        norms = (4 if self.has_outer_norms else 2) * self.hidden
        tables = (1 if self.is_tied else 2) * self.vocabulary * self.hidden
        return self.blocks * (attention + inner + norms) + self.hidden + tables

    def _problems(self) -> Iterator[str]:
        """Yield what is impossible. Later checks rely on earlier ones."""
        for name, (words, least, most) in _LIMITS.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                yield f"the {words} is {shown_value(value)}, and has to be a whole number from {least:,} to {most:,}"
        if self.heads % self.kv_heads:
            yield f"the number of key-value heads is {self.kv_heads}, and has to divide the {self.heads} heads"
        if self.rotary_size % 2 or self.rotary_size > self.head_size:
            yield f"the rotary size is {self.rotary_size}, and has to be even, at most {self.head_size} (the head size)"
        if self.windowed and len(self.windowed) != self.blocks:
            yield f"{len(self.windowed):,} blocks have a kind of attention, and all {self.blocks:,} have to have one"
        if any(self.windowed) != (self.window > 0):
            yield f"the window is {self.window}, and {sum(self.windowed)} blocks are windowed"
        if (self.experts > 0) != (self.family in MIXTURES):
            yield f"the number of experts is {self.experts}, which does not suit the family {self.family}"
        if not min(self.experts, 1) <= self.active_experts <= self.experts:
            yield f"the number of active experts is {self.active_experts}, and has to be from 1 to {self.experts}"
        if self.parameters > MOST_PARAMETERS:
            yield f"the number of parameters is {self.parameters:,}, and has to be at most {MOST_PARAMETERS:,}"


# The words, the least and the most of each size.
_LIMITS = {
    "hidden": ("hidden size", 1, 2**17),
    "blocks": ("number of blocks", 1, 1024),
    "heads": ("number of heads", 1, 2048),
    "kv_heads": ("number of key-value heads", 1, 2048),
    "head_size": ("head size", 1, 4096),
    "inner": ("inner size", 1, 2**20),
    "vocabulary": ("size of the vocabulary", 1, 2**24),
    "positions": ("number of positions", 1, 2**30),
    "rotary_size": ("rotary size", 1, 4096),
    "window": ("window", 0, 2**30),
    "experts": ("number of experts", 0, 4096),
    "active_experts": ("number of active experts", 0, 4096),
}


def shown_value(value: object) -> str:
    if isinstance(value, int) and abs(value) >= 10**15:
        # Python refuses to write integers of many digits.
        return "more than 10^15" if value > 0 else "less than -10^15"
    if value is not None and not isinstance(value, int | float | str):
        return "a list" if isinstance(value, list) else "an object"
    text = f"{value:,}" if type(value) is int else repr(value)
    return text if len(text) <= 40 else f"{text[:30]}..."
