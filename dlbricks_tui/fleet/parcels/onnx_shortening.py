"""ONNX models without their repeated modules."""

from dataclasses import replace

from dlbricks_tui.bricks.carriers import carrier_of
from dlbricks_tui.models.graph import Feed, LayerGraph
from dlbricks_tui.models.onnx.branches import is_if
from dlbricks_tui.models.onnx.model_file import OnnxFile, graphs_inside, reads


def shortened(file: OnnxFile, written: LayerGraph) -> OnnxFile | None:
    """Return the nodes of the carrier of a model; None if that is the whole model, or if nodes are no layers."""
    carrier = carrier_of(written)
    if carrier is None or carrier.is_whole or any(map(is_if, file.nodes)):
        return None
    if any(len(layer.operators) != 1 or len(layer.nodes) != 1 for layer in written.layers):
        return None

    def tensor(feed: Feed) -> str:
        if feed.layer is None:
            return file.inputs[feed.output].name
        layer = written.layers[feed.layer]
        names = [name for name in file.nodes[layer.nodes[0]].output if name]
        return str(names[layer.results[feed.output].output])

    def in_model(feed: Feed) -> Feed:
        return feed if feed.layer is None else Feed(carrier.origin[feed.layer], feed.output)

    # The tensors that kept layers read in the place of those of layers that are left out.
    instead: dict[str, str] = {}
    for place, index in enumerate(carrier.origin):
        feeds = zip(written.layers[index].feeds, carrier.graph.layers[place].feeds, strict=True)
        instead.update((tensor(old), tensor(in_model(new))) for old, new in feeds if old != in_model(new))
    left_out = {layer.nodes[0] for layer in written.layers if layer.index not in set(carrier.origin)}
    outputs = tuple(dict.fromkeys(tensor(in_model(head)) for head in carrier.graph.heads))
    writers = {name: number for number, node in enumerate(file.nodes) for name in node.output if name}
    needed: set[int] = set()
    waiting = [instead.get(name, name) for name in outputs]
    while waiting:
        number = writers.get(waiting.pop())
        if number is None or number in needed:
            continue
        if number in left_out:
            return None
        needed.add(number)
        waiting += [instead.get(name, name) for name in reads(file.nodes[number])]
    nodes = []
    for number in sorted(needed):
        node = file.nodes[number]
        if any(name in instead for name in reads(node)):
            if any(True for _ in graphs_inside(node)):
                return None
            for place, name in enumerate(node.input):
                node.input[place] = instead.get(name, name)
        nodes.append(node)
    return replace(file, nodes=tuple(nodes), outputs=outputs)
