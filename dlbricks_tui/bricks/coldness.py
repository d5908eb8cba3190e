"""Whether a sequence finds its weights in a cache when it is their turn again, or something else lies there by then."""

from collections.abc import Hashable, Mapping, Sequence, Set
from enum import Enum

from dlbricks_tui.bricks.identity import times_paid
from dlbricks_tui.models.graph import LayerGraph, bytes_read, bytes_touched

MEBIBYTE = 1 << 20
# What a core's own cache holds, and what is left for weights of the cache that cores share, with other guests of the
# machine too. Machines differ in both, but keys must not: a store holds results of many.
NEAR_BYTES, FAR_BYTES = MEBIBYTE, 6 * MEBIBYTE
# Of less than this it makes no difference who has read it last.
_FEW_BYTES = MEBIBYTE // 16


class Caches(str, Enum):
    """What of a brick is in the caches when it is timed, but for its inputs.

    All that they hold if it has just run, or, as in the middle of a run, if a layer like it has; that, and what is
    written past them, too; nothing in those that a core has for itself; or nothing in any.
    """

    WARM = "warm"
    PRIMED = "primed"
    RESIDENT = "resident"
    EVICTED = "evicted"
    COLD = "cold"


def is_cold(graph: LayerGraph, layers: Sequence[int]) -> bool:
    """Whether a sequence reads weights from memory that it would find in a cache if it ran again and again.

    That is so where those of the whole model do not fit into a cache, unless hardly any are read but its own, which
    then are where they would be if it ran again and again. What a layer shortly before has read is never cold.
    """
    if graph.weight_bytes <= FAR_BYTES:
        return False
    own_bytes = _own_bytes(graph, layers)
    return own_bytes >= NEAR_BYTES and (own_bytes <= FAR_BYTES or graph.weight_bytes - own_bytes > NEAR_BYTES)


def is_primed(graph: LayerGraph, layers: Sequence[int]) -> bool:
    """Whether a layer shortly before has read most of the weights of a sequence, as a step of a recurrent network has.

    Only where all that the sequence touches fits into a cache.
    """
    if not graph.traits.finds_primed_weights or not graph.shared_arrays:
        return False
    reading = [graph.layers[index] for index in layers]
    if bytes_touched(reading) > FAR_BYTES:
        return False
    read_bytes = sum(bytes_read(reading, times_paid(graph, layers)).values())
    return read_bytes > max(_FEW_BYTES, 2 * _own_bytes(graph, layers))


def caches_of(graph: LayerGraph, layers: Sequence[int]) -> Caches:
    """What the caches hold of a sequence as far as its model shows."""
    if is_cold(graph, layers):
        return Caches.COLD
    return Caches.PRIMED if is_primed(graph, layers) else Caches.WARM


def is_heavy(graph: LayerGraph, layers: Sequence[int]) -> bool:
    """Whether the weights of a sequence are more than a cache holds."""
    return _own_bytes(graph, layers) > FAR_BYTES


def gives_way(graph: LayerGraph, layers: Sequence[int]) -> bool:
    """Whether others touch as much as a sequence does until it runs again: one that is most of a model stays."""
    computing = [graph.layers[index] for index in layers if graph.layers[index].operators]
    return 0 < 2 * bytes_touched(computing) <= graph.touched_bytes


def _own_bytes(graph: LayerGraph, layers: Sequence[int]) -> int:
    """What a sequence reads of weights each time, but for those that others have just read."""
    read = bytes_read([graph.layers[index] for index in layers], times_paid(graph, layers))
    shared = {array: size for array, size in read.items() if array in graph.shared_arrays}
    return sum(read.values()) - sum(shared[array] for array in _read_lately(graph, min(layers), shared))


def _read_lately(graph: LayerGraph, first: int, wanted: Mapping[Hashable, int]) -> Set[Hashable]:
    """Which of the wanted arrays were read, and as much of them, since when no more was read than a cache holds.

    One inference follows another: before the first layer come the last ones.
    """
    found: set[Hashable] = set()
    read: dict[Hashable, int] = {}
    read_bytes = 0
    for distance in range(1, len(graph.layers)):
        if len(found) == len(wanted):
            break
        for array, size in bytes_read([graph.layers[first - distance]]).items():
            read_bytes += max(0, size - read.get(array, 0))
            read[array] = max(size, read.get(array, 0))
            if read_bytes > FAR_BYTES:
                return found
            if array in wanted and size >= wanted[array]:
                found.add(array)
    return found
