"""Write networks of GluonCV, which were not used to develop the measuring method.

usage: python -m venv ENV
       ENV/bin/pip install numpy==1.23.5 mxnet==1.9.1 gluoncv matplotlib tqdm portalocker opencv-python-headless pandas
       ENV/bin/python -m benchmarks.gluoncv_networks FOLDER [NAME ...]

    python -m benchmarks.contexts FOLDER/*.json
    python -m benchmarks.accuracy FOLDER/*.json

then tell of them what `made_up_networks` tells of others; `make accuracy` reports those in build/accuracy/gluoncv. It
imports nothing of ours, so that an environment that has only GluonCV runs it.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy

for name, kind in (("bool", bool), ("int", int), ("float", float), ("object", object)):
    setattr(numpy, name, kind)
import gluoncv.model_zoo  # noqa: E402 - MXNet wants the names that newer numpy has dropped
import mxnet  # noqa: E402 - likewise

IMAGE, TINY, PERSON = (1, 3, 224, 224), (1, 3, 32, 32), (1, 3, 256, 192)
# Each with the shape that it reads. Those of classes are as they come; no file of weights is asked for.
NETWORKS: Mapping[str, Sequence[int]] = {
    "center_net_resnet18_v1b_voc": IMAGE,
    "cifar_resnet20_v1": TINY,
    "cifar_resnext29_16x64d": TINY,
    "cifar_wideresnet16_10": TINY,
    "darknet53": IMAGE,
    "fastscnn_citys": (1, 3, 512, 512),
    "fcn_resnet50_ade": (1, 3, 480, 480),
    "googlenet": IMAGE,
    "hrnet_w18_small_v1_c": IMAGE,
    "icnet_resnet50_citys": (1, 3, 480, 480),
    "mobile_pose_mobilenetv3_small": PERSON,
    "mobilenetv3_large": IMAGE,
    "mobilenetv3_small": IMAGE,
    "nasnet_4_1056": IMAGE,
    "r2plus1d_resnet18_kinetics400": (1, 3, 16, 112, 112),
    "residualattentionnet56": IMAGE,
    "resnest50": IMAGE,
    "resnet18_v1b_0.89": IMAGE,
    "resnet50_v1d": IMAGE,
    "resnext50_32x4d": IMAGE,
    "se_resnet50_v1": IMAGE,
    "se_resnext50_32x4d": IMAGE,
    "senet_154": IMAGE,
    "simple_pose_resnet18_v1b": PERSON,
    "ssd_512_mobilenet1.0_voc": (1, 3, 512, 512),
    "alpha_pose_resnet101_v1b_coco": PERSON,
    "xception": (1, 3, 299, 299),
    "yolo3_mobilenet1.0_voc": (1, 3, 320, 320),
}
# Networks for a task are made upon one of classes, which would bring its weights.
OF_TASKS = ("_ade", "_citys", "_voc", "_coco", "_pose_")
# These have to be told the size of what they read, under one name or another.
SIZED, CROPPED = ("fastscnn", "icnet"), ("fcn",)


def main(folder: Path, names: Sequence[str]) -> None:
    """Writes these, or all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or NETWORKS:
        (folder / f"{name.replace('.', '_')}-symbol.json").write_text(symbol_of(name, NETWORKS[name]))
        print(name, flush=True)


def symbol_of(name: str, shape: Sequence[int]) -> str:
    """The symbol file of a network that says of what shape its input is."""
    network = gluoncv.model_zoo.get_model(name, pretrained=False, **options(name, shape))
    network.initialize()
    # What it hands on is told by one run.
    network.hybridize()
    network(mxnet.nd.ones(shape))
    found = network(mxnet.sym.var("data"))
    symbol = mxnet.sym.Group(flat(found)) if isinstance(found, list | tuple) else found
    document = json.loads(symbol.tojson())
    (data,) = (node for node in document["nodes"] if node["name"] == "data")
    data["attrs"] = {**data.get("attrs", {}), "__shape__": str(tuple(shape))}
    return json.dumps(document, separators=(",", ":"))


def options(name: str, shape: Sequence[int]) -> dict[str, object]:
    """Return the other arguments that a network needs."""
    found: dict[str, object] = {"pretrained_base": False} if any(task in name for task in OF_TASKS) else {}
    if name.startswith(SIZED):
        found |= {"height": shape[2], "width": shape[3]}
    if name.startswith(CROPPED):
        found["crop_size"] = shape[2]
    return found


def flat(found: object) -> list[object]:
    """All outputs, however they are put together."""
    return [each for part in found for each in flat(part)] if isinstance(found, list | tuple) else [found]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
