"""What a brick meets where it stands in a model and that changes its speed.

That is the layout in which its inputs arrive, as a brick that is fed another one pays for a conversion or runs another
kernel; whether they were written past the caches; whether their values are hard to guess; whether it may write over
them; and whether its weights are still in a cache when it is their turn again, or were read just before.
"""

import re
from collections.abc import Collection, Sequence

from dlbricks_tui.bricks.coldness import Caches, caches_of, gives_way, is_heavy
from dlbricks_tui.bricks.convolutions import MARK, first_part, is_convolution
from dlbricks_tui.bricks.identity import outer_feeds
from dlbricks_tui.bricks.layouts import (
    OR,
    PLAIN,
    Layouts,
    is_computed_in_place,
    layout_of,
)
from dlbricks_tui.bricks.lifetimes import is_needed_after
from dlbricks_tui.bricks.values import varied_feeds
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Operator, Origin

NO_INPUTS = "none"
KEPT = "kept"
STREAMED = "streamed"
VARIED = "varied"
COLD = "cold"
HEAVY = "heavy"
PRIMED = "primed"
RESIDENT = "resident"
EVICTED = "evicted"
# As twins were timed before.
DISPLACED = "displaced"

# On an Intel Xeon a model that touches no more than this in one inference finds all of its weights in some cache.
_MAY_STAY_BYTES = 45_000_000

_CACHES = {HEAVY: Caches.COLD, **{caches.value: caches for caches in Caches}}

# What oneDNN writes to memory directly, in its own layouts: whoever reads it next finds none of it in a cache.
_STREAMING = "batch_norm"
_SUMS = frozenset({"add", "sum"})

_SAID_SINCE = re.compile(
    rf"{MARK}\w+|:{VARIED}|;{HEAVY}|;{PRIMED}|;{RESIDENT}|;{EVICTED}|{re.escape(OR)}[^+;]*?(?=:{STREAMED}|:{KEPT}|[+;]|$)"
)
_TWINS = re.compile(rf";({RESIDENT}|{EVICTED})$")


def context_key(
    graph: LayerGraph,
    layers: Sequence[int],
    layouts: Layouts,
    kept: Collection[Feed] | None = None,
    caches: Caches | None = None,
) -> str:
    """The classes of a sequence's data inputs in order, as in `conv`, `plain+depthwise:kept` or `conv:streamed;cold`.

    Which are kept, and whether its weights are cold, follows from the graph unless it is said. Cold ones that are more
    than a cache holds are `heavy`.
    """
    feeds = outer_feeds([graph.layers[index] for index in layers])
    varied = varied_feeds(graph, layers, layouts)
    if kept is None:
        kept = kept_feeds(graph, layers, layouts)
    classes = [
        layout_of(feed, layouts)
        + (f":{STREAMED}" if streaming_operator(graph, feed, layouts) else "")
        + (f":{VARIED}" if feed in varied else "")
        + (f":{KEPT}" if feed in kept else "")
        for feed in feeds
    ]
    inputs = "+".join(classes) or NO_INPUTS
    caches = caches or caches_of(graph, layers)
    if caches is Caches.COLD:
        return f"{inputs};{HEAVY if is_heavy(graph, layers) else COLD}"
    return inputs if caches is Caches.WARM else f"{inputs};{caches.value}"


def formers(context: str) -> tuple[str, ...]:
    """What a context was called by versions that timed it otherwise, or told fewer of them apart; the latest first.

    What is evicted or resident now was displaced: something else ran in the program that was timed. Before that classes
    did not say what a convolution reads, all that a sum may get its layout of, and which values vary. With AVX-512
    models and their bricks compute the same by either name. And no cache was swept for what is heavy, nothing was
    primed, and the twin of what is cold was warm.
    """
    displaced, is_twin = _TWINS.subn(f";{DISPLACED}", context)
    told_apart_less = _SAID_SINCE.sub("", context)
    return (displaced, told_apart_less) if is_twin else (told_apart_less,)


def word_of(context: str) -> str:
    """What a context says of the caches, in a word; nothing of what is warm."""
    return context.partition(";")[2]


def caches_in(context: str) -> Caches:
    """What the caches hold of a brick that is timed in such a context."""
    return _CACHES.get(word_of(context), Caches.WARM)


def twin_context(graph: LayerGraph, layers: Sequence[int], layouts: Layouts, context: str) -> str | None:
    """The context in which a sequence is timed beside this one, as nobody knows what the caches of the machine keep.

    What is written past the caches may be written to memory that lies in them: then writing takes longer, and reading
    less. A large cache that cores share holds all that a model touches which touches little, a small one does not: what
    is cold may lie in it. And a core's own caches hold of such a model more or less: what is warm may be evicted, and
    what is cold is, where it is not colder. A model takes what is in between. None where there is no such doubt.
    """
    caches = caches_in(context)
    if not graph.traits.times_cache_twins or caches is Caches.PRIMED:
        return None
    if caches is Caches.WARM and resident_feeds(graph, layers, layouts):
        return f"{context};{RESIDENT}"
    if graph.touched_bytes > _MAY_STAY_BYTES:
        return None
    inputs = context.rpartition(";")[0] if caches is Caches.COLD else context
    twin = f"{inputs};{EVICTED}" if gives_way(graph, layers) else inputs
    return None if twin == context else twin


def resident_feeds(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> frozenset[Feed]:
    """What a sequence reads that was written past the caches, or of which one layer itself writes something past them.

    A sequence of several layers leaves itself memory in the caches that such a layer may write over.
    """
    first, *more = layers
    alone = not more and len(graph.layers[first].operators) == 1
    streaming = alone and streaming_operator(graph, Feed(first, 0), layouts) is not None
    feeds = outer_feeds([graph.layers[index] for index in layers])
    return frozenset(feed for feed in feeds if streaming or streaming_operator(graph, feed, layouts) is not None)


def streaming_operator(graph: LayerGraph, feed: Feed, layouts: Layouts) -> Operator | None:
    """The operator that has written a tensor past the caches, if one has."""
    if feed.layer is None or layout_of(feed, layouts) == PLAIN:
        return None
    layer = graph.layers[feed.layer]
    wire = layer.results[feed.output]
    if wire.origin is not Origin.OPERATOR or wire.output:
        return None
    operator = layer.operators[wire.number]
    # One that is told by other layers how to normalise is none that could be copied by itself.
    learned = all(it.origin is Origin.WEIGHT for it in operator.inputs[1:])
    return operator if operator.op == _STREAMING and learned else None


def kept_feeds(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> frozenset[Feed]:
    """What a sequence would write over, were it not needed afterwards."""
    if not graph.traits.writes_in_place:
        return frozenset()
    found = ((feed, index) for index in layers for feed in _writable(graph.layers[index], layouts))
    return frozenset(feed for feed, index in found if is_needed_after(graph, feed, index))


def _writable(layer: Layer, layouts: Layouts) -> list[Feed]:
    """The inputs of a layer for which it makes another computation whether they may be written over."""
    found = []
    for operator in layer.operators:
        read = [layer.feeds[wire.number] for wire in operator.inputs if wire.origin is Origin.DATA]
        if _is_sum(operator):
            # A convolution that is fused with a sum reads something else first.
            found += read[1:] if is_convolution(operator) else read
        elif is_computed_in_place(first_part(operator)):
            found += [feed for feed in read if layout_of(feed, layouts) != PLAIN]
    return found


def _is_sum(operator: Operator) -> bool:
    return not _SUMS.isdisjoint(operator.parts or (operator.op,))
