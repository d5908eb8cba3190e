"""The authors' times as results of ours: a layer's as a measurement of its brick, a whole model's as end to end."""

import hashlib
import json
import math
from typing import NamedTuple

from dlbricks_tui.bricks.identity import Brick
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.dlbricks_2019.checkout import Row
from dlbricks_tui.store.dlbricks_2019.models import PublishedModel
from dlbricks_tui.store.dlbricks_2019.wolfram import parse_numbers
from dlbricks_tui.store.records import ANY_CONTEXT, BrickForm, EndToEnd, Measurement, Result, Runtime
from dlbricks_tui.store.statistics import summarise

# Each layer alone, fed from a plain array, 50 times over.
PROTOCOL = "dlbricks-2019"
# The files tell neither the framework's version nor its settings.
RUNTIME = Runtime(
    id="mxnet-2019-wolfram",
    name="MXNet of 2019 as the Wolfram Language runs it",
    framework="mxnet",
    version="unknown",
    python="none",
    threads=0,
)
# They tell no dates either: this is when the authors published them.
_WHEN = "2019-10-19T00:00:00.000000+00:00"
_MICROSECONDS_PER_MS = 1000.0
# The authors have 50; the bootstrap of a list without end would take memory without end.
_MOST_SAMPLES = 1000


class UnusableRowError(Exception):
    """No result can be made of a row; the message completes "it ..."."""


class Taken(NamedTuple):
    """The result that a row becomes, and what the key of its brick stands for if it has one."""

    result: Result
    form: BrickForm | None = None


def take(row: Row, model: PublishedModel, system: str) -> Taken:
    """A row as a result; each layer is a measurement of its own, however many are the same brick."""
    if row.layer is None:
        return Taken(_end_to_end(row, model, system))
    brick = model.brick(row.layer)
    if brick is None:
        raise UnusableRowError("is no layer of it here")
    return Taken(
        _measurement(row, row.layer, model, brick, system), BrickForm(key=brick.key, canonical=brick.canonical)
    )


def _measurement(row: Row, layer: str, model: PublishedModel, brick: Brick, system: str) -> Measurement:
    samples_ms = _samples_ms(row.times)
    return Measurement(
        uuid=_uuid(system, model.name, layer, brick.key, samples_ms),
        when=_WHEN,
        brick=brick.key,
        context=ANY_CONTEXT,
        occurrence=(("model", model.name), ("layer", layer)),
        system=system,
        runtime=RUNTIME.id,
        level=Level.WRITTEN,
        protocol=PROTOCOL,
        run="",
        statistics=summarise(samples_ms),
        samples_ms=samples_ms,
    )


def _end_to_end(row: Row, model: PublishedModel, system: str) -> EndToEnd:
    samples_ms = _samples_ms(row.times)
    return EndToEnd(
        uuid=_uuid(system, model.name, None, model.key, samples_ms),
        when=_WHEN,
        model=model.key,
        name=model.name,
        system=system,
        runtime=RUNTIME.id,
        level=Level.WRITTEN,
        protocol=PROTOCOL,
        run="",
        statistics=summarise(samples_ms),
        samples_ms=samples_ms,
    )


def _samples_ms(times: str) -> tuple[float, ...]:
    try:
        microseconds = parse_numbers(times)
    except ValueError as error:
        raise UnusableRowError(f"has times that cannot be read: the list {error}") from error
    if not microseconds:
        raise UnusableRowError("has no times")
    if len(microseconds) > _MOST_SAMPLES:
        raise UnusableRowError(f"has {len(microseconds)} times, more than the {_MOST_SAMPLES} that can be taken")
    if not all(0 <= each < math.inf for each in microseconds):
        raise UnusableRowError("has a time below zero or without end")
    return tuple([each / _MICROSECONDS_PER_MS for each in microseconds])


def _uuid(*origin: object) -> str:
    # Made of what was read and not by chance, so that importing again finds it. The statistics have no part in it:
    # another machine may round them otherwise.
    return hashlib.sha256(json.dumps([PROTOCOL, *origin]).encode()).hexdigest()[:32]
