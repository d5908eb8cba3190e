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
from tests.store.samples import end_to_end, measurement, runtime, system


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


def usual_ms(brick: Brick, context: str) -> float:
    """The latency of a brick unless a test says another one."""
    return latency_of((brick.key, context)).value_ms


def brick_records(
    decomposition: Decomposition,
    without: Collection[Pair] = (),
    taken_ms: Callable[[Brick, str], float] = usual_ms,
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


def results_of(
    decomposition: Decomposition, by: str, measured_ms: float | None = None, factor: float = 1.0, **fields: Any
) -> list[Record]:
    """All bricks of a model by a runtime, and the whole model if it was timed."""
    where: dict[str, Any] = {"system": "c5.xlarge", "batch_size": decomposition.graph.batch_size, **fields}
    records: list[Record] = [system(where["system"]), runtime(by, framework=by.partition("-")[0])]
    records += brick_records(decomposition, taken_ms=lambda *pair: factor * usual_ms(*pair), runtime=by, **where)
    if measured_ms is not None:
        samples_ms = tuple(measured_ms * (0.99 + number / 1000) for number in range(21))
        records.append(model_record(decomposition, measured_ms, samples_ms=samples_ms, runtime=by, **where))
    return records


def store_of(folder: Path, *records: Record) -> ResultsDatabase:
    """A store that holds these records."""
    store = ResultsDatabase(folder)
    store.add(*records)
    return store
