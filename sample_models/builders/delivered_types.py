"""The types that MXNet infers of each network, delivered beside it: who has the samples needs no MXNet to see them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Shape
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.mxnet_file import Framework
from dlbricks_tui.runtime.registry import Registry


class InferredNetwork(NamedTuple):
    """A network as it is loaded, and the types file that this takes."""

    graph: LayerGraph
    types: bytes


class NoFramework:
    """Stands where only what is delivered may be used."""

    identity = "none"

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        """Refuses."""
        raise ModelError("its types are not delivered, or are those of another version of the file: run `make samples`")

    def fuse(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        """Refuses."""
        raise ModelError("what a framework fuses is not delivered")


def types_path(network: str) -> str:
    return f"{network.removesuffix('-symbol.json')}-types.json"


def onnx_path(network: str) -> str:
    """Return the path of a network of MXNet as ONNX."""
    return f"{network.removesuffix('-symbol.json')}.onnx"


def installed_framework(folder: Path) -> WorkerFramework:
    """The framework of this interpreter, which starts when it is asked; the folder takes its log."""
    return WorkerFramework(Registry(folder).default(), folder / "framework.log")


def infer(path: str, network: bytes, delivered: Path, framework: Framework) -> InferredNetwork:
    """Loads a network with the types file that is there; the framework is asked where that is absent or outdated."""
    with TemporaryDirectory() as folder:
        file, cache = Path(folder, Path(path).name), Path(folder, "cache")
        file.write_bytes(network)
        graph = Loader(cache, framework).load(replace(source_of(file), types=delivered))
        # What was asked stands in the cache now; where nothing was asked, what is delivered is right.
        asked = list(cache.rglob("*.json"))
        return InferredNetwork(graph, (asked[0] if asked else delivered).read_bytes())


def loaded(path: str, network: bytes, inputs: Mapping[str, Shape]) -> LayerGraph:
    """Loads a network that needs no framework to tell its types, with these shapes for its inputs."""
    with TemporaryDirectory() as folder:
        file = Path(folder, Path(path).name)
        file.write_bytes(network)
        return Loader(Path(folder, "cache"), NoFramework()).load(replace(source_of(file), inputs=inputs))
