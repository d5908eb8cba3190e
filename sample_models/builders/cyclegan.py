"""CycleGAN generators: nine residual blocks between two halvings and two doublings (Zhu et al., 2017)."""

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.containers import Step, chain, relu, sequence
from sample_models.builders.network import Network
from sample_models.builders.pixel_range import from_unit, to_unit_by_tanh
from sample_models.builders.symbol_writer import Output

BLOCKS = 9


def _reflect(width: int) -> Step:
    return lambda net, x, name: net.pad(x, name, width, width, mode="reflect")


def _conv(filters: int, kernel: int, stride: int = 1, pad: int = 0) -> Step:
    return lambda net, x, name: net.conv(x, name, filters, kernel, stride, pad)


def _norm(net: Network, x: Output, name: str) -> Output:
    return net.instance_norm(x, name, eps=1e-5)


def _block(net: Network, x: Output, name: str) -> Output:
    conv = (_reflect(1), _conv(128, 3), _norm)
    with net.scope(name):
        return net.add("2", chain(*conv, relu, *conv)(net, x, "1"), x)


def _double(filters: int) -> tuple[Step, ...]:
    def enlarge(net: Network, x: Output, name: str) -> Output:
        return net.deconv(x, name, filters, kernel=3, stride=2)

    return enlarge, _drop_first_row_and_column, _norm, relu


def _drop_first_row_and_column(net: Network, x: Output, name: str) -> Output:
    return net.single(name, "slice", "slice", x, begin=(0, 0, 1, 1), end="(None, None, None, None)")


def _build(*halvings: Step) -> bytes:
    net = Network()
    x = sequence(
        net,
        net.input("data", 1, 3, 256, 256),
        from_unit,
        *(_reflect(3), _conv(32, 7), _norm, relu),
        *halvings,
        *BLOCKS * (_block,),
        *_double(64),
        *_double(32),
        *(_reflect(3), _conv(3, 7)),
        to_unit_by_tanh,
    )
    return net.render(x)


def _padded_by_convolution() -> bytes:
    return _build(_conv(64, 3, stride=2, pad=1), _norm, relu, _conv(128, 3, stride=2, pad=1), _norm, relu)


def _padded_by_reflection() -> bytes:
    return _build(_reflect(1), _conv(64, 3, stride=2), _norm, relu, _reflect(1), _conv(128, 3, stride=2), _norm, relu)


ARCHITECTURES = (
    Architecture(
        file="cyclegan",
        build=_padded_by_convolution,
        rows=(
            Row(26, "CycleGAN Apple-to-Orange Translation Trained on ImageNet Competition Data", "IP"),
            Row(27, "CycleGAN Horse-to-Zebra Translation Trained on ImageNet Competition Data", "IP"),
            Row(28, "CycleGAN Monet-to-Photo Translation", "IP"),
            Row(29, "CycleGAN Orange-to-Apple Translation Trained on ImageNet Competition Data", "IP"),
            Row(31, "CycleGAN Photo-to-Monet Translation", "IP"),
            Row(33, "CycleGAN Summer-to-Winter Translation", "IP"),
            Row(34, "CycleGAN Winter-to-Summer Translation", "IP"),
            Row(35, "CycleGAN Zebra-to-Horse Translation Trained on ImageNet Competition Data", "IP"),
        ),
    ),
    Architecture(
        file="cyclegan_reflect",
        build=_padded_by_reflection,
        rows=(
            Row(30, "CycleGAN Photo-to-Cezanne Translation", "IP"),
            Row(32, "CycleGAN Photo-to-Van Gogh Translation", "IP"),
        ),
    ),
)
