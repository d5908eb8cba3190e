"""Models of tables: a network with embeddings, and boosted trees behind the preparation of the columns."""

import math

from onnx import TensorProto

from sample_models.builders.onnx.graph import Graph

_NUMBERS = 13
# The sizes of the categories, and of their embeddings.
_CATEGORIES = (9, 16, 7, 15, 6, 5, 2, 42, 120, 1200)
_ML = "ai.onnx.ml"
_TREES, _DEPTH = 60, 5


def tabular_network() -> bytes:
    """Return a network of embeddings, batch norms and linear layers on categories and numbers."""
    net = Graph()
    categories = net.input("categories", "int64", "batch", len(_CATEGORIES))
    numbers = net.input("numbers", "float32", "batch", _NUMBERS)
    parts = []
    for place, rows in enumerate(_CATEGORIES):
        with net.scope(f"embeds.{place}"):
            column = net.op("Gather", categories, net.constant(place, "int64"), axis=1)
            parts.append(net.op("Gather", net.weight("weight", rows, _width(rows)), column))
    with net.scope("bn_cont"):
        parts.append(_norm(net, numbers, _NUMBERS))
    x, width = net.op("Concat", *parts, axis=1), _NUMBERS + sum(map(_width, _CATEGORIES))
    for place, units in enumerate((200, 100)):
        with net.scope(f"layers.{place}"):
            with net.scope("lin"):
                x = net.op("Relu", net.gemm(x, width, units))
            x, width = _norm(net, x, units), units
    with net.scope("layers.2"):
        x = net.gemm(x, width, 2)
    net.output(net.op("Softmax", x, axis=1), "probabilities", "float32", "batch", 2)
    return net.rendered()


def _width(rows: int) -> int:
    """Return the usual width of an embedding of so many rows."""
    return min(600, round(1.6 * math.pow(rows, 0.56)))


def _norm(net: Graph, x: str, width: int) -> str:
    learned = [net.weight(name, width) for name in ("weight", "bias", "running_mean", "running_var")]
    return net.op("BatchNormalization", x, *learned, epsilon=1e-5)


def boosted_trees() -> bytes:
    """Return boosted trees behind imputed, scaled and encoded columns, as scikit-learn's exporter writes them."""
    net = Graph()
    numbers = net.input("numbers", "float32", "rows", _NUMBERS)
    kinds = net.input("kind", "int64", "rows", 1)
    filled = net.op("Imputer", numbers, domain=_ML, imputed_value_floats=[0.5] * _NUMBERS, replaced_value_float=-1.0)
    scaled = net.op("Scaler", filled, domain=_ML, offset=[0.5] * _NUMBERS, scale=[2.0] * _NUMBERS)
    flags = net.op("OneHotEncoder", kinds, domain=_ML, cats_int64s=[*range(8)], zeros=1)
    flags = net.reshape(flags, -1, 8)
    columns = net.op("Concat", scaled, flags, axis=1)
    labels, scores = net.ops("TreeEnsembleClassifier", 2, columns, domain=_ML, **_trees(_NUMBERS + 8))
    net.output(net.op("Cast", labels, to=TensorProto.INT64), "label", "int64", "rows")
    net.output(scores, "probabilities", "float32", "rows", 2)
    return net.rendered()


def _trees(columns: int) -> dict[str, object]:
    """Return full binary trees of one depth. A sine spreads their thresholds and leaves, the same at every call."""
    inner, nodes = 2**_DEPTH - 1, 2 ** (_DEPTH + 1) - 1
    places = [(tree, node) for tree in range(_TREES) for node in range(nodes)]
    leaves = [(tree, node) for tree, node in places if node >= inner]
    spread = [round(math.sin(tree * nodes + node), 3) for tree, node in places]
    return {
        "nodes_treeids": [tree for tree, _ in places],
        "nodes_nodeids": [node for _, node in places],
        "nodes_featureids": [(7 * tree + 3 * node) % columns if node < inner else 0 for tree, node in places],
        "nodes_modes": ["BRANCH_LEQ" if node < inner else "LEAF" for _, node in places],
        "nodes_values": [value if node < inner else 0.0 for (_, node), value in zip(places, spread, strict=True)],
        "nodes_truenodeids": [2 * node + 1 if node < inner else 0 for _, node in places],
        "nodes_falsenodeids": [2 * node + 2 if node < inner else 0 for _, node in places],
        "class_treeids": [tree for tree, _ in leaves],
        "class_nodeids": [node for _, node in leaves],
        "class_ids": [0 for _ in leaves],
        "class_weights": [0.1 * spread[tree * nodes + node] for tree, node in leaves],
        "classlabels_int64s": [0, 1],
        "post_transform": "LOGISTIC",
    }
