"""The fifty models of Table 1 of the DLBricks paper: which file holds each, and who builds it."""

from collections.abc import Mapping
from pathlib import Path

from dlbricks_tui.models.mxnet_file import Framework
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
    gluon,
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
from sample_models.builders.delivered_types import infer, loaded, onnx_path, types_path
from sample_models.builders.manifest import Entry, describe, describe_exported, describe_onnx, render
from sample_models.builders.onnx.samples import SAMPLES as ONNX_SAMPLES
from sample_models.builders.onnx.translation import translate_file

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


def sample_files(samples: Path, framework: Framework) -> Mapping[str, bytes]:
    """Everything below `sample_models/` that is made, by its path: networks, their types, and the manifest.

    The networks of the Gluon model zoo, and types that still hold, are taken from the samples that are there.
    """
    zoo = {gluon.path_of(name): network for name, network in gluon.exported(samples).items()}
    networks = {path_of(architecture): architecture.build() for architecture in ARCHITECTURES} | zoo
    inferred = {path: infer(path, network, samples / types_path(path), framework) for path, network in networks.items()}
    table1 = (describe(it, path_of(it), inferred[path_of(it)].graph) for it in ARCHITECTURES)
    entries: list[Entry] = [entry for rows in table1 for entry in rows]
    entries += (describe_exported(path, inferred[path].graph) for path in zoo)
    onnx = {sample.path: sample.build() for sample in ONNX_SAMPLES}
    entries += (describe_onnx(it, loaded(it.path, onnx[it.path], it.inputs)) for it in ONNX_SAMPLES)
    types = {types_path(path): found.types for path, found in inferred.items()}
    translated = {
        onnx_path(path): translate_file(network, types[types_path(path)], path) for path, network in networks.items()
    }
    return networks | types | translated | onnx | {MANIFEST: render(entries)}


def path_of(architecture: Architecture) -> str:
    return f"table1/{architecture.file}-symbol.json"
