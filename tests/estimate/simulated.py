"""Bricks of a simulated host, whose latencies follow known laws."""

import hashlib
import json
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.estimate.knowledge import Unmeasured
from dlbricks_tui.estimate.nearest import Example
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import BrickForm, Record
from tests.estimate.stored import brick_records, timed
from tests.store.samples import WAY, measurement, run, runtime, system

# Milliseconds for a call, a multiplication and a byte, by operator.
LAWS = {"conv": (0.01, 1e-7, 5e-7), "relu": (0.002, 0.0, 4e-7), "linear": (0.005, 2e-7, 1e-6)}
CHANNELS = (16, 32, 48, 64, 96, 128, 192, 256)
SIZES = (7, 14, 28, 56)


def form(op: str, shape: Sequence[int] | None, weights: Sequence[Sequence[int]] = (), **params: Any) -> str:
    """The canonical form of a brick with one data input."""
    inputs = [["data", 0, 0], *(["weight", number, 0] for number in range(len(weights)))]
    operator = {"op": op, "inputs": inputs} | ({"params": params} if params else {})
    document = {
        "data": [[shape, "float32"]],
        "level": "fused",
        "operators": [operator],
        "version": 1,
        "weights": [[weight, "float32"] for weight in weights],
    }
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def conv(read: int, written: int, size: int, kernel: int = 3) -> str:
    weight = [written, read, kernel, kernel]
    pads = [kernel // 2] * 4
    return form("conv", [1, read, size, size], [weight], kernel=[kernel, kernel], pads=pads)


def relu(channels: int, size: int) -> str:
    return form("relu", [1, channels, size, size])


def linear(read: int, written: int) -> str:
    return form("linear", [1, read], [[written, read]])


def a_brick(chance: random.Random) -> Unmeasured:
    op = chance.choice(("conv", "conv", "relu", "linear"))
    read, written, size = chance.choice(CHANNELS), chance.choice(CHANNELS), chance.choice(SIZES)
    if op == "conv":
        return Unmeasured(conv(read, written, size, chance.choice((1, 3))), "plain")
    return Unmeasured(relu(read, size) if op == "relu" else linear(8 * read, 8 * written), "plain")


def latency_ms(brick: Unmeasured, chance: random.Random | None = None, noise: float = 0.05) -> float:
    """The latency by the law of the operator: kernels of few channels are less efficient."""
    features = features_of(*brick)
    assert features is not None
    arithmetic, *moved = (math.exp(size) for size in features.sizes[:4])
    call, step, byte = LAWS[features.operator]
    inefficiency = 1.0 + 8.0 / math.exp(features.sizes[6])
    exact = (call + step * arithmetic + byte * sum(moved)) * inefficiency
    return exact * (math.exp(chance.gauss(0.0, noise)) if chance else 1.0)


def example(brick: Unmeasured, value_ms: float, group: str = "", since: int = 0) -> Example:
    key = hashlib.sha256(brick.canonical.encode()).hexdigest()
    return Example(key, brick.context, brick.canonical, value_ms, group, since)


def models(seed: int, count: int, bricks: int = 20, noise: float = 0.05, host: float = 0.0) -> Iterator[list[Example]]:
    """Yield the measured bricks of so many models; `host` is how far the host's speed varies between models."""
    chance = random.Random(seed)
    for number in range(count):
        speed = math.exp(chance.gauss(0.0, host))
        held = {a_brick(chance): None for _ in range(bricks)}
        yield [example(brick, speed * latency_ms(brick, chance, noise), f"model {number}") for brick in held]


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
    name, when = f"run {hour}", moment(hour)
    results = brick_records(
        decomposition,
        taken_ms=lambda brick, context: law_ms(brick.canonical, context),
        **{"run": name, "when": when, **fields},
    )
    return [run(name, models=(decomposition.graph.name,), when=when, started=when, **fields), *results]
