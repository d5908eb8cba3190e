"""Models of a simulated host, and their bricks as results in a store."""

import math
from collections.abc import Sequence
from typing import Any

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.estimate.prediction.features import features_of
from dlbricks_tui.estimate.prediction.nearest import Example
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import BrickForm, Record
from tests.estimate.stored import timed
from tests.store.samples import WAY, measurement, run, runtime, system

ON: dict[str, Any] = {**WAY, "level": Level.FUSED}


def moment(hour: int) -> str:
    """A time on a day, by the hour."""
    return f"2026-11-21T{hour:02}:00:00.000000+00:00"


def records_of(models: Sequence[Sequence[Example]], **fields: Any) -> list[Record]:
    """The results of models, each measured by its own run, an hour after the one before."""
    found: list[Record] = [system(), runtime()]
    for hour, model in enumerate(models):
        name = f"run {hour}"
        found.append(run(name, models=(model[0].group,), when=moment(hour), started=moment(hour), level=Level.FUSED))
        for each in model:
            found.append(BrickForm(key=each.brick, canonical=each.canonical))
            found.append(
                measurement(
                    brick=each.brick,
                    context=each.context,
                    statistics=timed(each.latency_ms),
                    run=name,
                    when=moment(hour),
                    **(ON | fields),
                )
            )
    return found


def law_ms(canonical: str, context: str) -> float:
    """The latency of any brick by one law."""
    features = features_of(canonical, context)
    assert features is not None
    arithmetic, *moved = (math.exp(size) for size in features.sizes[:4])
    return 0.01 + 1e-7 * arithmetic + 5e-7 * sum(moved)


def lawful_records(decomposition: Decomposition, hour: int = 0, **fields: Any) -> list[Record]:
    """The bricks of a model, and their results by the law, all measured by one run."""
    graph, name = decomposition.graph, f"run {hour}"
    found: list[Record] = [run(name, models=(graph.name,), when=moment(hour), started=moment(hour), **fields)]
    for it in {(it.brick.key, it.context): it for it in decomposition.occurrences}.values():
        if any(graph.layers[index].operators for index in it.sequence.layers):
            taken = timed(law_ms(it.brick.canonical, it.context))
            where: dict[str, Any] = {"brick": it.brick.key, "context": it.context, "level": graph.level}
            found.append(BrickForm(key=it.brick.key, canonical=it.brick.canonical))
            found.append(measurement(**{**where, "statistics": taken, "run": name, "when": moment(hour), **fields}))
    return found
