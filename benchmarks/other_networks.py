"""Write networks other than image classifiers: for words, speech, tables, films and generated images.

usage: python -m benchmarks.other_networks FOLDER [NAME ...]

    python -m benchmarks.contexts FOLDER/*.json
    python -m benchmarks.accuracy FOLDER/*.json

then tell of them what `made_up_networks` tells of others. They have what others lack: layers that share weights, tables
of which few rows are read, recurrent and attentive operators, windows of one and of three axes, and arrays made of
nothing. Written by MXNet itself: it has the names of their weights, and the steps of cells.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.network_parts import (
    CELLS,
    NameManager,
    S,
    active,
    both_ways,
    conv,
    gelu,
    linear,
    mean,
    norm,
    normed,
    relu,
    sentence,
    wider,
)


def main(folder: Path, names: Sequence[str] = ()) -> None:
    """Writes these, or all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or NETWORKS:
        # Names of layers are counted anew.
        with NameManager():
            network = NETWORKS[name]()
        (folder / f"{name}-symbol.json").write_text(network.tojson())


# Words.


def _encoder(layers: int, words: int, width: int, heads: int) -> Any:
    """BERT, whose heads are computed by MXNet's own attentive operators."""
    position = S.var("position_weight", shape=(words, 1, width))
    data = norm(S.broadcast_add(sentence(words, 30_522, width), position))
    for _ in range(layers):
        asked = linear(data, 3 * width)
        shares = S.softmax(S.contrib.interleaved_matmul_selfatt_qk(asked, heads=heads), axis=-1)
        found = S.contrib.interleaved_matmul_selfatt_valatt(asked, shares, heads=heads)
        data = norm(data + linear(found, width))
        data = norm(data + wider(data, width))
    return data


def _language() -> Any:
    """Two recurrent layers that guess the next word; what they begin with is made of nothing."""
    cell = CELLS.FusedRNNCell(650, num_layers=2, mode="lstm", prefix="lstm_")
    outputs, _ = cell.unroll(35, sentence(35, 10_000, 650), layout="TNC", merge_outputs=True)
    return S.softmax(linear(outputs, 10_000), axis=-1)


def _unrolled() -> Any:
    """A recurrent layer written step by step, each with the same weights."""
    words = S.Embedding(S.var("data", shape=(1, 20)), input_dim=5_000, output_dim=256)
    begin = [S.var(f"lstm_begin_{state}", shape=(1, 256)) for state in "hc"]
    cell = CELLS.LSTMCell(256, prefix="lstm_")
    outputs, _ = cell.unroll(20, words, begin_state=begin, layout="NTC", merge_outputs=False)
    return linear(outputs[-1], 5)


def _translation() -> Any:
    """A decoder that looks at what an encoder has read, at each of its steps."""
    read = S.transpose(both_ways(sentence(30, 8_000, 256, "source"), "lstm", 128, "encoder"), axes=(1, 0, 2))
    said = S.Embedding(S.var("target", shape=(1, 10)), input_dim=8_000, output_dim=256)
    cell, state, outputs = CELLS.GRUCell(256, prefix="decoder_"), [S.var("decoder_begin", shape=(1, 256))], []
    for step in range(10):
        word = S.reshape(S.slice_axis(said, axis=1, begin=step, end=step + 1), shape=(1, 256))
        shares = S.softmax(S.batch_dot(S.expand_dims(state[0], axis=1), read, transpose_b=True), axis=-1)
        seen = S.reshape(S.batch_dot(shares, read), shape=(1, 256))
        output, state = cell(S.concat(word, seen, dim=1), state)
        outputs.append(S.expand_dims(output, axis=1))
    return linear(S.concat(*outputs, dim=1), 8_000)


def _sentence() -> Any:
    """Return a network that tells if a sentence is a friendly one."""
    read = both_ways(sentence(100, 20_000, 128), "gru", 128, "gru")
    return S.softmax(linear(S.max(read, axis=0), 5))


def _windows_of_words() -> Any:
    """The same, by convolutions of three, four and five words."""
    words = S.Embedding(S.var("data", shape=(1, 60)), input_dim=20_000, output_dim=300)
    image = S.reshape(words, shape=(0, 1, 60, 300))
    found = []
    for count in (3, 4, 5):
        seen = relu(S.Convolution(image, kernel=(count, 300), num_filter=100))
        found.append(S.Pooling(seen, pool_type="max", kernel=(61 - count, 1)))
    return S.softmax(linear(S.Dropout(S.Flatten(S.concat(*found, dim=1)), p=0.5), 2))


# Speech and sound.


def _sound() -> Any:
    """WaveNet: convolutions of one axis, wider and wider apart."""
    data = S.Convolution(S.var("data", shape=(1, 1, 16_000)), kernel=(1,), num_filter=32)
    skipped = []
    for apart in (1, 2, 4, 8, 16, 32, 64, 128) * 2:
        window = {"kernel": (2,), "dilate": (apart,), "pad": (apart,), "num_filter": 32}
        gated = S.tanh(S.Convolution(data, **window)) * S.sigmoid(S.Convolution(data, **window))
        gated = S.slice_axis(gated, axis=2, begin=0, end=16_000)
        skipped.append(S.Convolution(gated, kernel=(1,), num_filter=64))
        data = data + S.Convolution(gated, kernel=(1,), num_filter=32)
    data = S.relu(S.Convolution(S.relu(S.add_n(*skipped)), kernel=(1,), num_filter=64))
    return S.Convolution(data, kernel=(1,), num_filter=256)


