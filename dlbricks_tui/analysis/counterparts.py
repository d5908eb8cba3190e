"""The layers that several files of one model have in common: their counterparts have the same name, kind and shapes."""

from collections.abc import Mapping, Sequence

from dlbricks_tui.models.graph import Layer, LayerGraph

# For each layer of a file the numbers of the common layers that it is compared with.
Numbers = tuple[tuple[int, ...], ...]


def common_layers(graphs: Sequence[LayerGraph]) -> tuple[Numbers, ...]:
    """Return for each layer of each file the numbers of the common layers that it is compared with.

    A layer without counterparts is compared together with all layers that read it, or else with those that it reads.
    Without any common layer there is one number: the files are compared as a whole.
    """
    named = [graph.layers_by_name for graph in graphs]
    first, *others = named
    names = [name for name, layer in first.items() if all(_are_same(layer, other.get(name)) for other in others)]
    numbers = {name: number for number, name in enumerate(names)}
    return tuple([_numbered(graph, numbers) for graph in graphs])


def have_common_layers(one: LayerGraph, other: LayerGraph) -> bool:
    """Return whether any layer of one file has a counterpart in the other one."""
    known = other.layers_by_name
    return any(_are_same(layer, known.get(name)) for name, layer in one.layers_by_name.items())


def _are_same(one: Layer, other: Layer | None) -> bool:
    return other is not None and one.kind is other.kind and _shapes(one) == _shapes(other)


def _shapes(layer: Layer) -> list[object]:
    return [it.shape for it in layer.outputs]


def _numbered(graph: LayerGraph, numbers: Mapping[str, int]) -> Numbers:
    found: list[tuple[int, ...]] = [(numbers[layer.name],) if layer.name in numbers else () for layer in graph.layers]
    lacking = [index for index, own in enumerate(found) if not own]
    for neighbours, order in ((graph.successors, reversed(lacking)), (graph.predecessors, iter(lacking))):
        for index in order:
            if not found[index]:
                found[index] = tuple(sorted({number for it in neighbours[index] for number in found[it]}))
    return tuple([own or (0,) for own in found])
