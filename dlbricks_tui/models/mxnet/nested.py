"""What the graphs compute that an operator carries inside: loops, and what the runtime has fused."""

from dataclasses import dataclass

from dlbricks_tui.models.graph import UNKNOWN_TYPE
from dlbricks_tui.models.mxnet.neutral import neutral_operator
from dlbricks_tui.models.mxnet.symbol_file import SymbolFile
from dlbricks_tui.models.neutral import InnerForms, Site


@dataclass(frozen=True, slots=True)
class NestedGraph:
    """A canonical form without names, and the neutral names of the operators."""

    canonical: str
    ops: tuple[str, ...]


def nested_graph(file: SymbolFile, forms: InnerForms) -> NestedGraph:
    """What a nested graph computes; its types follow from those of the operator around it, and the file has none."""
    form: list[object] = []
    ops: list[str] = []
    for node in file.nodes:
        if node.is_variable:
            form.append("variable")
            continue
        neutral = neutral_operator(node.op, node.params, Site((UNKNOWN_TYPE,) * len(node.inputs), ()))
        inner = [nested_graph(subgraph.file, forms) for subgraph in node.subgraphs]
        form.append([neutral.op, neutral.params, node.inputs, [graph.canonical for graph in inner]])
        ops += [op for graph in inner for op in graph.ops] or [neutral.op]
    form.append(file.heads)
    return NestedGraph(forms.spell(form), tuple(ops))
