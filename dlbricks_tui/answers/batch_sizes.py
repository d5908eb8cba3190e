"""The batch sizes at which the bricks of a model were measured, found without reading the model at each size."""

import json
from collections.abc import Sequence

from tinydb import where

from dlbricks_tui.bricks.identity import brick_in
from dlbricks_tui.estimate.parts import Part
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal

# So many of the longest bricks are looked up at each size.
_LOOKED_UP = 16


def measured_batch_sizes(store: ResultsDatabase, way: Way, parts: Sequence[Part], batch_size: int) -> tuple[int, ...]:
    """Return the other batch sizes at which most of the longest bricks of a model have results of the same way.

    Bricks that state the batch size in their parameters are not found at another one.
    """
    of_way = equal(of="brick", good=True, system=way.system, runtime=way.runtime, level=way.level.value)
    sizes = {int(size) for size in set(store.select(of_way, order=()).numbers("batch_size").tolist())} - {batch_size}
    longest = sorted({it.brick: it.paid_ps for it in parts}.items(), key=lambda it: -it[1])
    sought = [brick.canonical for brick, _ in longest[:_LOOKED_UP]]
    keys = {size: {key_at(canonical, batch_size, size) for canonical in sought} for size in sorted(sizes)}
    wanted = [key for found in keys.values() for key in found]
    measured = store.select(where("brick").one_of(wanted) & of_way, order=()).distinct("brick") if wanted else set()
    return tuple([size for size, found in keys.items() if 2 * len(found & measured) > len(sought)])


def key_at(canonical: str, batch_size: int, wanted: int) -> str:
    """Return the key of a brick at another batch size, which is the first length of its inputs."""
    form = json.loads(canonical)
    for shape, _ in form["data"]:
        if shape and shape[0] == batch_size:
            shape[0] = wanted
    return brick_in(form).key
