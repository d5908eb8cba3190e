"""Time the prediction of a model of 10,000 layers that was never measured: what an estimate takes for it.

usage: python -m benchmarks.predicting [LAYERS [DIFFERENT]]

The layers are a chain of convolutions, DIFFERENT of them. The estimate with predictions and the one without any latency
take turns, with the features of no brick known; their times and the difference are medians of ten. The promise: 0.2 s
more with predictions.
"""

import statistics
import sys
import time
from collections.abc import Callable
from itertools import product

from benchmarks.promises import at_most, judge
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.knowledge import NOTHING_KNOWN, Knowledge
from dlbricks_tui.estimate.prediction.features import features_anywhere
from dlbricks_tui.estimate.prediction.prior import prior_of
from dlbricks_tui.models.graph import (
    Feed,
    GraphInput,
    Layer,
    LayerGraph,
    Level,
    NativeNode,
    Operator,
    Origin,
    TensorType,
    Wire,
)
from dlbricks_tui.models.kinds import Kind

LAYERS, DIFFERENT, TIMES = 10_000, 500, 10
CHANNELS, SIZES = range(16, 512, 16), (7, 14, 28, 56, 112)


def main() -> int:
    """Print the times; exit status 1 if the promise is broken."""
    layers = int(sys.argv[1]) if sys.argv[1:] else LAYERS
    different = int(sys.argv[2]) if sys.argv[2:] else DIFFERENT
    prior = prior_of("mxnet", Level.WRITTEN)
    if prior is None:
        sys.exit("the package has no prior: `python -m benchmarks.prior` makes it")
    model = decompose(chain(layers, different))
    predicted = estimate(model, Knowledge(predictor=lambda: prior)).coverage.predicted
    turns = [
        (
            taken_ms(lambda: estimate(model, Knowledge(predictor=lambda: prior))),
            taken_ms(lambda: estimate(model, NOTHING_KNOWN)),
        )
        for _ in range(TIMES)
    ]
    with_them, without = (statistics.median(times) for times in zip(*turns, strict=True))
    print(
        f"{bricks(model)} bricks in {layers} layers, {predicted} of them predicted: {with_them:.0f} ms, "
        f"else {without:.0f} ms"
    )
    more = statistics.median(one - other for one, other in turns)
    return judge([at_most(200, "ms", f"the predictions of {layers:,} layers", more)])


def chain(layers: int, different: int, batch: int = 1) -> LayerGraph:
    """A chain of convolutions, of which so many are different, at a batch size."""
    shapes = list(product(CHANNELS, SIZES))
    data = [
        TensorType((batch * (1 + place // len(shapes)), *channels_and_size(shapes[place % len(shapes)])))
        for place in range(different)
    ]
    found = [convolution(index, data[index % different]) for index in range(layers)]
    inputs, heads = (GraphInput("data", data[0]),), (Feed(layers - 1, 0),)
    return LayerGraph("chain", Level.WRITTEN, tuple(found), inputs, heads, batch_size=batch)


def channels_and_size(shape: tuple[int, int]) -> tuple[int, int, int]:
    """Return the axes of a tensor behind its batch."""
    channels, size = shape
    return channels, size, size


def convolution(index: int, data: TensorType) -> Layer:
    """A convolution that keeps the type of its input."""
    channels = (data.shape or (1, 1))[1]
    weight = TensorType((channels, channels, 3, 3))
    native, params = NativeNode("Convolution"), (("kernel", (3, 3)), ("pads", (1, 1, 1, 1)))
    inputs = (Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0))
    return Layer(
        index,
        f"conv{index}",
        "conv",
        Kind.CONVOLUTION,
        (Operator("conv", params, inputs, (data,), native),),
        (Feed(index - 1 if index else None, 0),),
        (data,),
        (weight,),
        (Wire(Origin.OPERATOR, 0),),
        (data,),
    )


def bricks(model: Decomposition) -> int:
    """Return the number of different bricks in their contexts."""
    return len(model.suite)


def taken_ms(work: Callable[[], Estimate]) -> float:
    """Return the time of the work."""
    features_anywhere.cache_clear()
    begin = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begin)


if __name__ == "__main__":
    sys.exit(main())
