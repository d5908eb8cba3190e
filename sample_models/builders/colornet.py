"""ColorNet: local features of a grey image, joined with a vector that describes all of it (Iizuka et al., 2016)."""

from functools import partial

from sample_models.builders.architecture import Architecture, Row
from sample_models.builders.containers import Step, chain, conv, enlarge, relu
from sample_models.builders.network import Network
from sample_models.builders.pixel_range import from_unit
from sample_models.builders.symbol_writer import Output

# Each branch reads the image by itself.
LOCAL = ((64, 2), (128, 1), (128, 2), (256, 1), (256, 2), (512, 1), (512, 1), (256, 1))
GLOBAL = ((64, 2), (128, 1), (128, 2), (256, 1), (256, 2), (512, 1), (512, 2), (512, 1), (512, 2), (512, 1))


def _convs(*filters_and_strides: tuple[int, int]) -> tuple[Step, ...]:
    return tuple(step for filters, stride in filters_and_strides for step in (conv(filters, 3, stride), relu))


def _linear(outputs: int) -> Step:
    return lambda net, x, name: net.linear(x, name, outputs)


def _resize(size: int) -> Step:
    def bilinear(net: Network, x: Output, name: str) -> Output:
        return net.single(name, "resize", "_contrib_BilinearResize2D", x, height=size, width=size)

    return bilinear


def _spread(net: Network, x: Output, name: str) -> Output:
    return net.replicate(x, name, 28, 28)


def _colornet(fusion_kernel: int) -> bytes:
    net = Network()
    image = net.input("data", 1, 1, 224, 224)
    local = chain(*_convs(*LOCAL))
    description = (_linear(1024), relu, _linear(512), relu, _linear(256), relu)
    whole = chain(_resize(224), *_convs(*GLOBAL), Network.flatten, *description, _spread)
    joined = net.concat("3", local(net, image, "1"), whole(net, image, "2"))
    colours = chain(
        *(conv(256, fusion_kernel), relu, *_convs((128, 1)), enlarge),
        *(*_convs((64, 1), (64, 1)), enlarge),
        *(*_convs((32, 1)), conv(2, 3), Network.sigmoid, _resize(224)),
        from_unit,
    )
    return net.render(colours(net, joined, "4"))


ARCHITECTURES = (
    Architecture(
        file="colornet_imagenet",
        build=partial(_colornet, fusion_kernel=1),
        rows=(Row(24, "ColorNet Image Colorization Trained on ImageNet Competition Data", "IP"),),
    ),
    Architecture(
        file="colornet_places",
        build=partial(_colornet, fusion_kernel=3),
        rows=(Row(25, "ColorNet Image Colorization Trained on Places Data", "IP"),),
    ),
)
