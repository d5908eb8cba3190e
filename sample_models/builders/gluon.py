"""The networks of MXNet's Gluon model zoo among the samples: which they are, and where their exported files lie."""

from collections.abc import Mapping
from pathlib import Path

NETWORKS = (
    *(f"resnet{depth}_v{version}" for version in (1, 2) for depth in (18, 34, 50, 101, 152)),
    *(f"vgg{depth}{norm}" for norm in ("", "_bn") for depth in (11, 13, 16, 19)),
    "alexnet",
    *(f"densenet{depth}" for depth in (121, 161, 169, 201)),
    "squeezenet1.0",
    "squeezenet1.1",
    "inceptionv3",
    *(f"{family}{width}" for family in ("mobilenet", "mobilenetv2_") for width in ("1.0", "0.75", "0.5", "0.25")),
)
CLASSES = 1000
TASK = "IC"


def path_of(name: str) -> str:
    return f"gluon/{name}-symbol.json"


def exported(samples: Path) -> Mapping[str, bytes]:
    """The files that are there by the names of their networks."""
    paths = {name: samples / path_of(name) for name in NETWORKS}
    return {name: path.read_bytes() for name, path in paths.items() if path.is_file()}
