"""The layers of a language model without weights, laid out as onnxruntime-genai's model builder does for CPUs.

Blocks of a kind are equal but for the first norm of the model, so a graph of two blocks of each kind has all layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.language.architecture import BLOCK_SIZE, WINDOW_SLACK, Architecture, WeightPacking, WeightPrecision
from dlbricks_tui.models.graph import (
    Feed,
    GraphInput,
    Layer,
    LayerGraph,
    LayerReads,
    Level,
    NativeNode,
    Numbers,
    Operator,
    Origin,
    TensorType,
    Wire,
)
from dlbricks_tui.models.kinds import Kind, kind_of
from dlbricks_tui.models.neutral import Neutral
from dlbricks_tui.models.onnx_operators import OnnxSite, native_node, neutral_onnx, text_of

if TYPE_CHECKING:
    from dlbricks_tui.models.graph import LayerGraph
    from dlbricks_tui.runtime.traits import Traits

# The version of ONNX's own operators in graphs of language models.
OPSET = 21
MICROSOFT = "com.microsoft"
TABLES = frozenset({"Gather", "GatherBlockQuantized"})
# Stands for an input that is no written number.
_TENSOR = "tensor"


class ModelPart(str, Enum):
    """The parts of a language model, between which its time is shared out."""

    PRODUCTS = "products"
    EXPERTS = "experts"
    ATTENTION = "attention"
    NORMS = "norms"
    TABLE = "table"
    HEAD = "head"
    OTHER = "other"
    # All of a block, where an engine tells no times of its parts.
    BLOCKS = "blocks"


class Made(NamedTuple):
    """A tensor that the graph reads or has computed."""

    feed: Feed
    type: TensorType


class StoredWeight(NamedTuple):
    """A weight; `array` tells it from others of its type."""

    array: Hashable
    type: TensorType


class Constant(NamedTuple):
    """A number, or several, that are part of an operator."""

    values: tuple[int | float, ...]
    dtype: str = "int64"
    is_single: bool = False


Read = Made | StoredWeight | Constant | None


class LayerWriter:
    """Collects layers, each one operator of ONNX, with the part that they belong to and how often the model has them.

    `part` and `times` count for the layers that are added next.
    """

    def __init__(self) -> None:
        self.part = ModelPart.OTHER
        self.times = 1
        self.parts: list[ModelPart] = []
        self.counts: list[int] = []
        self._layers: list[Layer] = []
        self._inputs: list[GraphInput] = []
        self._arrays: dict[Hashable, int] = {}

    def input(self, name: str, found: TensorType, value: Numbers = ()) -> Made:
        """Add an input of the graph; `value` repeats throughout it."""
        self._inputs.append(GraphInput(name, found, value))
        return Made(Feed(None, len(self._inputs) - 1), found)

    def add(
        self, op: str, read: Sequence[Read], made: Sequence[TensorType | None], domain: str = "", **attributes: Any
    ) -> list[Made]:
        """Add an operator and return its outputs; None stands for an input or output that it lacks."""
        tensors = [it for it in read if it is not None and not isinstance(it, Constant)]
        reads = LayerReads()
        wires = [
            reads.tensor(it.feed, it.type)
            if isinstance(it, Made)
            else reads.weight(self._arrays.setdefault(it.array, len(self._arrays)), it.type)
            for it in tensors
        ]
        outputs = tuple([it for it in made if it is not None])
        # ONNX's own operators may be shared ones, which depends on the types.
        types = () if domain else tuple([it.type for it in tensors])
        neutral, native = _spelled(
            op,
            domain,
            tuple([it if it is None or isinstance(it, Constant) else _TENSOR for it in read]),
            tuple([it is not None for it in made]),
            types,
            () if domain else outputs,
            tuple([(name, type(value), value) for name, value in attributes.items()]),
        )
        operator = Operator(neutral.op, neutral.params, tuple(wires), outputs, native, (), (neutral.op,))
        index = len(self._layers)
        self._layers.append(
            Layer(
                index=index,
                name=f"{op.lower()}{index}",
                op=operator.op,
                kind=Kind.EMBEDDING if op in TABLES and reads.weights else kind_of(operator.op),
                operators=(operator,),
                feeds=tuple(reads.feeds),
                data=tuple(reads.data),
                weights=tuple(reads.weights),
                results=tuple([Wire(Origin.OPERATOR, 0, place) for place in range(len(outputs))]),
                outputs=outputs,
                arrays=tuple(reads.arrays),
            )
        )
        self.parts.append(self.part)
        self.counts.append(self.times)
        return [Made(Feed(index, place), found) for place, found in enumerate(outputs)]

    def one(self, op: str, read: Sequence[Read], made: TensorType, domain: str = "", **attributes: Any) -> Made:
        """Add an operator with a single output."""
        return self.add(op, read, [made], domain, **attributes)[0]

    def graph(self, name: str, heads: Sequence[Made], traits: Traits) -> LayerGraph:
        """Return all layers; the runtime executes them as they are."""
        return LayerGraph(
            name, Level.FUSED, tuple(self._layers), tuple(self._inputs), tuple([it.feed for it in heads]), traits
        )


@lru_cache(maxsize=1 << 12)
def _spelled(
    op: str,
    domain: str,
    read: tuple[Constant | str | None, ...],
    made: tuple[bool, ...],
    types: tuple[TensorType, ...],
    outputs: tuple[TensorType, ...],
    attributes: tuple[tuple[str, type, Any], ...],
) -> tuple[Neutral, NativeNode]:
    """Return the neutral and the native form of an operator; most layers of a model, and of others, share them."""
    from numpy import dtype
    from onnx.helper import make_node, make_tensor, np_dtype_to_tensor_dtype

    node = make_node(
        op,
        ["" if it is None else f"in{place}" for place, it in enumerate(read)],
        [f"out{place}" if it else "" for place, it in enumerate(made)],
        domain=domain,
        **{name: value for name, _, value in attributes},
    )
    written = {place: it for place, it in enumerate(read) if isinstance(it, Constant)}
    version = 1 if domain else OPSET
    site = OnnxSite(types, outputs, version, {place: it.values for place, it in written.items()}, sum(made))
    texts = {}
    for place, it in written.items():
        shape = () if it.is_single else (len(it.values),)
        texts[place] = text_of(make_tensor("", np_dtype_to_tensor_dtype(dtype(it.dtype)), shape, it.values))
    return neutral_onnx(node, site), native_node(node, texts, version)


def float_type(*shape: int) -> TensorType:
    return TensorType(shape, "float32")


# The products round activations to 8 bits, as the builder asks for.
_ACCURACY_LEVEL = 4
# The place of the bias among the inputs of a product of packed weights.
_BIAS_PLACE = 5
# A step reads a row of the table for each token; so much of it stands for all of it.
_MOST_TABLE_BYTES = 1 << 27
# Rows that are looked up lie so far apart.
_ROW_STEP = 7919
_MOST_POSITIONS = 1 << 13
# Behind the last token of all prompts.
_END = 2**31 - 1
ATTENTION = "GroupQueryAttention"
# How experts of this family compute.
_GPT_OSS = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 7.0}


@dataclass(frozen=True, slots=True)
class Step:
    """One run of the model: it reads so many tokens behind so many others, into caches for `buffer` tokens.

    A `batch` of several sequences does so at once, each with caches of its own.
    """

    tokens: int
    past: int
    buffer: int
    batch: int = 1

    @property
    def total(self) -> int:
        return self.past + self.tokens

    @classmethod
    def prefill(cls, prompt: int, buffer: int = 0) -> Step:
        return cls(prompt, 0, max(prompt, buffer))

    @classmethod
    def decode(cls, context: int, batch: int = 1) -> Step:
        """Return the step that makes a token behind a context of so many tokens, in each of so many sequences."""
        return cls(1, context, context + 1, batch)


def steps_for(prompt: int, generate: int, batches: Sequence[int] = (1,)) -> tuple[Step, ...]:
    """Return the steps from which the whole answer follows: the prompt, the first token behind it, and the last.

    A batch of several sequences has one step, in the middle of the answer.
    """
    first, last = prompt, prompt + max(1, generate - 1) - 1
    together = [Step.decode((first + last) // 2, it) for it in batches if it > 1]
    return (Step.prefill(prompt), *map(Step.decode, dict.fromkeys((first, last))), *together)


class Extent(Enum):
    """The part of the model that a decoder has: all of it, the table and blocks, or the head."""

    ALL = "all"
    BLOCKS = "blocks"
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class Decoder:
    """Some blocks of a language model with its table and head.

    For each layer, `parts` has the part of the model, and `counts` how many layers of the model it stands for.
    """

    graph: LayerGraph
    parts: tuple[ModelPart, ...]
    counts: tuple[int, ...]
    # The inputs that hold caches, by number, each with the output of the graph that is written into its array.
    in_place: Mapping[int, int]

    @property
    def keys(self) -> tuple[str, ...]:
        """The key of each layer's brick in the store."""
        return tuple([brick_of(self.graph, (it.index,)).key for it in self.graph.layers])


