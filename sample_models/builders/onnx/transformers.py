"""Transformers as their usual exporters write them: an encoder, and one step of a decoder with a key-value cache."""

from math import pi, sqrt

from onnx import TensorProto

from sample_models.builders.onnx.graph import Graph

_LAYERS = 6
# The most negative float: what is added to the scores of masked positions.
_LOWEST = -3.4028234663852886e38


def minilm() -> bytes:
    """Return an encoder of the sizes of all-MiniLM-L6-v2."""
    net = Graph()
    width = 384
    words, mask, segments = (
        net.input(name, "int64", "batch_size", "sequence_length")
        for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    masked = _padding(net, mask)
    with net.scope("embeddings"):
        length = net.unsqueeze(net.size(words, 1), 0)
        positions = net.op("Slice", net.stored([[*range(512)]], "int64"), net.ints(0), length, net.ints(1), net.ints(1))
        x = net.op("Gather", _table(net, "word_embeddings", 30522, width), words)
        x = net.op("Add", x, net.op("Gather", _table(net, "token_type_embeddings", 2, width), segments))
        x = net.op("Add", x, net.op("Gather", _table(net, "position_embeddings", 512, width), positions))
        x = _norm(net, x, "LayerNorm", width, 1e-12)
    for layer in range(_LAYERS):
        with net.scope("encoder", f"layer.{layer}"):
            x = _encoder_layer(net, x, masked, width, heads=12)
    net.output(x, "last_hidden_state", "float32", "batch_size", "sequence_length", width)
    return net.rendered()


def _padding(net: Graph, mask: str) -> str:
    """Return what is added to the scores: nothing for words, the lowest number for padding."""
    wide = net.op("Cast", net.unsqueeze(net.unsqueeze(mask, 1), 2), to=TensorProto.FLOAT)
    return net.op("Mul", net.op("Sub", net.number(1), wide), net.number(_LOWEST))


def _table(net: Graph, name: str, rows: int, width: int) -> str:
    return net.weight(f"{name}.weight", rows, width)


def _norm(net: Graph, x: str, name: str, width: int, epsilon: float) -> str:
    with net.scope(name):
        learned = net.weight("weight", width), net.weight("bias", width)
        return net.op("LayerNormalization", x, *learned, axis=-1, epsilon=epsilon)


def _linear(net: Graph, x: str, name: str, inputs: int, outputs: int) -> str:
    with net.scope(name):
        return net.linear(x, inputs, outputs)


def _encoder_layer(net: Graph, x: str, masked: str, width: int, heads: int) -> str:
    with net.scope("attention"):
        with net.scope("self"):
            query, key, value = (
                _heads(net, _linear(net, x, name, width, width), heads, width // heads, turned=name == "key")
                for name in ("query", "key", "value")
            )
            scores = net.op("Div", net.op("MatMul", query, key), net.number(sqrt(width // heads)))
            shares = net.op("Softmax", net.op("Add", scores, masked), axis=-1)
            read = _joined(net, net.op("MatMul", shares, value), width)
        with net.scope("output"):
            x = net.op("Add", _linear(net, read, "dense", width, width), x)
            x = _norm(net, x, "LayerNorm", width, 1e-12)
    with net.scope("intermediate"):
        wide = _linear(net, x, "dense", width, 4 * width)
        with net.scope("intermediate_act_fn"):
            wide = _gelu(net, wide)
    with net.scope("output"):
        x = net.op("Add", _linear(net, wide, "dense", 4 * width, width), x)
        return _norm(net, x, "LayerNorm", width, 1e-12)


def _heads(net: Graph, x: str, heads: int, size: int, *, turned: bool = False) -> str:
    """Split the last axis into heads; `turned` leaves the axis of positions last."""
    split = net.reshape(x, net.size(x, 0), net.size(x, 1), heads, size)
    return net.op("Transpose", split, perm=[0, 2, 3, 1] if turned else [0, 2, 1, 3])


def _joined(net: Graph, x: str, width: int) -> str:
    x = net.op("Transpose", x, perm=[0, 2, 1, 3])
    return net.reshape(x, net.size(x, 0), net.size(x, 1), width)


def _gelu(net: Graph, x: str) -> str:
    part = net.op("Add", net.op("Erf", net.op("Div", x, net.number(sqrt(2)))), net.number(1))
    return net.op("Mul", net.op("Mul", x, part), net.number(0.5))


def gpt2_step() -> bytes:
    """Return a decoder of the kind of GPT-2, with six layers and narrow, that reads and returns keys and values."""
    net = Graph()
    heads, size, longest, words = 6, 64, 1024, 50257
    width = heads * size
    ids = net.input("input_ids", "int64", "batch", "sequence")
    mask = net.input("attention_mask", "int64", "batch", "past + sequence")
    positions = net.input("position_ids", "int64", "batch", "sequence")
    past = [
        [
            net.input(f"past_key_values.{layer}.{what}", "float32", "batch", heads, "past", size)
            for what in ("key", "value")
        ]
        for layer in range(_LAYERS)
    ]
    masked = _padding(net, mask)
    causal = net.weight("causal", 1, 1, longest, longest, dtype="bool")
    with net.scope("transformer"):
        x = net.op("Gather", _table(net, "wte", words, width), ids)
        x = net.op("Add", x, net.op("Gather", _table(net, "wpe", longest, width), positions))
        present = []
        for layer, (key, value) in enumerate(past):
            with net.scope(f"h.{layer}"):
                x, *kept = _decoder_layer(net, x, key, value, masked, causal, heads, size)
                present.append(kept)
        x = _norm(net, x, "ln_f", width, 1e-5)
    with net.scope("lm_head"):
        logits = net.linear(x, width, words, bias=False)
    net.output(logits, "logits", "float32", "batch", "sequence", words)
    for layer, kept in enumerate(present):
        for what, tensor in zip(("key", "value"), kept, strict=True):
            net.output(tensor, f"present.{layer}.{what}", "float32", "batch", heads, "past + sequence", size)
    return net.rendered()


def _decoder_layer(
    net: Graph, x: str, past_key: str, past_value: str, masked: str, causal: str, heads: int, size: int
) -> tuple[str, str, str]:
    width = heads * size
    before = x
    x = _norm(net, x, "ln_1", width, 1e-5)
    with net.scope("attn"):
        query, key, value = net.ops(
            "Split", 3, _rowwise(net, x, "c_attn", width, 3 * width), net.ints(width, width, width), axis=2
        )
        query, key, value = (_heads(net, it, heads, size) for it in (query, key, value))
        key = net.op("Concat", past_key, key, axis=-2)
        value = net.op("Concat", past_value, value, axis=-2)
        turned = net.op("Transpose", key, perm=[0, 1, 3, 2])
        scores = net.op("Div", net.op("MatMul", query, turned), net.number(sqrt(size)))
        allowed = _allowed(net, causal, query, key)
        scores = net.op("Add", net.op("Where", allowed, scores, net.number(_LOWEST)), masked)
        read = _joined(net, net.op("MatMul", net.op("Softmax", scores, axis=-1), value), width)
        x = net.op("Add", _rowwise(net, read, "c_proj", width, width), before)
    before = x
    x = _norm(net, x, "ln_2", width, 1e-5)
    with net.scope("mlp"):
        wide = _rowwise(net, x, "c_fc", width, 4 * width)
        with net.scope("act"):
            wide = _gelu_by_tanh(net, wide)
        return net.op("Add", before, _rowwise(net, wide, "c_proj", 4 * width, width)), key, value


def _rowwise(net: Graph, x: str, name: str, inputs: int, outputs: int) -> str:
    """A linear layer on rows: reshaped to a matrix and back."""
    with net.scope(name):
        batch, length = net.size(x, 0), net.size(x, 1)
        weights = net.weight("weight", inputs, outputs), net.weight("bias", outputs)
        made = net.op("Gemm", net.reshape(x, -1, inputs), *weights, alpha=1.0, beta=1.0)
        return net.reshape(made, batch, length, outputs)


def _allowed(net: Graph, causal: str, query: str, key: str) -> str:
    """Return which keys each new position may read: its rows of the stored triangle, up to the last key."""
    new, both = net.size(query, -2), net.size(key, -2)
    first = net.unsqueeze(net.op("Sub", both, new), 0)
    last = net.unsqueeze(both, 0)
    rows = net.op("Slice", causal, first, last, net.ints(2), net.ints(1))
    return net.op("Slice", rows, net.ints(0), last, net.ints(3), net.ints(1))


def _gelu_by_tanh(net: Graph, x: str) -> str:
    cube = net.op("Mul", net.op("Pow", x, net.number(3)), net.number(0.044715))
    bent = net.op("Tanh", net.op("Mul", net.op("Add", x, cube), net.number(sqrt(2 / pi))))
    return net.op("Mul", net.op("Mul", x, net.number(0.5)), net.op("Add", bent, net.number(1)))
