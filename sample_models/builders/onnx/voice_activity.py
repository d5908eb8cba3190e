"""A detector of speech in short frames of sound, with an LSTM whose state the caller keeps.

The sampling rate, a whole number, chooses one of two networks: a model for 16 kHz and one for 8 kHz.
"""

from sample_models.builders.onnx.graph import LEFT_OUT, Graph

_HIDDEN = 128


def silero_vad() -> bytes:
    """Return a network of the sizes of Silero VAD, version 5."""
    net = Graph()
    frame = net.input("input", "float32", "batch", "samples")
    state = net.input("state", "float32", 2, "batch", _HIDDEN)
    rate = net.input("sr", "int64")
    wideband = net.op("Equal", rate, net.constant(16000, "int64"))
    yes = _network(net.branch("then_branch"), frame, state, window=256)
    no = _network(net.branch("else_branch"), frame, state, window=128)
    speech, kept = net.choose(wideband, yes=yes, no=no, outputs=2)
    net.output(speech, "output", "float32", "batch", 1)
    net.output(kept, "stateN", "float32", 2, "batch", _HIDDEN)
    return net.rendered()


def _network(net: Graph, frame: str, state: str, window: int) -> Graph:
    """Write the network for one sampling rate into a branch."""
    bands = window // 2 + 1
    with net.scope("stft"):
        padded = net.op("Pad", frame, net.ints(0, 0, 0, window // 4), mode="reflect")
        x = _spectrum(net, net.unsqueeze(padded, 1), window, bands)
    for number, (inputs, outputs, stride) in enumerate(((bands, 128, 1), (128, 64, 2), (64, 64, 2), (64, _HIDDEN, 1))):
        with net.scope(f"encoder.{number}"):
            x = net.op("Relu", _conv(net, x, inputs, outputs, 3, stride))
    with net.scope("decoder"):
        x = _squeezed_if_one(net, x, axis=2)
        with net.scope("rnn"):
            x, kept = _step(net, x, state)
        with net.scope("decoder"):
            x = net.op("Sigmoid", _conv(net, net.op("Relu", net.unsqueeze(x, -1)), _HIDDEN, 1, 1, 1))
        speech = net.op("ReduceMean", net.op("Squeeze", x, net.ints(1)), axes=[1], keepdims=1)
    net.results({speech: "float32", kept: "float32"})
    return net


def _spectrum(net: Graph, x: str, window: int, bands: int) -> str:
    """Return the magnitudes of a short-time Fourier transform, which is a convolution with stored waves."""
    waves = net.weight("forward_basis_buffer", 2 * bands, 1, window)
    both = net.op("Conv", x, waves, kernel_shape=[window], strides=[window // 2], pads=[0, 0])
    real = net.op("Slice", both, net.ints(0), net.ints(bands), net.ints(1))
    imaginary = net.op("Slice", both, net.ints(bands), net.ints(2 * bands), net.ints(1))
    squares = [net.op("Pow", part, net.number(2)) for part in (real, imaginary)]
    return net.op("Sqrt", net.op("Add", *squares))


def _conv(net: Graph, x: str, inputs: int, filters: int, kernel: int, stride: int) -> str:
    weights = net.weight("weight", filters, inputs, kernel), net.weight("bias", filters)
    return net.op("Conv", x, *weights, kernel_shape=[kernel], strides=[stride], pads=[kernel // 2] * 2)


def _squeezed_if_one(net: Graph, x: str, axis: int) -> str:
    """Drop an axis if its size is one, which exporters write as an `If` where they do not know the size."""
    alone = net.op("Equal", net.size(x, axis), net.constant(1, "int64"))
    yes, no = net.branch("squeeze"), net.branch("keep")
    yes.results({yes.op("Squeeze", x, yes.ints(axis)): "float32"})
    no.results({no.op("Identity", x): "float32"})
    return net.choose(alone, yes=yes, no=no, outputs=1)[0]


def _step(net: Graph, x: str, state: str) -> tuple[str, str]:
    """One step of an LSTM: its result, and its two states for the next call."""
    hidden, cell = (net.unsqueeze(net.op("Gather", state, net.constant(place, "int64"), axis=0), 0) for place in (0, 1))
    weights = (
        net.weight("weight_ih", 1, 4 * _HIDDEN, _HIDDEN),
        net.weight("weight_hh", 1, 4 * _HIDDEN, _HIDDEN),
        net.weight("bias", 1, 8 * _HIDDEN),
    )
    _, hidden, cell = net.ops("LSTM", 3, net.unsqueeze(x, 0), *weights, LEFT_OUT, hidden, cell, hidden_size=_HIDDEN)
    return net.op("Squeeze", hidden, net.ints(0)), net.op("Concat", hidden, cell, axis=0)