def _speech() -> Any:
    """Deep Speech: a convolution of a spectrogram, and recurrent layers."""
    data = S.Convolution(S.var("data", shape=(1, 1, 200, 161)), kernel=(11, 41), stride=(2, 2), num_filter=32)
    data = S.clip(relu(S.BatchNorm(data)), 0, 20)
    data = S.reshape(S.transpose(data, axes=(2, 0, 1, 3)), shape=(0, 0, -1))
    for layer in range(2):
        data = both_ways(data, "gru", 256, f"gru{layer}")
    return linear(data, 29)


# Tables and numbers.


def _recommended() -> Any:
    """DLRM: of 26 tables the rows of 64 people, each compared with each."""
    dense = S.var("dense", shape=(64, 13))
    for units in (512, 256, 64):
        dense = S.relu(linear(dense, units))
    rows = [S.Embedding(S.var(f"sparse{table}", shape=(64, 1)), input_dim=10_000, output_dim=64) for table in range(26)]
    all_of_it = S.concat(S.expand_dims(dense, axis=1), *rows, dim=1)
    compared = S.Flatten(S.batch_dot(all_of_it, all_of_it, transpose_b=True))
    data = S.concat(dense, compared, dim=1)
    for units in (512, 256):
        data = S.relu(linear(data, units))
    return S.sigmoid(linear(data, 1))


def _perceptron(batch: int, width: int) -> Any:
    data = S.var("data", shape=(batch, 784))
    for _ in range(3):
        data = S.Dropout(S.Activation(linear(data, width), act_type="sigmoid"))
    return S.softmax(linear(data, 10))


# Images, by other means or to other ends.


def _patches(width: int) -> Any:
    image = S.Convolution(S.var("data", shape=(1, 3, 224, 224)), kernel=(16, 16), stride=(16, 16), num_filter=width)
    return S.transpose(S.reshape(image, shape=(0, 0, -1)), axes=(0, 2, 1))


def _heads(data: Any, width: int, heads: int) -> Any:
    """Attention written out of plain operators."""

    def split() -> Any:
        each = S.reshape(linear(data, width), shape=(0, 0, heads, -1))
        return S.reshape(S.transpose(each, axes=(0, 2, 1, 3)), shape=(-3, 0, 0))

    shares = S.softmax(S.batch_dot(split() / (width / heads) ** 0.5, split(), transpose_b=True), axis=-1)
    found = S.reshape(S.batch_dot(shares, split()), shape=(-4, 1, heads, 0, 0))
    return linear(S.reshape(S.transpose(found, axes=(0, 2, 1, 3)), shape=(0, 0, -3)), width)


def _attentive(width: int, heads: int) -> Any:
    """ViT."""
    data = S.broadcast_add(_patches(width), S.var("position_weight", shape=(1, 196, width)))
    for _ in range(4):
        data = data + _heads(norm(data), width, heads)
        data = data + wider(norm(data), width)
    return S.softmax(linear(S.mean(norm(data), axis=1), 1000))


def _mixed(width: int) -> Any:
    """MLP-Mixer."""
    data = _patches(width)
    for _ in range(4):
        across = linear(gelu(linear(S.transpose(norm(data), axes=(0, 2, 1)), 256)), 196)
        data = data + S.transpose(across, axes=(0, 2, 1))
        data = data + wider(norm(data), width)
    return linear(S.mean(norm(data), axis=1), 1000)


