"""A decomposition's bricks as measurements in a store."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.bricks.identity import Brick, whole_model
from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import BrickForm, EndToEnd, Record, Statistics
from tests.estimate.knowledge_of import latency_of
from tests.store.samples import end_to_end, measurement


def timed(value_ms: float, doubt: float = 0.01) -> Statistics:
    """Statistics around a latency."""
    return Statistics(
        trimmed_mean_ms=value_ms,
        median_ms=value_ms,
        minimum_ms=value_ms * (1 - 2 * doubt),
        spread_ms=value_ms * doubt,
        low_ms=value_ms * (1 - doubt),
        high_ms=value_ms * (1 + doubt),
        count=25,
    )


def brick_records(
    decomposition: Decomposition,
    without: Collection[Pair] = (),
    taken_ms: Callable[[Brick, str], float] = lambda brick, context: latency_of((brick.key, context)).value_ms,
    **fields: Any,
) -> list[Record]:
    """Every brick measured once in each of its contexts, with its form."""
    graph = decomposition.graph
    found: dict[Pair, Record] = {}
    forms: dict[str, Record] = {}
    for it in decomposition.occurrences:
        pair = (it.brick.key, it.context)
        if pair not in without and any(graph.layers[index].operators for index in it.sequence.layers):
            forms[it.brick.key] = BrickForm(key=it.brick.key, canonical=it.brick.canonical)
            where: dict[str, Any] = {"brick": it.brick.key, "context": it.context, "level": graph.level}
            found[pair] = measurement(**{**where, "statistics": timed(taken_ms(it.brick, it.context)), **fields})
    return [*forms.values(), *found.values()]


def model_record(decomposition: Decomposition, value_ms: float, **fields: Any) -> EndToEnd:
    """The whole model measured."""
    graph = decomposition.graph
    what: dict[str, Any] = {
        "model": whole_model(graph).key,
        "name": graph.name,
        "level": graph.level,
        "statistics": timed(value_ms),
    }
    return end_to_end(**{**what, **fields})


def store_of(folder: Path, *records: Record) -> ResultsDatabase:
    """A store that holds these records."""
    store = ResultsDatabase(folder)
    store.add(*records)
    return store
