"""Carriers: models without repeated modules, in which each brick still has its real surroundings.

A model is a chain of segments, cut wherever a single tensor passes from the layers before to the layers after. Where a
module of one or more segments is repeated right away, one copy stays, and the layers behind read its result. Short
models stay whole: leaving out copies would save no time.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from dlbricks_tui.bricks.identity import brick_of, carrier_keys
from dlbricks_tui.bricks.regions import repeated_runs
from dlbricks_tui.models.graph import Feed, GraphInput, LayerGraph, numbers_of, type_of


@dataclass(frozen=True)
class Carrier:
    """A network to run; `origin` has for each of its layers the index of that layer in the model."""

    graph: LayerGraph
    origin: tuple[int, ...]
    model: LayerGraph

    @property
    def is_whole(self) -> bool:
        """True if it has every layer of the model."""
        return len(self.origin) == len(self.model.layers)

    @property
    def key(self) -> str:
        """The key that results timed in this carrier state."""
        keys = carrier_keys(self.model)
        return keys.whole if self.is_whole else keys.part

    @property
    def missing_bytes(self) -> int:
        """The bytes of weights of the model that the carrier leaves out."""
        return max(0, self.model.weight_bytes - self.graph.weight_bytes)


class Segment(NamedTuple):
    """Consecutive layers that read nothing but `entry` from before; later layers read nothing but `exit` of them.

    None stands for the inputs and the outputs of the model.
    """

    layers: range
    entry: Feed | None
    exit: Feed | None


def carrier_of(graph: LayerGraph, needed: Callable[[int], bool] = lambda layer: True) -> Carrier | None:
    """Return the shortest part of a model that holds each needed layer or its equal; None if no layer is needed."""
    segments = segments_of(graph)
    # Keys that are equal for segments that can replace one another.
    forms: list[Hashable] = []
    for layers, _, passes in segments:
        leaves: Hashable = passes
        if passes is not None and passes.layer is not None:
            leaves = passes.layer - layers.start, passes.output
        forms.append((brick_of(graph, layers).key, leaves))
    wanted = {form for form, segment in zip(forms, segments, strict=True) if any(map(needed, segment.layers))}
    opening = [any(graph.layers[index].weights for index in segment.layers) for segment in segments]
    places = kept_places(forms, opening)
    kept = [segments[place] for place in places]
    holding = [number for number, place in enumerate(places) if forms[place] in wanted]
    if not holding:
        return None
    # The layer with weights before the first needed segment sets the memory layout of its input.
    first = next((number for number in range(holding[0] - 1, -1, -1) if opening[places[number]]), 0)
    return _joined(graph, kept[first : holding[-1] + 1])


def whole(graph: LayerGraph) -> Carrier:
    """Return a model as its own carrier."""
    return Carrier(graph, tuple(range(len(graph.layers))), graph)


def segments_of(graph: LayerGraph) -> list[Segment]:
    """Return the chain of segments of a model, in the order of its layers."""
    last_reader = {feed: layer.index for layer in graph.layers for feed in layer.feeds}
    # Outputs of the model are read after all layers.
    last_reader |= dict.fromkeys(graph.heads, len(graph.layers))
    alive = {feed for feed in last_reader if feed.layer is None}
    segments: list[Segment] = []
    begin, entry = 0, None
    for layer in graph.layers:
        made = (Feed(layer.index, output) for output in range(len(layer.results)))
        alive |= {feed for feed in made if feed in last_reader}
        alive -= {feed for feed in (*layer.feeds, *alive) if last_reader.get(feed, -1) <= layer.index}
        if len(alive) == 1:
            (passing,) = alive
            segments.append(Segment(range(begin, layer.index + 1), entry, passing))
            begin, entry = layer.index + 1, passing
    if begin < len(graph.layers):
        segments.append(Segment(range(begin, len(graph.layers)), entry, None))
    return segments


def kept_places(forms: Sequence[Hashable], opening: Sequence[bool]) -> list[int]:
    """Return the places of a chain that stay when the copies of a module right behind it are left out.

    A module that could begin at several places begins at an `opening` one.
    """
    left_out: set[int] = set()
    for start, period, times in repeated_runs(forms, opening):
        left_out.update(range(start + period, start + period * times))
        # A module may repeat shorter ones.
        inner = kept_places(forms[start : start + period], opening[start : start + period])
        left_out.update(set(range(start, start + period)).difference(start + place for place in inner))
    return [place for place in range(len(forms)) if place not in left_out]


def _joined(graph: LayerGraph, kept: Sequence[Segment]) -> Carrier:
    """Return the segments as one network, in which each reads the result of the one before it."""
    origin = tuple([index for segment in kept for index in segment.layers])
    numbers = {index: place for place, index in enumerate(origin)}
    inputs, sources = graph.inputs, {}
    entry = kept[0].entry
    if entry is not None and entry.layer is not None:
        inputs = (GraphInput("data", type_of(graph, entry), numbers_of(graph, entry)),)
        sources[entry] = Feed(None, 0)
    for before, segment in pairwise(kept):
        if segment.entry is not None and before.exit is not None and segment.entry != before.exit:
            sources[segment.entry] = before.exit

    def source(feed: Feed) -> Feed:
        while feed in sources:
            feed = sources[feed]
        return feed if feed.layer is None else Feed(numbers[feed.layer], feed.output)

    layers = tuple(
        [
            replace(graph.layers[index], index=place, feeds=tuple(map(source, graph.layers[index].feeds)))
            for place, index in enumerate(origin)
        ]
    )
    last = kept[-1].exit
    heads = tuple(map(source, graph.heads if last is None else (last,)))
    return Carrier(replace(graph, layers=layers, inputs=inputs, heads=heads), origin, graph)


def cover(
    graphs: Sequence[LayerGraph],
    needed: Collection[str],
    cost_ms: Callable[[LayerGraph, int], float],
    whole_up_to_ms: float = 0.0,
    counts: Callable[[LayerGraph, int], bool] = lambda graph, layer: True,
) -> list[Carrier]:
    """Return carriers with a short total latency that hold each needed brick of these models at least once.

    `cost_ms` is the expected latency of a layer, and `counts` tells which layers may stand for their bricks. Models up
    to `whole_up_to_ms` keep their repeated modules. The search is greedy: the next model is the one whose carrier
    spends the largest share of its time on bricks that no carrier holds yet.
    """
    bricks = [[brick_of(graph, (layer.index,)).key for layer in graph.layers] for graph in graphs]
    latencies = [
        {key: cost_ms(graph, index) for index, key in enumerate(keys)}
        for graph, keys in zip(graphs, bricks, strict=True)
    ]
    totals_ms = [sum(of_bricks[key] for key in keys) for of_bricks, keys in zip(latencies, bricks, strict=True)]
    is_short = [total_ms <= whole_up_to_ms for total_ms in totals_ms]
    shortened = [
        whole(graph) if short else carrier_of(graph) or whole(graph)
        for graph, short in zip(graphs, is_short, strict=True)
    ]
    costs = [
        sum(latencies[number][bricks[number][index]] for index in carrier.origin)
        for number, carrier in enumerate(shortened)
    ]
    standing = [
        {key for index, key in enumerate(keys) if counts(graph, index)}
        for graph, keys in zip(graphs, bricks, strict=True)
    ]
    missing = set(needed)
    found: list[Carrier] = []
    waiting = set(range(len(graphs)))
    while waiting:
        gains = {number: sum(latencies[number][key] for key in missing & standing[number]) for number in waiting}
        chosen = max(waiting, key=lambda number: (gains[number] / costs[number] if costs[number] else 0.0, -number))
        held = missing & standing[chosen]
        if not held:
            break
        is_held = [key in held for key in bricks[chosen]]
        carrier = shortened[chosen] if is_short[chosen] else carrier_of(graphs[chosen], is_held.__getitem__)
        if carrier is not None:
            found.append(carrier)
        missing -= held
        waiting.discard(chosen)
    return found