def distinct_blocks(model: Architecture, *, fewest: bool = False) -> tuple[int, ...]:
    """Return blocks that together have every layer: the first one, and one of each kind behind it.

    The `fewest`: none of the first one's kind, as its layers but the first norm are those of the first block.
    """
    kinds = model.kinds
    found = {0: -1}
    for number, kind in enumerate(kinds[1:], start=1):
        if kind not in found.values() and not (fewest and kind == kinds[0]):
            found[number] = kind
    return tuple(found)


def decoder(
    model: Architecture,
    precision: WeightPrecision,
    step: Step,
    traits: Traits,
    blocks: Sequence[int] | None = None,
    name: str = "decoder",
    *,
    whole_table: bool = False,
    extent: Extent = Extent.ALL,
) -> Decoder:
    """Return a decoder with these blocks of a model; without any, with `distinct_blocks`.

    A large table is shortened unless it is to be whole.
    """
    blocks = distinct_blocks(model) if blocks is None else blocks
    return _Decoder(model, precision.layout, step, blocks, whole_table, traits).decoder(name, extent)


@dataclass
class _Decoder:
    model: Architecture
    precision: WeightPrecision
    step: Step
    blocks: Sequence[int]
    whole_table: bool
    traits: Traits
    out: LayerWriter = field(default_factory=LayerWriter)
    caches: list[Made] = field(default_factory=list)
    in_place: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = float_type(self.step.batch, self.step.tokens, self.model.hidden)

    def decoder(self, name: str, extent: Extent) -> Decoder:
        out = self.out
        if extent is Extent.HEAD:
            state, residual = out.input("state", self.state), out.input("residual", self.state)
        else:
            state, residual = self._all_blocks()
        if extent is Extent.BLOCKS:
            heads = [state, *self.caches, residual]
        else:
            out.times = 1
            normed, _ = self._skip_norm(state, residual, "last", is_last=True)
            heads = [self._head(normed), *self.caches]
        return Decoder(out.graph(name, heads, self.traits), tuple(out.parts), tuple(out.counts), self.in_place)

    def _all_blocks(self) -> tuple[Made, Made]:
        """Write the table and the blocks; return the output of the last one, and the residual."""
        model, step, out = self.model, self.step, self.out
        shares_table = model.is_tied and self.precision is not WeightPrecision.F32
        bytes_per_row = (
            self._packing(model.hidden, is_outer=True).row_bytes(model.hidden) if shares_table else 4 * model.hidden
        )
        most = model.vocabulary if self.whole_table else max(1, _MOST_TABLE_BYTES // bytes_per_row)
        rows = min(model.vocabulary, most)
        numbers = tuple([place * _ROW_STEP % rows for place in range(step.batch * step.tokens)])
        tokens = out.input("input_ids", TensorType((step.batch, step.tokens), "int64"), numbers)
        mask = out.input("attention_mask", TensorType((step.batch, step.total), "int64"), (1,))
        self.lengths = self._attention_lengths(mask)
        state = self._table(tokens, rows, is_packed=shares_table)
        residual: Made | None = None
        kinds, first = model.kinds, self.blocks[0]
        wanted, there = Counter(kinds), Counter(kinds[it] for it in self.blocks[1:])
        for number in self.blocks:
            kind = kinds[number]
            if number == first:
                # It stands for itself, and for others of its kind where none of them is there.
                out.times = 1 if there[kind] else wanted[kind]
            else:
                out.times = (wanted[kind] - (kind == kinds[first])) // there[kind]
            state, residual = self._block(number, state, residual)
        return state, residual or state

    def _attention_lengths(self, mask: Made) -> tuple[Made, Made]:
        """Return the tokens that each sequence has had before the newest, and the tokens in all."""
        out, one, batch = self.out, Constant((1,)), self.step.batch
        ones = out.one("ReduceSum", [mask, one], TensorType((batch,), "int64"), keepdims=0)
        before = out.one("Sub", [ones, one], TensorType((batch,), "int64"))
        past = out.one("Cast", [before], TensorType((batch,), "int32"), to=6)
        shape = out.one("Shape", [mask], TensorType((2,), "int64"))
        total = out.one("Gather", [shape, Constant((1,), is_single=True)], TensorType((), "int64"), axis=0)
        return past, out.one("Cast", [total], TensorType((), "int32"), to=6)

    def _table(self, tokens: Made, rows: int, *, is_packed: bool) -> Made:
        model, out = self.model, self.out
        out.part = ModelPart.TABLE
        # The table of a whole model is the head's weights: ONNX Runtime holds a copy.
        is_tied = self.whole_table and model.is_tied
        if is_packed:
            packing = self._packing(model.hidden, is_outer=True)
            head, *others = _packed_weights("head" if is_tied else "table", rows, model.hidden, packing)
            kind = TensorType((rows, packing.row_bytes(model.hidden)), "uint8")
            packed: Read = StoredWeight("table", kind)
            if is_tied:
                packed = out.one("Reshape", [head, Constant(kind.shape or ())], kind)
            options = {"bits": packing.bits, "block_size": packing.block, "gather_axis": 0, "quantize_axis": 1}
            state = out.one("GatherBlockQuantized", [packed, tokens, *others], self.state, MICROSOFT, **options)
        else:
            kind = float_type(rows, model.hidden)
            table: Read = StoredWeight("table", kind)
            if is_tied:
                table = out.one("Transpose", [StoredWeight("head", float_type(model.hidden, rows))], kind, perm=(1, 0))
            state = out.one("Gather", [table, tokens], self.state)
        return self._scaled(state, model.embedding_scale)

    def _packing(self, width: int, *, is_outer: bool = False) -> WeightPacking:
        return WeightPacking.of(self.precision, width, by_row=self.traits.packs_by_row, is_outer=is_outer)

    def _scaled(self, state: Made, factor: float) -> Made:
        if factor == 1.0:
            return state
        return self.out.one("Mul", [state, Constant((factor,), "float32", is_single=True)], state.type)

    def _block(self, number: int, state: Made, residual: Made | None) -> tuple[Made, Made]:
        """Write a block behind the output of the one before and the residual; return its own."""
        model = self.model
        if residual is None:
            normed, residual = self._norm(state, f"{number} first"), state
        else:
            normed, residual = self._skip_norm(state, residual, f"{number} first")
        attended = self._attention(number, normed)
        if model.has_outer_norms:
            attended = self._norm(attended, f"{number} after attention")
        attended = self._scaled(attended, model.residual_scale)
        normed, residual = self._skip_norm(attended, residual, f"{number} second")
        made = self._experts(number, normed) if model.experts else self._inner(number, normed)
        if model.has_outer_norms:
            made = self._norm(made, f"{number} after inner")
        return self._scaled(made, model.residual_scale), residual

    def _norm(self, state: Made, name: str) -> Made:
        self.out.part = ModelPart.NORMS
        (*_, size) = state.type.shape or ()
        weight, epsilon = StoredWeight(f"norm {name}", float_type(size)), self.model.epsilon
        read: list[Read] = [state, weight]
        return self.out.one("SimplifiedLayerNormalization", read, state.type, axis=-1, epsilon=epsilon, stash_type=1)

    def _skip_norm(self, state: Made, residual: Made, name: str, *, is_last: bool = False) -> tuple[Made, Made]:
        """Add a state to the residual, and return the sum with and without a norm."""
        self.out.part = ModelPart.NORMS
        weight, epsilon = StoredWeight(f"norm {name}", float_type(self.model.hidden)), self.model.epsilon
        outputs = [self.state] if is_last else [self.state, None, None, self.state]
        found = self.out.add(
            "SkipSimplifiedLayerNormalization", [residual, state, weight], outputs, MICROSOFT, epsilon=epsilon
        )
        return found[0], found[-1]

    def _product(
        self, state: Made, size: int, name: str, bias: bool = False, part: ModelPart = ModelPart.PRODUCTS
    ) -> Made:
        """Multiply the last axis of a state with a matrix of weights."""
        out = self.out
        out.part = part
        (*outer, width) = state.type.shape or ()
        made = float_type(*outer, size)
        offset = StoredWeight(f"{name} bias", float_type(size)) if bias else None
        if self.precision is WeightPrecision.F32:
            found = out.one("MatMul", [state, StoredWeight(name, float_type(width, size))], made)
            return out.one("Add", [found, offset], made) if offset else found
        packing = self._packing(width, is_outer=part is ModelPart.HEAD)
        read: list[Read] = [state, *_packed_weights(name, size, width, packing)]
        # ONNX Runtime adds the bias within the product.
        read += [*[None] * (_BIAS_PLACE - len(read)), offset] if offset else []
        options = {"K": width, "N": size, "bits": packing.bits, "block_size": packing.block}
        options["accuracy_level"] = _ACCURACY_LEVEL
        return out.one("MatMulNBits", read, made, MICROSOFT, **options)

    def _attention(self, number: int, normed: Made) -> Made:
        model, out, step = self.model, self.out, self.step
        queries, keys = model.heads * model.head_size, model.kv_heads * model.head_size
        packed = self._product(normed, queries + 2 * keys, f"{number} qkv", model.qkv_bias)
        out.part = ModelPart.ATTENTION
        read: list[Made | None] = [packed, None, None]
        if model.qk_norm:
            sizes = (queries, keys, keys)
            parts = out.add(
                "Split", [packed, Constant(sizes)], [float_type(step.batch, step.tokens, it) for it in sizes], axis=-1
            )
            read = [self._head_norm(number, parts[0], "q"), self._head_norm(number, parts[1], "k"), parts[2]]
        window = model.window if model.windowed and model.windowed[number] else 0
        is_short = window > 0 and model.has_short_caches
        # The kernel wants room for the window. What a short context leaves empty is added, which costs no time: the
        # length tells how full it is, so that bricks of different contexts have different keys.
        length = window + WINDOW_SLACK + max(0, window - step.total) if is_short else step.buffer
        cache = float_type(step.batch, model.kv_heads, length, model.head_size)
        caches = []
        for what in ("key", "value"):
            caches.append(out.input(f"past_key_values.{number}.{what}", cache))
            self.in_place[caches[-1].feed.output] = len(self.caches) + len(caches)
        # A long table of angles costs memory and no time.
        positions = max(step.buffer, min(model.positions, _MOST_POSITIONS))
        angles = [StoredWeight(what, float_type(positions, model.rotary_size // 2)) for what in ("cos", "sin")]
        sinks = StoredWeight(f"{number} sinks", float_type(model.heads)) if model.has_sinks else None
        attended, *present = out.add(
            ATTENTION,
            [*read, *caches, *self.lengths, *angles, None, None, sinks],
            [float_type(step.batch, step.tokens, queries), cache, cache],
            MICROSOFT,
            num_heads=model.heads,
            kv_num_heads=model.kv_heads,
            scale=model.attention_scale or model.head_size**-0.5,
            softcap=model.attention_cap,
            do_rotary=1,
            rotary_interleaved=0,
            **({"local_window_size": window} if window else {}),
            **({"sliding_window_cache": 1} if is_short else {}),
        )
        self.caches += present
        return self._product(attended, model.hidden, f"{number} output", model.output_bias)

    def _head_norm(self, number: int, part: Made, which: str) -> Made:
        """Normalise each head of queries or keys by itself."""
        out, size = self.out, self.model.head_size
        (batch, tokens, width) = part.type.shape or ()
        rows = float_type(batch, tokens * width // size, size)
        heads = out.one("Reshape", [part, Constant((0, -1, size))], rows)
        normed = self._norm(heads, f"{number} {which}")
        out.part = ModelPart.ATTENTION
        return out.one("Reshape", [normed, Constant((0, -1, width))], part.type)

    def _inner(self, number: int, normed: Made) -> Made:
        model, out = self.model, self.out
        gate = self._product(normed, model.inner, f"{number} gate", model.inner_bias)
        up = self._product(normed, model.inner, f"{number} up", model.inner_bias)
        out.part = ModelPart.OTHER
        if model.has_gelu:
            active = out.one("Gelu", [gate], gate.type, approximate="tanh")
        else:
            # ONNX Runtime makes this of a product with a sigmoid.
            active = out.one("QuickGelu", [gate], gate.type, MICROSOFT, alpha=1.0)
        both = out.one("Mul", [active, up], gate.type)
        return self._product(both, model.hidden, f"{number} down", model.inner_bias)

    def _experts(self, number: int, normed: Made) -> Made:
        """Write a mixture: a router, and the experts that it chooses for each token."""
        model, out = self.model, self.out
        chosen = self._product(normed, model.experts, f"{number} router", model.inner_bias, ModelPart.EXPERTS)
        scores = float_type(self.step.batch * self.step.tokens, model.experts)
        read: list[Read] = [normed, out.one("Reshape", [chosen, Constant((-1, model.experts))], scores)]
        read += self._expert_weights(f"{number} experts gate up", 2 * model.inner, model.hidden)
        read += self._expert_weights(f"{number} experts down", model.hidden, model.inner)
        options: dict[str, Any] = {"activation_type": "swiglu", "swiglu_fusion": 1, "normalize_routing_weights": 1}
        options |= {"k": model.active_experts, **(_GPT_OSS if model.family == "gpt_oss" else {})}
        if self.precision is WeightPrecision.F32:
            return out.one("MoE", read, self.state, MICROSOFT, **options)
        options |= {"expert_weight_bits": self.precision.bits, "block_size": BLOCK_SIZE}
        return out.one("QMoE", read, self.state, MICROSOFT, **options)

    def _expert_weights(self, name: str, size: int, width: int) -> list[Read]:
        """Return the weights of a product of all experts, its scales if they are packed, and its bias."""
        model, bits = self.model, self.precision.bits
        bias = StoredWeight(f"{name} bias", float_type(model.experts, size)) if model.inner_bias else None
        if self.precision is WeightPrecision.F32:
            return [StoredWeight(name, float_type(model.experts, size, width)), bias]
        packed = TensorType((model.experts, size, width * bits // 8), "uint8")
        scales = float_type(model.experts, size, -(-width // BLOCK_SIZE))
        return [StoredWeight(name, packed), StoredWeight(f"{name} scales", scales), bias]

    def _head(self, normed: Made) -> Made:
        model, out = self.model, self.out
        if self.traits.has_short_head or model.scores_last_only:
            out.part = ModelPart.HEAD
            last = [Constant((it,)) for it in (-1, _END, 1)]
            normed = out.one("Slice", [normed, *last], float_type(1, 1, model.hidden))
        logits = self._product(normed, model.vocabulary, "head", part=ModelPart.HEAD)
        logits = self._scaled(logits, model.logit_scale)
        if not model.logit_cap:
            return logits
        cap = Constant((model.logit_cap,), "float32", is_single=True)
        bounded = out.one("Tanh", [out.one("Div", [logits, cap], logits.type)], logits.type)
        return out.one("Mul", [bounded, cap], logits.type)


def _packed_weights(name: str, rows: int, width: int, packing: WeightPacking) -> list[Read]:
    """Return the weights of a product, their scales, and their zeros if they have some."""
    blocks = packing.blocks(width)
    kind = TensorType((rows, blocks, packing.block * packing.bits // 8), "uint8")
    scales = StoredWeight(f"{name} scales", float_type(rows, blocks))
    zeros = StoredWeight(f"{name} zeros", TensorType((rows, -(-blocks * packing.bits // 8)), "uint8"))
    return [StoredWeight(name, kind), scales, *[zeros] * packing.has_zeros]
