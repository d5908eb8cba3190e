"""The graphs that an operator carries inside: loops, and what the runtime has fused."""

import json
from dataclasses import dataclass
from functools import lru_cache

from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.mxnet_file import parse_symbol
from dlbricks_tui.models.neutral import Site, neutral_operator


@dataclass(frozen=True, slots=True)
class NestedGraph:
    """What a nested graph computes (canonical, without names), and its operators by their neutral names."""

    canonical: str
    ops: tuple[str, ...]


@lru_cache(maxsize=1 << 12)
def nested_graph(text: str) -> NestedGraph:
    """Reads the nested symbol file that a node carries; raises what a broken file or parameter raises."""
    file = parse_symbol(text.encode(), "a nested graph")
    form: list[object] = []
    ops: list[str] = []
    for node in file.nodes:
        if node.is_variable:
            form.append("variable")
            continue
        site = Site([TensorType(None)] * len(node.inputs), ())
        plain = {key: value for key, value in node.attributes.items() if not key.startswith("__")}
        neutral = neutral_operator(node.op, plain, site)
        inner = [nested_graph(deeper) for deeper in node.subgraphs]
        form.append([neutral.op, neutral.params, node.inputs, [found.canonical for found in inner]])
        ops.extend([op for found in inner for op in found.ops] or [neutral.op])
    form.append(file.heads)
    return NestedGraph(json.dumps(form, separators=(",", ":")), tuple(ops))
