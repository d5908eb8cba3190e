"""Exports the networks of MXNet's Gluon model zoo, without weights, as sample models.

`python -m sample_models.builders.gluon_zoo` needs MXNet 1.9.1; what it writes is committed.
"""

import json
import sys
from pathlib import Path
from typing import Any

from dlbricks_tui.models.mxnet_file import symbol_file
from sample_models.builders.gluon import CLASSES, NETWORKS, path_of


def main() -> int:
    from sample_models.builders.__main__ import SAMPLES
    from sample_models.builders.__main__ import main as write_the_manifest

    for name in NETWORKS:
        _write(SAMPLES / path_of(name), export(name))
    return write_the_manifest([])


def export(name: str) -> bytes:
    """The symbol file of a network of the zoo; exporting again gives the same bytes."""
    from dlbricks_tui.runtime.inside.mxnet_framework import load_mxnet

    mxnet = load_mxnet()
    side = 299 if name == "inceptionv3" else 224
    # Without a prefix of its own a network is called by how many were made before it in this process.
    network = mxnet.gluon.model_zoo.vision.get_model(name, prefix=f"{name}_", classes=CLASSES)
    document: dict[str, Any] = json.loads(network(mxnet.sym.var("data", shape=(1, 3, side, side))).tojson())
    for node in document["nodes"]:
        # Learned arrays carry what only training reads, and shapes that are not known yet.
        if node["op"] == "null" and node["name"] != "data":
            del node["attrs"]
    return symbol_file(document)


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
