"""AdaIN style transfer: the content's features take the style's mean and deviation (Huang and Belongie, 2017)."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.containers import Step, enlarge, relu, sequence
from sample_models.builders.network import Network
from sample_models.builders.symbol_writer import Output

CHANNELS = 512
# The encoder's image of 512x512 is halved three times.
SIZE = 64


def _conv(filters: int) -> tuple[Step, ...]:
    def reflect(net: Network, x: Output, name: str) -> Output:
        return net.pad(x, name, 1, 1, mode="reflect")

    def conv(net: Network, x: Output, name: str) -> Output:
        return net.conv(x, name, filters, kernel=3)

    return reflect, conv


def _halve(net: Network, x: Output, name: str) -> Output:
    return net.max_pool(x, name, kernel=2, stride=2)


def _painted(*filters: int) -> tuple[Step, ...]:
    return tuple(step for width in filters for step in (*_conv(width), relu))


# VGG-19 as far as its first convolution with 512 filters.
ENCODER = (*_painted(64, 64), _halve, *_painted(128, 128), _halve, *_painted(*4 * (256,)), _halve, *_painted(CHANNELS))
DECODER = (
    *(*_painted(256), enlarge),
    *(*_painted(256, 256, 256, 128), enlarge),
    *(*_painted(128, 64), enlarge),
    *(*_painted(64), *_conv(3)),
)


def _build() -> bytes:
    net = Network()
    content, style = (_encoded(net, name) for name in ("content", "style"))
    with net.scope("adaIN"):
        x = _restyled(net, content, style)
    with net.scope("decoder"):
        return net.render(sequence(net, x, *DECODER))


def _encoded(net: Network, name: str) -> Output:
    image = net.input(name, 1, 3, 512, 512)
    with net.scope(f"encoder_{name}"):
        return sequence(net, image, *ENCODER)


def _restyled(net: Network, content: Output, style: Output) -> Output:
    content_mean = _spread(net, net.spatial_mean(content, "c_m"), "c_m_br")
    x = net.single("m_shift_1", "combine", "elemwise_sub", content, content_mean)
    content_deviation = _spread(net, _deviation(net, content, "c_v"), "c_v_br")
    with net.layer("v_norm_1", "combine") as writer:
        x = writer.op("elemwise_div", x, writer.op("_plus_scalar", content_deviation, scalar=1e-6))
    style_deviation = _spread(net, _deviation(net, style, "s_v"), "s_v_br")
    x = net.single("v_norm_2", "combine", "elemwise_mul", x, style_deviation)
    style_mean = _spread(net, net.spatial_mean(style, "s_m"), "s_m_br")
    return net.add("m_shift_2", x, style_mean)


def _deviation(net: Network, x: Output, name: str) -> Output:
    """The standard deviation of each channel, as a vector."""
    with net.scope(name):
        mean = _spread(net, net.spatial_mean(x, "mean"), "broadcast")
        with net.layer("deviation", "combine") as writer:
            squared = writer.op("square", writer.op("elemwise_sub", x, mean))
        return net.single("sqrt", "elementwise", "sqrt", net.spatial_mean(squared, "variance"))


def _spread(net: Network, x: Output, name: str) -> Output:
    return net.replicate(x, name, SIZE, SIZE)


ARCHITECTURES = (
    Architecture(
        file="adain",
        build=_build,
        rows=(Row(22, "AdaIN-Style Trained on MS-COCO and Painter by Numbers Data", "IP"),),
    ),
)
