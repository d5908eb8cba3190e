"""The fifty models of Table 1 of the DLBricks paper: which file holds each, and who builds it."""

from collections.abc import Mapping

from sample_models.builders import (
    adain,
    ademxapp,
    capsnet,
    colorization,
    colornet,
    cyclegan,
    depth_in_the_wild,
    dilation,
    face_alignment,
    inception_bn,
    inception_v1,
    inception_v3,
    mobilenet_v2,
    pix2pix,
    preactivation_resnet,
    resnet,
    senet,
    squeezenet,
    ssd,
    vdsr,
    vgg,
    volumetric_regression,
    wide_resnet,
    yolo_v2,
)
from sample_models.builders.architecture import Architecture
from sample_models.builders.manifest import Entry, describe, describe_exported, render

MANIFEST = "manifest.json"

ARCHITECTURES: tuple[Architecture, ...] = (
    *vgg.ARCHITECTURES,
    *inception_v1.ARCHITECTURES,
    *inception_v3.ARCHITECTURES,
    *inception_bn.ARCHITECTURES,
    *mobilenet_v2.ARCHITECTURES,
    *squeezenet.ARCHITECTURES,
    *resnet.ARCHITECTURES,
    *preactivation_resnet.ARCHITECTURES,
    *wide_resnet.ARCHITECTURES,
    *senet.ARCHITECTURES,
    *ademxapp.ARCHITECTURES,
    *dilation.ARCHITECTURES,
    *adain.ARCHITECTURES,
    *capsnet.ARCHITECTURES,
    *colorization.ARCHITECTURES,
    *colornet.ARCHITECTURES,
    *cyclegan.ARCHITECTURES,
    *pix2pix.ARCHITECTURES,
    *vdsr.ARCHITECTURES,
    *ssd.ARCHITECTURES,
    *yolo_v2.ARCHITECTURES,
    *face_alignment.ARCHITECTURES,
    *depth_in_the_wild.ARCHITECTURES,
    *volumetric_regression.ARCHITECTURES,
)


def sample_files(exported: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The built networks by their paths below `sample_models/`, and the manifest of them and of what was exported."""
    networks = {path_of(architecture): architecture.build() for architecture in ARCHITECTURES}
    entries: list[Entry] = []
    for architecture in ARCHITECTURES:
        path = path_of(architecture)
        entries += describe(architecture, path, networks[path])
    entries += (describe_exported(name, network) for name, network in exported.items())
    return networks | {MANIFEST: render(entries)}


def path_of(architecture: Architecture) -> str:
    return f"table1/{architecture.file}-symbol.json"
