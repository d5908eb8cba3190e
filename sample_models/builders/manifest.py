"""The list of the sample models: what each is called, where it is, and what it is made of."""

import ast
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dlbricks_tui.models.kinds import kind_of
from dlbricks_tui.models.neutral import Site, neutral_operator
from sample_models.builders import gluon
from sample_models.builders.architecture import Architecture

# One model as the manifest shows it; a model of Table 1 has a `table1_id`.
Entry = Mapping[str, Any]

# What kind an operator is of does not depend on the shapes that it meets.
ANYWHERE = Site((), ())


def describe(architecture: Architecture, path: str, network: bytes) -> Iterator[Entry]:
    """The rows of Table 1 that a built network stands for."""
    facts = _facts(path, network, architecture.inputs, architecture.classes)
    for row in architecture.rows:
        yield {"table1_id": str(row.id), "name": row.name, "task": row.task, **facts}


def describe_exported(name: str, network: bytes) -> Entry:
    """A network of the Gluon model zoo."""
    return {"name": name, "task": gluon.TASK, **_facts(gluon.path_of(name), network, ("data",), gluon.CLASSES)}


def render(entries: Iterable[Entry]) -> bytes:
    """The manifest, one line per fact; Table 1 comes first."""
    blocks = (
        ",\n".join(f"      {json.dumps(key)}: {json.dumps(value)}" for key, value in entry.items())
        for entry in sorted(entries, key=lambda entry: float(entry.get("table1_id", "inf")))
    )
    models = ",\n".join(f"    {{\n{block}\n    }}" for block in blocks)
    return f'{{\n  "models": [\n{models}\n  ]\n}}\n'.encode()


def _facts(path: str, network: bytes, inputs: tuple[str, ...], classes: int | None) -> Entry:
    nodes = json.loads(network)["nodes"]
    kinds = _layers_by_kind(nodes)
    return {
        "file": path,
        "inputs": _input_shapes(nodes, inputs),
        "classes": classes,
        "layers": sum(kinds.values()),
        "kinds": kinds,
    }


def _layers_by_kind(nodes: list[dict[str, Any]]) -> dict[str, int]:
    kind_of_layer: dict[str, str] = {}
    for node in nodes:
        attributes = node.get("attrs", {})
        if "__layer__" in attributes:
            kind_of_layer[attributes["__layer__"]] = attributes["__kind__"]
        elif node["op"] != "null":
            kind_of_layer[node["name"]] = kind_of(neutral_operator(node["op"], attributes, ANYWHERE).op).value
    return dict(sorted(Counter(kind_of_layer.values()).items()))


def _input_shapes(nodes: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, list[int]]:
    shapes = {node["name"]: node["attrs"]["__shape__"] for node in nodes if node["name"] in names}
    return {name: list(ast.literal_eval(shapes[name])) for name in names}
