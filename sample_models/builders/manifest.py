"""The list of the sample models: what each is called, where it is, and what it is made of."""

import ast
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sample_models.builders.architecture import Architecture

# One model as the manifest shows it; a model of Table 1 has a `table1_id`.
Entry = Mapping[str, Any]


def describe(architecture: Architecture, path: str, network: bytes) -> Iterator[Entry]:
    """The rows of Table 1 that a built network stands for."""
    nodes = json.loads(network)["nodes"]
    kinds = _layers_by_kind(nodes)
    inputs = _input_shapes(nodes, architecture.inputs)
    for row in architecture.rows:
        yield {
            "table1_id": str(row.id),
            "name": row.name,
            "task": row.task,
            "file": path,
            "inputs": inputs,
            "classes": architecture.classes,
            "layers": sum(kinds.values()),
            "kinds": kinds,
        }


def render(entries: Iterable[Entry]) -> bytes:
    """The manifest, one line per fact."""
    blocks = (
        ",\n".join(f"      {json.dumps(key)}: {json.dumps(value)}" for key, value in entry.items())
        for entry in sorted(entries, key=lambda entry: int(entry["table1_id"]))
    )
    models = ",\n".join(f"    {{\n{block}\n    }}" for block in blocks)
    return f'{{\n  "models": [\n{models}\n  ]\n}}\n'.encode()


def _layers_by_kind(nodes: list[dict[str, Any]]) -> dict[str, int]:
    attributes = [node["attrs"] for node in nodes if "__layer__" in node.get("attrs", {})]
    kind_of_layer = {attrs["__layer__"]: attrs["__kind__"] for attrs in attributes}
    return dict(sorted(Counter(kind_of_layer.values()).items()))


def _input_shapes(nodes: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, list[int]]:
    shapes = {node["name"]: node["attrs"]["__shape__"] for node in nodes if node["name"] in names}
    return {name: list(ast.literal_eval(shapes[name])) for name in names}
