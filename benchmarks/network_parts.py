"""The building blocks of `other_networks`, written by MXNet itself."""

from typing import Any

from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet

mxnet = load_mxnet()
S, CELLS, NameManager = mxnet.sym, mxnet.rnn, mxnet.name.NameManager


def linear(data: Any, units: int) -> Any:
    return S.FullyConnected(data, num_hidden=units, flatten=False)


def gelu(data: Any) -> Any:
    return S.LeakyReLU(data, act_type="gelu")


def relu(data: Any) -> Any:
    return S.Activation(data, act_type="relu")


def norm(data: Any) -> Any:
    return S.LayerNorm(data, axis=-1)


def wider(data: Any, width: int) -> Any:
    return linear(gelu(linear(data, 4 * width)), width)


def conv(data: Any, filters: int, kernel: int = 3, stride: int = 1, groups: int = 1, *, bias: bool = True) -> Any:
    window = {"kernel": (kernel,) * 2, "pad": (kernel // 2,) * 2, "stride": (stride,) * 2}
    return S.Convolution(data, num_filter=filters, num_group=groups, no_bias=not bias, **window)


def normed(data: Any, filters: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> Any:
    return S.BatchNorm(conv(data, filters, kernel, stride, groups, bias=False), fix_gamma=False)


def active(data: Any, filters: int, kernel: int = 3, stride: int = 1) -> Any:
    return relu(normed(data, filters, kernel, stride))


def sentence(count: int, known: int, width: int, name: str = "data") -> Any:
    """Words one after another, with one sentence in the second axis."""
    return S.Embedding(S.var(name, shape=(count, 1)), input_dim=known, output_dim=width)


def states(name: str, count: int, width: int) -> Any:
    return S.var(name, shape=(count, 1, width))


def both_ways(data: Any, mode: str, width: int, name: str) -> Any:
    """A recurrent layer that reads forth and back."""
    begun = [states(f"{name}_state", 2, width)]
    if mode == "lstm":
        begun.append(states(f"{name}_state_cell", 2, width))
    about = {"state_size": width, "num_layers": 1, "mode": mode, "bidirectional": True}
    return S.RNN(data, S.var(f"{name}_parameters"), *begun, **about)


def mean(data: Any) -> Any:
    return S.Flatten(S.Pooling(data, global_pool=True, kernel=(1, 1), pool_type="avg"))
