"""Compare estimates of ONNX models of many short layers with their latencies: 0.1 to 5 ms, 50 to 1,000 layers.

usage: python -m benchmarks.small_models [--method METHOD] [--threads N] [--write FOLDER] [MODEL ...]

MODEL is an .onnx file; without any, the models are made here. Each sort of network is made short and long, and in two
forms. One repeats its modules. In the other each module has a width of its own. A line for each model has its layers,
how many of them were timed in the whole model (in place), its latency, and the error of its estimate. The last line has
the mean error. With --write the models are written into a folder, and nothing is measured.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import fmean

from benchmarks.command_line import told
from dlbricks_tui.measure.method import Method
from sample_models.builders.onnx.graph import Graph

# The number of modules of a short and of a long network.
Depths = tuple[int, int]


def main() -> int:
    """Write the models, or run each model in a data folder of its own and print how close its estimate is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--method", choices=[method.value for method in Method], default=Method.INSIDE.value)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.write)
        return 0
    options = ["--method", arguments.method, "--end-to-end"]
    options += ["--threads", str(arguments.threads)] if arguments.threads else []
    errors = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, file in enumerate(arguments.models or write(folder / "models")):
            found = told(folder / str(number), "run", str(file.absolute()), *options)
            for it in found["models"] if found else ():
                errors.append(it["error"])
                layers = it["coverage"]
                print(
                    f"{it['model'][:32]:32} {layers['measured']:4} layers, {layers['own_carrier']:4} timed in place, "
                    f"{it['measured_ms']:8.3f} ms, {it['error']:+7.1%}",
                    flush=True,
                )
    within = sum(abs(error) <= 0.05 for error in errors)
    print(f"mean error {fmean(map(abs, errors)):.1%}, bias {fmean(errors):+.1%}, {within} of {len(errors)} within 5 %")
    return 0


def write(folder: Path) -> list[Path]:
    """Write all models, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in small_models():
        paths.append(folder / f"{name}.onnx")
        paths[-1].write_bytes(content)
    return paths


def small_models() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the file of each network."""
    for sort, (build, depths) in _SORTS.items():
        for depth in depths:
            for repeats in (True, False):
                net = _Network()
                net.output(build(net, depth, repeats), "output")
                yield f"{sort}_{depth}_{'repeated' if repeats else 'varied'}", net.rendered()


class _Network(Graph):
    """A graph in which equal names of weights are told apart by a number."""

    def weight(self, name: str, *shape: int, dtype: str = "float32", value: float | None = None) -> str:
        with self.scope(f"weight.{self._weights}"):
            return super().weight(name, *shape, dtype=dtype, value=value)


def _width(usual: int, number: int, *, repeats: bool) -> int:
    """Return the width of a module: its own, unless modules repeat."""
    return usual if repeats else usual + 8 * (number % 16) + number // 16


def _chain(net: Graph, depth: int, repeats: bool) -> str:
    """Elementwise operators on short vectors."""
    x = net.input("data", "float32", 1, 512)
    for number in range(depth):
        width = _width(512, number, repeats=repeats)
        if not repeats:
            x = net.op("Slice", net.op("Concat", x, x, axis=1), net.ints(0), net.ints(width), net.ints(1))
        x = net.op("Mul", x, net.weight("scale", width))
        x = net.op("Sigmoid", net.op("Add", x, net.weight("shift", width)))
        x = net.op("Sub", net.op("Sqrt", x), net.weight("mean", width))
    return x


