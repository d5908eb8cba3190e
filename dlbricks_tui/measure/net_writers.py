"""Writers of small networks, with one interface for all model formats."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from dlbricks_tui.models.mxnet.symbol_writer import Output, SymbolWriter

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

INPUT = "data"
_OPSET, _IR_VERSION = 13, 8
_FLOAT, _INT64 = 1, 7

T = TypeVar("T")


class NetWriter(Protocol[T]):
    """Adds layers to a network; T stands for the output of a layer, which the next one reads."""

    def image(self, channels: int, size: int) -> T:
        """Add the input."""

    def conv(self, data: T, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> T:
        """Add a convolution with a bias, padded so that a stride of 1 keeps the size."""

    def pool(self, data: T, kernel: int = 2, stride: int = 2, pad: int = 0, kind: str = "max") -> T:
        """Add max pooling, or with `avg` average pooling."""

    def whole_mean(self, data: T) -> T:
        """Add global average pooling."""

    def linear(self, data: T, units: int) -> T:
        """Add a fully connected layer with a bias."""

    def norm(self, data: T) -> T:
        """Add batch normalisation."""

    def relu(self, data: T) -> T:
        """Add a ReLU."""

    def add(self, one: T, other: T) -> T:
        """Add an elementwise sum."""

    def join(self, *branches: T) -> T:
        """Add a concatenation of channels."""

    def flat(self, data: T) -> T:
        """Add a flattening to two axes."""

    def softmax(self, data: T) -> T:
        """Add a softmax."""

    def rendered(self, head: T) -> bytes:
        """Return the file of the network with this output; equal calls give equal bytes."""


class SymbolNetWriter(NetWriter[Output]):
    """Writes a symbol file of MXNet."""

    def __init__(self) -> None:
        self._writer = SymbolWriter()

    def image(self, channels: int, size: int) -> Output:
        return self._writer.input(INPUT, (1, channels, size, size))

    def conv(self, data: Output, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> Output:
        return self._writer.op(
            "Convolution",
            data,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=(kernel // 2, kernel // 2),
            num_filter=filters,
            num_group=groups,
        )

    def pool(self, data: Output, kernel: int = 2, stride: int = 2, pad: int = 0, kind: str = "max") -> Output:
        return self._writer.op(
            "Pooling", data, kernel=(kernel, kernel), stride=(stride, stride), pad=(pad, pad), pool_type=kind
        )

    def whole_mean(self, data: Output) -> Output:
        return self._writer.op("Pooling", data, kernel=(1, 1), global_pool=True, pool_type="avg")

    def linear(self, data: Output, units: int) -> Output:
        return self._writer.op("FullyConnected", data, num_hidden=units)

    def norm(self, data: Output) -> Output:
        return self._writer.op("BatchNorm", data, fix_gamma=False)

    def relu(self, data: Output) -> Output:
        return self._writer.op("Activation", data, act_type="relu")

    def add(self, one: Output, other: Output) -> Output:
        return self._writer.op("elemwise_add", one, other)

    def join(self, *branches: Output) -> Output:
        return self._writer.op("Concat", *branches, num_args=len(branches), dim=1)

    def flat(self, data: Output) -> Output:
        return self._writer.op("Flatten", data)

    def softmax(self, data: Output) -> Output:
        return self._writer.op("softmax", data)

    def rendered(self, head: Output) -> bytes:
        return self._writer.render(head)


class Tensor(NamedTuple):
    """A tensor of an ONNX graph, with its shape, which the shapes of weights depend on."""

    name: str
    shape: tuple[int, ...]


class OnnxNetWriter(NetWriter[Tensor]):
    """Writes an ONNX file; constant nodes make the weights, as their values make no difference."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._stored: list[TensorProto] = []
        self._inputs: list[Tensor] = []

    def image(self, channels: int, size: int) -> Tensor:
        self._inputs.append(Tensor(INPUT, (1, channels, size, size)))
        return self._inputs[-1]

    def conv(self, data: Tensor, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> Tensor:
        pad = kernel // 2
        weights = [self._weight((filters, data.shape[1] // groups, kernel, kernel)), self._weight((filters,))]
        name = self._node("Conv", data.name, *weights, **_window(kernel, stride, pad), group=groups)
        return Tensor(name, _slid(data, filters, kernel, stride, pad))

    def pool(self, data: Tensor, kernel: int = 2, stride: int = 2, pad: int = 0, kind: str = "max") -> Tensor:
        op = "AveragePool" if kind == "avg" else "MaxPool"
        name = self._node(op, data.name, **_window(kernel, stride, pad))
        return Tensor(name, _slid(data, data.shape[1], kernel, stride, pad))

    def whole_mean(self, data: Tensor) -> Tensor:
        return Tensor(self._node("GlobalAveragePool", data.name), (1, data.shape[1], 1, 1))

    def linear(self, data: Tensor, units: int) -> Tensor:
        weights = [self._weight((units, data.shape[1])), self._weight((units,))]
        return Tensor(self._node("Gemm", data.name, *weights, transB=1), (1, units))

    def norm(self, data: Tensor) -> Tensor:
        weights = [self._weight((data.shape[1],)) for _ in range(4)]
        return self._alike("BatchNormalization", data, *weights)

    def relu(self, data: Tensor) -> Tensor:
        return self._alike("Relu", data)

    def add(self, one: Tensor, other: Tensor) -> Tensor:
        return self._alike("Add", one, other.name)

    def join(self, *branches: Tensor) -> Tensor:
        name = self._node("Concat", *[branch.name for branch in branches], axis=1)
        _, _, *sizes = branches[0].shape
        return Tensor(name, (1, sum(branch.shape[1] for branch in branches), *sizes))

    def flat(self, data: Tensor) -> Tensor:
        _, channels, height, width = data.shape
        return Tensor(self._node("Flatten", data.name), (1, channels * height * width))

    def softmax(self, data: Tensor) -> Tensor:
        return self._alike("Softmax", data)

    def rendered(self, head: Tensor) -> bytes:
        from onnx import GraphProto, ModelProto, ValueInfoProto
        from onnx.helper import make_opsetid, make_tensor_value_info

        graph = GraphProto(
            name="calibration",
            node=self._nodes,
            initializer=self._stored,
            input=[make_tensor_value_info(it.name, _FLOAT, it.shape) for it in self._inputs],
            output=[ValueInfoProto(name=head.name)],
        )
        made = ModelProto(ir_version=_IR_VERSION, graph=graph, opset_import=[make_opsetid("", _OPSET)])
        return bytes(made.SerializeToString(deterministic=True))

    def _alike(self, op: str, data: Tensor, *more: str, **attributes: float | int) -> Tensor:
        return Tensor(self._node(op, data.name, *more, **attributes), data.shape)

    def _weight(self, shape: Sequence[int]) -> str:
        from onnx.helper import make_tensor

        value = make_tensor("value", _FLOAT, (1,), (0.01,))
        return self._node("ConstantOfShape", self._store(_INT64, (len(shape),), shape), value=value)

    def _store(self, kind: int, shape: Sequence[int], values: Sequence[float]) -> str:
        from onnx.helper import make_tensor

        self._stored.append(make_tensor(f"stored{len(self._stored)}", kind, shape, values))
        return self._stored[-1].name

    def _node(self, op: str, *inputs: str, **attributes: Any) -> str:
        from onnx.helper import make_node

        name = f"{op.lower()}{len(self._nodes)}"
        self._nodes.append(make_node(op, list(inputs), [name], name=name, **attributes))
        return name


def _window(kernel: int, stride: int, pad: int) -> dict[str, list[int]]:
    return {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}


def _slid(data: Tensor, channels: int, kernel: int, stride: int, pad: int) -> tuple[int, ...]:
    """Return the shape that a sliding window puts out."""
    return (1, channels, *((size + 2 * pad - kernel) // stride + 1 for size in data.shape[2:]))
