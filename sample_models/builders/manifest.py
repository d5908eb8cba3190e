"""The list of the sample models: what each is called, where it is, and what it is made of."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.kinds import Kind
from sample_models.builders import gluon
from sample_models.builders.architecture import Architecture
from sample_models.builders.delivered_types import onnx_path, types_path
from sample_models.builders.onnx.samples import OnnxSample

# One model as the manifest shows it; a model of Table 1 has a `table1_id`.
Entry = Mapping[str, Any]


def describe(architecture: Architecture, path: str, graph: LayerGraph) -> Iterator[Entry]:
    """The rows of Table 1 that a built network stands for."""
    facts = _facts(path, graph, architecture.classes)
    for row in architecture.rows:
        yield {"table1_id": str(row.id), "name": row.name, "task": row.task, **facts}


def describe_exported(path: str, graph: LayerGraph) -> Entry:
    """A network of the Gluon model zoo, which is called what its file is called."""
    return {"name": graph.name, "task": gluon.TASK, **_facts(path, graph, gluon.CLASSES)}


def describe_onnx(sample: OnnxSample, graph: LayerGraph) -> Entry:
    """An ONNX sample, whose file says the types of all tensors once its inputs have shapes."""
    values = {"values": sample.values} if sample.values else {}
    return {"name": sample.name, "task": sample.task, "file": sample.path, **values, **_counted(graph, sample.classes)}


def render(entries: Iterable[Entry]) -> bytes:
    """The manifest, one line per fact; Table 1 comes first."""
    blocks = (
        ",\n".join(f"      {json.dumps(key)}: {json.dumps(value)}" for key, value in entry.items())
        for entry in sorted(entries, key=lambda entry: float(entry.get("table1_id", "inf")))
    )
    models = ",\n".join(f"    {{\n{block}\n    }}" for block in blocks)
    return f'{{\n  "models": [\n{models}\n  ]\n}}\n'.encode()


def _facts(path: str, graph: LayerGraph, classes: int | None) -> Entry:
    return {"file": path, "types": types_path(path), "onnx": _twin(path, graph), **_counted(graph, classes)}


def _twin(path: str, graph: LayerGraph) -> Entry:
    """Return the facts of the network as ONNX, where stored arrays are weights and not layers."""
    constants = [layer.index for layer in graph.layers if layer.kind is Kind.CONSTANT]
    unique = len({brick_of(graph, [index]) for index in constants})
    return {
        "file": onnx_path(path),
        "layers": len(graph.layers) - len(constants),
        "unique_layers": len(decompose(graph).bricks) - unique,
    }


def _counted(graph: LayerGraph, classes: int | None) -> Entry:
    return {
        "inputs": {it.name: it.type.shape for it in graph.inputs},
        "classes": classes,
        "layers": len(graph.layers),
        "unique_layers": len(decompose(graph).bricks),
        "kinds": dict(sorted(Counter(layer.kind.value for layer in graph.layers).items())),
    }