def _conv(net: Graph, x: str, read: int, made: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> str:
    weights = net.weight("weight", made, read // groups, kernel, kernel), net.weight("bias", made)
    window = {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4, "strides": [stride] * 2}
    return net.op("Conv", x, *weights, group=groups, **window)


def _residual(net: Graph, depth: int, repeats: bool) -> str:
    """Small convolutions with sums."""
    read = 16
    x = net.op("Relu", _conv(net, net.input("data", "float32", 1, 3, 20, 20), 3, read, 3, 2))
    for number in range(depth):
        inner = net.op("Relu", _conv(net, x, read, _width(16, number, repeats=repeats), 3))
        x = net.op("Relu", net.op("Add", _conv(net, inner, _width(16, number, repeats=repeats), read, 3), x))
    return net.op("Flatten", net.op("GlobalAveragePool", x))


def _inverted(net: Graph, depth: int, repeats: bool) -> str:
    """Inverted residuals with hard swish and squeeze and excitation."""
    read = 16
    x = _conv(net, net.input("data", "float32", 1, 3, 32, 32), 3, read, 3, 2)
    for number in range(depth):
        wide = _width(48, number, repeats=repeats)
        inner = net.op("HardSwish", _conv(net, x, read, wide))
        inner = net.op("HardSwish", _conv(net, inner, wide, wide, 3, groups=wide))
        pooled = net.op("Relu", _conv(net, net.op("GlobalAveragePool", inner), wide, 8))
        inner = net.op("Mul", inner, net.op("HardSigmoid", _conv(net, pooled, 8, wide)))
        x = net.op("Add", _conv(net, inner, wide, read), x)
    return net.op("Flatten", net.op("GlobalAveragePool", x))


def _encoder(net: Graph, depth: int, repeats: bool) -> str:
    """Transformer blocks of 16 tokens."""
    tokens, width, heads = 16, 64, 4
    x = net.input("data", "float32", 1, tokens, width)
    for number in range(depth):
        parts = []
        for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
            part = net.reshape(net.linear(x, width, width), 1, tokens, heads, width // heads)
            parts.append(net.op("Transpose", part, perm=order))
        query, key, value = parts
        scores = net.op("Softmax", net.op("Mul", net.op("MatMul", query, key), net.number(0.25)), axis=-1)
        mixed = net.op("Transpose", net.op("MatMul", scores, value), perm=[0, 2, 1, 3])
        x = _norm(net, net.op("Add", x, net.linear(net.reshape(mixed, 1, tokens, width), width, width)), width)
        wide = _width(4 * width, number, repeats=repeats)
        inner = net.op("Relu", net.linear(x, width, wide))
        x = _norm(net, net.op("Add", x, net.linear(inner, wide, width)), width)
    return x


def _norm(net: Graph, x: str, width: int) -> str:
    return net.op("LayerNormalization", x, net.weight("scale", width), net.weight("shift", width), axis=-1)


def _gates(net: Graph, depth: int, repeats: bool) -> str:
    """The steps of an LSTM, operator by operator."""
    width = 48
    x, state = net.input("data", "float32", 1, width), net.input("state", "float32", 1, width)
    cell = state
    shared = [net.weight("weight", 2 * width, 4 * width), net.weight("bias", 4 * width)]
    for number in range(depth):
        read = net.op("Concat", x, state, axis=1)
        if repeats:
            gates = net.op("Add", net.op("MatMul", read, shared[0]), shared[1])
        else:
            inner = _width(24, number, repeats=False)
            gates = net.linear(net.linear(read, 2 * width, inner), inner, 4 * width)
        one, two, three, four = net.ops("Split", 4, gates, axis=1)
        kept = net.op("Mul", net.op("Sigmoid", one), cell)
        cell = net.op("Add", kept, net.op("Mul", net.op("Sigmoid", two), net.op("Tanh", three)))
        state = net.op("Mul", net.op("Sigmoid", four), net.op("Tanh", cell))
    return state


def _tabular(net: Graph, depth: int, repeats: bool) -> str:
    """Linear layers with batch norms and gates, on one row."""
    read = 96
    x = net.input("data", "float32", 1, read)
    for number in range(depth):
        wide = _width(96, number, repeats=repeats)
        inner = net.op("Relu", net.gemm(_batch_norm(net, x, read), read, wide))
        gate = net.op("Sigmoid", net.gemm(_batch_norm(net, inner, wide), wide, read))
        x = net.op("Add", x, net.op("Mul", gate, net.gemm(inner, wide, read)))
    return net.op("Softmax", x, axis=1)


def _batch_norm(net: Graph, x: str, width: int) -> str:
    learned = [net.weight(name, width) for name in ("weight", "bias", "mean", "variance")]
    return net.op("BatchNormalization", x, *learned)


def _stemmed(net: Graph, depth: int, repeats: bool) -> str:
    """A few large convolutions, then short elementwise operators."""
    x = net.input("data", "float32", 1, 3, 64, 64)
    for read, made in ((3, 32), (32, 64), (64, 64)):
        x = net.op("Relu", _conv(net, x, read, made, 3, 2 if read == 32 else 1))
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    for number in range(depth):
        width = _width(64, number, repeats=repeats)
        if not repeats:
            x = net.linear(x, 64 if number == 0 else _width(64, number - 1, repeats=False), width)
        x = net.op("Sigmoid", net.op("Mul", x, net.weight("scale", width)))
        x = net.op("Sqrt", net.op("Add", x, net.weight("shift", width)))
    return x


_SORTS: Mapping[str, tuple[Callable[[Graph, int, bool], str], Depths]] = {
    "chain": (_chain, (20, 180)),
    "residual": (_residual, (16, 60)),
    "stemmed": (_stemmed, (15, 200)),
    "inverted": (_inverted, (6, 40)),
    "encoder": (_encoder, (3, 20)),
    "gates": (_gates, (6, 60)),
    "tabular": (_tabular, (8, 80)),
}


if __name__ == "__main__":
    sys.exit(main())