def _efficient() -> Any:
    """EfficientNet, with swishes and with gates for its channels."""

    def swish(data: Any) -> Any:
        return data * S.sigmoid(data)

    data = active(S.var("data", shape=(1, 3, 192, 192)), 32, stride=2)
    stages = ((16, 1, 1), (24, 2, 6), (24, 1, 6), (40, 2, 6), (40, 1, 6), (80, 2, 6), (80, 1, 6), (192, 2, 6))
    for filters, stride, times in stages:
        wide = filters * times
        inner = swish(normed(swish(normed(data, wide, 1)), wide, 3, stride, groups=wide))
        gate = S.contrib.AdaptiveAvgPooling2D(inner, output_size=1)
        gate = S.sigmoid(conv(swish(conv(gate, max(4, wide // 24), 1)), wide, 1))
        data = normed(S.broadcast_mul(inner, gate), filters, 1)
    return linear(mean(data), 1000)


def _grouped() -> Any:
    """A residual network with other norms and activations."""
    data = conv(S.var("data", shape=(1, 3, 128, 128)), 64, 7, 2)
    for filters, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
        beside = data if stride == 1 else conv(data, filters, 1, stride)
        inner = S.LeakyReLU(S.GroupNorm(data, num_groups=32), act_type="prelu")
        inner = S.GroupNorm(conv(inner, filters, 3, stride), num_groups=32)
        data = beside + conv(S.LeakyReLU(inner, act_type="elu"), filters)
    return linear(mean(data), 100)


def _film() -> Any:
    """C3D: windows of three axes."""
    data = S.var("data", shape=(1, 3, 16, 112, 112))
    for stage, (filters, layers) in enumerate(((64, 1), (128, 1), (256, 2), (512, 2), (512, 2))):
        for _ in range(layers):
            data = relu(S.Convolution(data, kernel=(3, 3, 3), pad=(1, 1, 1), num_filter=filters))
        window = (2 if stage else 1, 2, 2)
        data = S.Pooling(data, pool_type="max", kernel=window, stride=window)
    data = S.Flatten(data)
    for _ in range(2):
        data = relu(linear(data, 4096))
    return S.softmax(linear(data, 487))


def _masked() -> Any:
    """U-Net, down and up again."""
    data, left = S.var("data", shape=(1, 1, 256, 256)), []
    for filters in (32, 64, 128, 256):
        data = active(active(data, filters), filters)
        left.append((filters, data))
        data = S.Pooling(data, kernel=(2, 2), stride=(2, 2), pool_type="max")
    data = active(active(data, 512), 512)
    for filters, beside in reversed(left):
        data = S.concat(beside, S.Deconvolution(data, kernel=(2, 2), stride=(2, 2), num_filter=filters), dim=1)
        data = active(active(data, filters), filters)
    return S.sigmoid(conv(data, 1, 1))


def _painted() -> Any:
    """Return the network that paints a picture of a hundred numbers, as DCGAN does."""
    data = S.var("data", shape=(1, 100, 1, 1))
    for stage, filters in enumerate((512, 256, 128, 64)):
        window = {"stride": (2, 2), "pad": (1, 1)} if stage else {}
        data = S.Deconvolution(data, kernel=(4, 4), num_filter=filters, no_bias=True, **window)
        data = relu(S.BatchNorm(data, fix_gamma=False))
    data = S.Deconvolution(data, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=3, no_bias=True)
    return S.tanh(data)


def _sharpened() -> Any:
    """EDSR: an image of four times the size, whose pixels come from channels."""
    data = first = conv(S.var("data", shape=(1, 3, 96, 96)), 64)
    for _ in range(8):
        data = data + conv(relu(conv(data, 64)), 64) * 0.1
    data = first + conv(data, 64)
    for _ in range(2):
        data = S.depth_to_space(conv(data, 256), block_size=2)
    return conv(data, 3)


def _regions() -> Any:
    """Faster R-CNN: what may be something, and what it is."""
    data = S.var("data", shape=(1, 3, 320, 320))
    for filters in (32, 64, 128, 256):
        data = active(active(data, filters, stride=2), filters)
    seen = relu(conv(data, 256))
    anchors = {"scales": (4, 8, 16), "ratios": (0.5, 1, 2), "feature_stride": 16, "rpn_min_size": 8}
    most = {"rpn_pre_nms_top_n": 1000, "rpn_post_nms_top_n": 100, "threshold": 0.7}
    likely = S.softmax(S.reshape(conv(seen, 18, 1), shape=(0, 2, -1, 0)), axis=1)
    likely = S.reshape(likely, shape=(0, 18, -1, 0))
    regions = S.contrib.Proposal(likely, conv(seen, 36, 1), S.var("im_info", shape=(1, 3)), **anchors, **most)
    found = S.Flatten(S.ROIPooling(data, regions, pooled_size=(7, 7), spatial_scale=1 / 16))
    found = relu(linear(found, 512))
    return S.Group([S.softmax(linear(found, 21)), linear(found, 84)])


def _bent() -> Any:
    """Convolutions that are told where to look."""
    data = active(active(S.var("data", shape=(1, 3, 160, 160)), 32, stride=2), 64, stride=2)
    for filters in (64, 64, 128):
        where = conv(data, 18)
        data = S.contrib.DeformableConvolution(data, where, kernel=(3, 3), pad=(1, 1), num_filter=filters)
        data = relu(S.BatchNorm(data, fix_gamma=False))
    return data


NETWORKS: Mapping[str, Callable[[], Any]] = {
    "bert": lambda: _encoder(4, 128, 768, 12),
    "bert_small": lambda: _encoder(2, 64, 256, 4),
    "c3d": _film,
    "dcgan": _painted,
    "deformable": _bent,
    "dlrm": _recommended,
    "edsr": _sharpened,
    "efficientnet": _efficient,
    "faster_rcnn": _regions,
    "groupnorm_resnet": _grouped,
    "gru_text": _sentence,
    "lstm_language": _language,
    "lstm_unrolled": _unrolled,
    "mixer": lambda: _mixed(256),
    "mlp_batch": lambda: _perceptron(256, 1024),
    "mlp_wide": lambda: _perceptron(1, 4096),
    "seq2seq": _translation,
    "speech": _speech,
    "text_cnn": _windows_of_words,
    "unet": _masked,
    "vit": lambda: _attentive(192, 3),
    "wavenet": _sound,
}

if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
