"""The results of a host's store that answer a task."""

from collections.abc import Collection
from dataclasses import replace
from typing import TypeAlias

from tinydb import where

from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.records import Failure, Measurement
from dlbricks_tui.store.selections import OLDEST_FIRST

Sendable: TypeAlias = Measurement | Failure
# Letters of the message of a failure.
_LONGEST_MESSAGE = 1000


def found_in(
    store: ResultsDatabase, conditions: Conditions, bricks: Collection[str], since: str = ""
) -> list[Measurement | Failure]:
    """Return the good results of the newest run for each brick in each context, and the failures of all others.

    A run has several results of a brick that it timed inside of networks, one for each place there.
    """
    about = where("brick").one_of(list(bricks)) & conditions.query
    results = store.select(about & equal(of="brick", good=True), order=OLDEST_FIRST)
    keys = list(zip(*(results.values(column) for column in ("brick", "context")), strict=True))
    runs = results.values("run")
    newest = dict(zip(keys, runs, strict=True))
    found: list[Measurement | Failure] = []
    for place, (key, run) in enumerate(zip(keys, runs, strict=True)):
        result = results.result(place) if newest[key] == run else None
        if isinstance(result, Measurement) and result.when >= since:
            found.append(result)
    measured = {brick for brick, _ in keys}
    failures = {it.brick: it for it in store.records(Failure, about) if it.brick not in measured and it.when >= since}
    shortened = (replace(it, message=it.message[:_LONGEST_MESSAGE]) for it in failures.values())
    return [*found, *shortened]
