"""CapsNet: groups of neurons that vote for the capsules above them, by routing (Sabour et al., 2017)."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

CAPSULES = 1152
CAPSULE_LENGTH = 8
DIGITS = 10
DIGIT_LENGTH = 16
ROUTING_STEPS = 2


def _build() -> bytes:
    net = Network()
    capsules = _primary_capsules(net, net.input("data", 1, 1, 28, 28))
    votes = _votes(net, capsules)
    agreement = _routed(net, votes)
    with net.scope("DigitCaps"):
        digits = _digit_capsules(net, agreement, votes)
    with net.scope("Norm"):
        lengths = net.single("3", "elementwise", "sqrt", _squared_lengths(net, digits, ("1", "2")))
    winner = _longest(net, digits, lengths)
    return net.render(lengths, _reconstructed(net, winner))


def _primary_capsules(net: Network, image: Output) -> Output:
    with net.scope("ReLUConv1"):
        x = net.relu(net.conv(image, "1", 256, kernel=9), "2")
    with net.scope("PrimaryCaps"):
        x = net.conv(x, "1", 256, kernel=9, stride=2)
        x = net.transpose(x, "2", 0, 2, 3, 1)
        x = net.reshape(x, "3", 0, CAPSULES, CAPSULE_LENGTH)
        return _squashed(net, x, "4", CAPSULES, CAPSULE_LENGTH)


def _squashed(net: Network, x: Output, name: str, capsules: int, length: int) -> Output:
    """Shortens each capsule to less than one and keeps its direction."""
    with net.scope(name):
        squares = _squared_lengths(net, x, ("1", "2"))
        with net.layer("3", "elementwise") as writer:
            factor = writer.op(
                "elemwise_div", writer.op("sqrt", squares), writer.op("_plus_scalar", squares, scalar=1.0)
            )
        factor = _replicate(net, factor, "4", (capsules, length), new_axes=(2,))
        return net.single("5", "combine", "elemwise_mul", x, factor)


def _squared_lengths(net: Network, x: Output, names: tuple[str, str]) -> Output:
    square, total = names
    return net.single(total, "reduce", "sum", net.single(square, "elementwise", "square", x), axis=2)


def _votes(net: Network, capsules: Output) -> Output:
    """Return the vote of each capsule for each digit: its matrix for that digit, times the capsule."""
    shape = (CAPSULES, DIGITS, DIGIT_LENGTH, CAPSULE_LENGTH)
    with net.scope("PrimaryPredVects"):
        matrices = net.constant("2", 1, *shape)
        x = _replicate(net, capsules, "1", shape, new_axes=(2, 3))
        x = net.single("3", "combine", "broadcast_mul", x, matrices)
        return net.single("4", "reduce", "sum", x, axis=4)


def _routed(net: Network, votes: Output) -> Output:
    """Return the agreement of each capsule with each digit after the routing steps, which are counted as one."""
    with net.scope("DynamicRouting"):
        vote_of_step = _replicate(net, votes, "1", (ROUTING_STEPS, CAPSULES, DIGITS, DIGIT_LENGTH), new_axes=(1,))
        agreements = [net.writer.learned("DynamicRouting/2_bias", (1, CAPSULES * DIGITS))]
        with net.scope("2/Net"), net.repeated(ROUTING_STEPS):
            for step in range(ROUTING_STEPS):
                agreements.append(_routing_step(net, agreements[-1], vote_of_step, step))
        with net.layer("3", "slice") as writer:
            sequence = writer.op("stack", *agreements[1:], axis=1, num_args=ROUTING_STEPS)
            return writer.op("SequenceLast", sequence, axis=1)


def _routing_step(net: Network, agreement: Output, votes: Output, step: int) -> Output:
    with net.scope("capsule"):
        digits = _digit_capsules(net, agreement, votes, step)
    with net.scope("dots"):
        x = _replicate(net, digits, "1", (CAPSULES, DIGITS, DIGIT_LENGTH), new_axes=(1,))
        x = _times_votes(net, x, "2", votes, step)
        x = net.single("3", "reduce", "sum", x, axis=3)
    return net.add("new_b", agreement, net.flatten(x, "dots_flatten"))


def _digit_capsules(net: Network, agreement: Output, votes: Output, step: int | None = None) -> Output:
    """The sum of the votes, each weighted by how far its capsule agrees with the digit."""
    with net.scope("c"):
        weights = net.softmax(net.reshape(agreement, "1", 0, CAPSULES, DIGITS), "2")
    with net.scope("s"):
        x = _replicate(net, weights, "1", (CAPSULES, DIGITS, DIGIT_LENGTH), new_axes=(3,))
        x = _times_votes(net, x, "2", votes, step)
        x = net.single("3", "reduce", "sum", x, axis=1)
    return _squashed(net, x, "v", DIGITS, DIGIT_LENGTH)


def _times_votes(net: Network, x: Output, name: str, votes: Output, step: int | None) -> Output:
    """The product with the votes; inside the routing loop with the copy that belongs to the step."""
    with net.layer(name, "combine") as writer:
        if step is not None:
            votes = writer.op("slice_axis", votes, axis=1, begin=step, end=step + 1)
            votes = writer.op("Reshape", votes, shape=(0, CAPSULES, DIGITS, DIGIT_LENGTH))
        return writer.op("elemwise_mul", x, votes)


def _longest(net: Network, digits: Output, lengths: Output) -> Output:
    with net.scope("Pick"):
        place = net.single("1", "other", "topk", lengths, axis=1, k=1, ret_typ="indices")
        with net.layer("2", "slice") as writer:
            places = writer.op("broadcast_to", place, shape=(0, DIGIT_LENGTH))
            return writer.op("pick", digits, places, axis=1)


def _reconstructed(net: Network, x: Output) -> Output:
    with net.scope("Reconstruct"):
        x = net.relu(net.linear(x, "1", 512), "2")
        x = net.relu(net.linear(x, "3", 1024), "4")
        x = net.sigmoid(net.linear(x, "5", 784), "6")
        return net.reshape(x, "7", 0, 1, 28, 28)


def _replicate(net: Network, x: Output, name: str, shape: tuple[int, ...], new_axes: tuple[int, ...]) -> Output:
    """Copies along new axes; `shape` is that of the result without the batch, which is axis 0."""
    before = (0, *(1 if axis in new_axes else size for axis, size in enumerate(shape, start=1)))
    with net.layer(name, "broadcast") as writer:
        return writer.op("broadcast_to", writer.op("Reshape", x, shape=before), shape=(0, *shape))


ARCHITECTURES = (
    Architecture(
        file="capsnet",
        build=_build,
        rows=(Row(4, "CapsNet Trained on MNIST Data", "IC"),),
        classes=DIGITS,
    ),
)
