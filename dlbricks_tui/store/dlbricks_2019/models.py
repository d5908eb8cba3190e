"""Match the names in the authors' files to models and layers."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dlbricks_tui.bricks.identity import Brick, brick_of, whole_model
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.library import ModelSource

# Models whose name in the files differs from the paper, with their number in Table 1.
_OTHER_NAMES = {
    "ResNet-101 Trained on YFCC100m Geotagged Data": "12",
    "Unguided Volumetric Regression Net for 3D Face Reconstruction": "47",
}
_QUOTES = str.maketrans("", "", "\"'`\u2018\u2019\u201c\u201d")


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A model of Table 1: its name here, its key, and its bricks by the names of the layers."""

    name: str
    key: str
    bricks: Mapping[str, Brick]

    def brick(self, layer: str) -> Brick | None:
        """Return the brick of a layer, None if the model has no such layer."""
        return self.bricks.get(_layer_key(layer))


class PublishedModels:
    """The models of Table 1 by the authors' names; each is loaded on first use."""

    def __init__(self, sources: Iterable[ModelSource], load: Callable[[ModelSource], LayerGraph]) -> None:
        of_table1 = {source.table1_id: source for source in sources if source.table1_id is not None}
        self._sources = {_model_key(source.name): source for source in of_table1.values()}
        self._sources |= {
            _model_key(name): of_table1[number] for name, number in _OTHER_NAMES.items() if number in of_table1
        }
        self._load = load
        self._known: dict[str, ImportedModel] = {}

    def find(self, name: str) -> ImportedModel | None:
        """Return the model of that name, None if it is not in Table 1."""
        source = self._sources.get(_model_key(name))
        if source is None:
            return None
        if source.name not in self._known:
            self._known[source.name] = _published(source.name, self._load(source))
        return self._known[source.name]


def _published(name: str, graph: LayerGraph) -> ImportedModel:
    bricks = {_layer_key(layer.name): brick_of(graph, [layer.index]) for layer in graph.layers}
    return ImportedModel(name, whole_model(graph).key, bricks)


def _model_key(name: str) -> str:
    # The files are inconsistent in spaces, hyphens and quotes, and no two models differ only in these.
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


def _layer_key(name: str) -> str:
    # Some layers differ only in punctuation or capitals: 1/2 is not 12.
    return "".join(name.translate(_QUOTES).split())
