"""The vocabulary in which the sample networks are written: one call adds one layer as the paper counts it."""

from collections.abc import Iterator
from contextlib import contextmanager

from sample_models.builders.symbol_writer import Output, ParamValue, SymbolWriter

Pair = int | tuple[int, int]


class Network:
    """A network under construction; every method adds one layer and returns its output."""

    def __init__(self) -> None:
        self.writer = SymbolWriter()
        self._scopes: list[str] = []
        self._times = 1

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Layers added inside are called `name/...`."""
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    @contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        """Layers added inside are counted once, while the caller writes them out `times` times."""
        outer, self._times = self._times, times
        try:
            yield
        finally:
            self._times = outer

    @contextmanager
    def layer(self, name: str, kind: str) -> Iterator[SymbolWriter]:
        """One layer made of several operators, which are written with the writer that it yields."""
        with self.writer.layer(self._full_name(name), kind, self._times):
            yield self.writer

    def input(self, name: str, *shape: int) -> Output:
        return self.writer.input(name, shape)

    def constant(self, name: str, *shape: int) -> Output:
        """A learned array that the paper counts as a layer."""
        with self.layer(name, "constant") as writer:
            return writer.variable(self._full_name(name), shape)

    def single(self, name: str, kind: str, op: str, *inputs: Output, **params: ParamValue) -> Output:
        """One layer that is one operator."""
        with self.layer(name, kind) as writer:
            return writer.op(op, *inputs, **params)

    def conv(
        self,
        x: Output,
        name: str,
        filters: int,
        kernel: Pair,
        stride: Pair = 1,
        pad: Pair = 0,
        *,
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> Output:
        optional: dict[str, ParamValue] = {}
        if dilation != 1:
            optional["dilate"] = _pair(dilation)
        if groups != 1:
            optional["num_group"] = groups
        if not bias:
            optional["no_bias"] = True
        return self.single(
            name,
            "convolution",
            "Convolution",
            x,
            num_filter=filters,
            kernel=_pair(kernel),
            stride=_pair(stride),
            pad=_pair(pad),
            **optional,
        )

    def deconv(self, x: Output, name: str, filters: int, kernel: Pair, stride: Pair = 1, pad: Pair = 0) -> Output:
        return self.single(
            name,
            "deconvolution",
            "Deconvolution",
            x,
            num_filter=filters,
            kernel=_pair(kernel),
            stride=_pair(stride),
            pad=_pair(pad),
            no_bias=False,
        )

    def batch_norm(self, x: Output, name: str, eps: float) -> Output:
        return self.single(name, "batchnorm", "BatchNorm", x, eps=eps, fix_gamma=False)

    def instance_norm(self, x: Output, name: str, eps: float) -> Output:
        """Normalizes each image of each channel by itself."""
        return self.single(name, "norm", "InstanceNorm", x, eps=eps)

    def relu(self, x: Output, name: str) -> Output:
        return self.single(name, "elementwise", "Activation", x, act_type="relu")

    def relu6(self, x: Output, name: str) -> Output:
        return self.single(name, "elementwise", "clip", x, a_min=0.0, a_max=6.0)

    def leaky_relu(self, x: Output, name: str, slope: float) -> Output:
        return self.single(name, "elementwise", "LeakyReLU", x, act_type="leaky", slope=slope)

    def sigmoid(self, x: Output, name: str) -> Output:
        return self.single(name, "elementwise", "Activation", x, act_type="sigmoid")

    def identity(self, x: Output, name: str) -> Output:
        return self.single(name, "elementwise", "_copy", x)

    def max_pool(self, x: Output, name: str, kernel: Pair, stride: Pair = 1, pad: Pair = 0) -> Output:
        return self._pool(x, name, "max", kernel, stride, pad)

    def mean_pool(self, x: Output, name: str, kernel: Pair, stride: Pair = 1, pad: Pair = 0) -> Output:
        return self._pool(x, name, "avg", kernel, stride, pad)

    def spatial_mean(self, x: Output, name: str) -> Output:
        """The mean of each channel, as a vector."""
        return self.single(name, "reduce", "mean", x, axis=(2, 3))

    def linear(self, x: Output, name: str, outputs: int) -> Output:
        return self.single(name, "linear", "FullyConnected", x, num_hidden=outputs)

    def softmax(self, x: Output, name: str, axis: int = -1) -> Output:
        return self.single(name, "softmax", "softmax", x, axis=axis)

    def concat(self, name: str, *inputs: Output, axis: int = 1) -> Output:
        return self.single(name, "concat", "Concat", *inputs, num_args=len(inputs), dim=axis)

    def add(self, name: str, *inputs: Output) -> Output:
        if len(inputs) == 2:
            return self.single(name, "combine", "elemwise_add", *inputs)
        return self.single(name, "combine", "add_n", *inputs, num_args=len(inputs))

    def multiply(self, name: str, x: Output, y: Output) -> Output:
        return self.single(name, "combine", "elemwise_mul", x, y)

    def dropout(self, x: Output, name: str, probability: float) -> Output:
        return self.single(name, "dropout", "Dropout", x, p=probability)

    def flatten(self, x: Output, name: str) -> Output:
        return self.single(name, "flatten", "Flatten", x)

    def reshape(self, x: Output, name: str, *shape: int) -> Output:
        """Reshapes to a full shape, batch first."""
        return self.single(name, "reshape", "Reshape", x, shape=shape)

    def transpose(self, x: Output, name: str, *axes: int) -> Output:
        return self.single(name, "transpose", "transpose", x, axes=axes)

    def pad(self, x: Output, name: str, before: int, after: int, mode: str = "constant") -> Output:
        """Pads both image axes."""
        widths = (0, 0, 0, 0, before, after, before, after)
        return self.single(name, "pad", "Pad", x, mode=mode, pad_width=widths)

    def replicate(self, x: Output, name: str, height: int, width: int) -> Output:
        """Spreads a vector over an image: every pixel holds it."""
        with self.layer(name, "broadcast") as writer:
            pixel = writer.op("Reshape", x, shape=(0, 0, 1, 1))
            return writer.op("broadcast_to", pixel, shape=(0, 0, height, width))

    def upsample(self, x: Output, name: str, scale: int = 2) -> Output:
        """Enlarges an image by repeating its pixels."""
        return self.single(name, "resize", "UpSampling", x, scale=scale, sample_type="nearest", num_args=1)

    def render(self, *heads: Output) -> bytes:
        return self.writer.render(*heads)

    def _full_name(self, name: str) -> str:
        return "/".join([*self._scopes, name])

    def _pool(self, x: Output, name: str, pool_type: str, kernel: Pair, stride: Pair, pad: Pair) -> Output:
        return self.single(
            name,
            "pooling",
            "Pooling",
            x,
            pool_type=pool_type,
            kernel=_pair(kernel),
            stride=_pair(stride),
            pad=_pair(pad),
        )


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value
