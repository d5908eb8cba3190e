"""Excerpts: a layer sequence with those parts of its model that affect its latency, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.bricks.contexts import context_key, feeding_layers, is_cold, kept_feeds
from dlbricks_tui.bricks.identity import Brick, brick_of, times_paid
from dlbricks_tui.bricks.layouts import Layouts, is_needed_after, output_layouts
from dlbricks_tui.bricks.programs import results_of, sequence_program
from dlbricks_tui.models.graph import Feed, GraphInput, LayerGraph, numbers_of, type_of
from dlbricks_tui.runtime.protocol import Program


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The layers in front of a sequence that give its inputs their layouts and values, then its own `held` layers.

    Tensors that the model needs after the sequence are outputs here, also inputs: the sequence may write over all other
    inputs. The weights of a `cold` sequence are in no cache when it runs in its model.
    """

    graph: LayerGraph
    held: int
    cold: bool = False

    @property
    def layers(self) -> tuple[int, ...]:
        """The indices of the layers of the sequence."""
        return tuple(range(len(self.graph.layers) - self.held, len(self.graph.layers)))

    @property
    def brick(self) -> Brick:
        """The brick that the sequence is an occurrence of."""
        return brick_of(self.graph, self.layers)

    @property
    def kept(self) -> frozenset[Feed]:
        """The inputs that the sequence must not write over, since the model needs them afterwards."""
        return kept_feeds(self.graph, self.layers, output_layouts(self.graph)).intersection(self.graph.heads)

    @property
    def context(self) -> str:
        """The context of the brick in the model."""
        return context_key(self.graph, self.layers, output_layouts(self.graph), self.kept, self.cold)

    @property
    def program(self) -> Program:
        """The sequence as a program, with the inputs that it has in the model."""
        return sequence_program(self.graph, self.layers, self.kept, self.cold)


def excerpt(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> Excerpt:
    """Return the excerpt of a sequence of layers; `layouts` are those of the whole graph."""
    behind = feeding_layers(graph, layers, layouts)
    chosen = (*behind, *layers)
    place: dict[int | None, int] = {index: number for number, index in enumerate(chosen)}
    paid = times_paid(graph, layers)
    last_readers: dict[Feed, int] = {}
    for index in chosen:
        for feed in graph.layers[index].feeds:
            last_readers[feed] = max(index, last_readers.get(feed, index))
    entering = [feed for feed in last_readers if feed.layer not in place]
    moved = {feed: Feed(None, number) for number, feed in enumerate(entering)}
    for index in chosen:
        for number in range(len(graph.layers[index].results)):
            moved[Feed(index, number)] = Feed(place[index], number)
    needed = [
        feed for feed, last in last_readers.items() if feed.layer not in layers and is_needed_after(graph, feed, last)
    ]
    # Results that no layer here reads are outputs, too.
    unread = [feed for feed in moved if feed.layer in behind and feed not in last_readers]
    heads = dict.fromkeys((*results_of(graph, layers), *unread, *needed))
    return Excerpt(
        LayerGraph(
            "",
            graph.level,
            tuple(
                replace(
                    graph.layers[index],
                    index=number,
                    name=str(number),
                    feeds=tuple([moved[feed] for feed in graph.layers[index].feeds]),
                    times=graph.layers[index].times // paid if index in layers else 1,
                    nodes=(),
                )
                for number, index in enumerate(chosen)
            ),
            tuple(
                [
                    GraphInput(f"data{number}", type_of(graph, feed), numbers_of(graph, feed))
                    for number, feed in enumerate(entering)
                ]
            ),
            tuple([moved[feed] for feed in heads]),
            graph.traits,
        ),
        len(layers),
        is_cold(graph, layers),
    )
