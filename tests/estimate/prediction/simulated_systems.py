"""Systems that follow a known law, and probes of them."""

import json
import math
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.prediction.choice import Limit, Trial, most_informative
from dlbricks_tui.estimate.prediction.transfer import Deviations, KnownBrick, deviations, known_brick

OPS = ("conv", "relu", "max_pool", "batch_norm", "concat", "softmax")


class Simulated(NamedTuple):
    """Systems whose latencies follow a law: a factor per system, one per system and kind, and noise."""

    bricks: Sequence[KnownBrick]
    # The latencies on the new system.
    truth_ms: dict[Pair, float]


def canonical(op: str, size: int) -> str:
    weights = [[[64, 64, 3, 3], "float32"]] if op == "conv" else []
    operators = [{"op": op, "inputs": [["data", 0, 0]]}]
    return json.dumps({"operators": operators, "data": [[[1, 64, size, size], "float32"]], "weights": weights})


@cache
def simulated(seed: int, systems: int = 3, noise: float = 0.05, of_a_kind: float = 0.3) -> Simulated:
    """Forty sizes of each operator on some known systems, and on a new one."""
    random = Random(seed)
    factors = [math.exp(random.gauss(0.0, 0.4)) for _ in range(systems + 1)]
    kinds = {op: [math.exp(random.gauss(0.0, of_a_kind)) for _ in range(systems + 1)] for op in OPS}
    bricks, truth_ms = [], {}
    for op in OPS:
        for size in range(8, 168, 4):
            base_ms = (10.0 if op == "conv" else 1.0) * (size / 64) ** 2
            taken_ms = [
                base_ms * factor * of_kind * math.exp(random.gauss(0.0, noise))
                for factor, of_kind in zip(factors, kinds[op], strict=True)
            ]
            pair = (f"{op} {size}", "")
            known = {f"system {number}": taken_ms[number] for number in range(systems)}
            bricks.append(known_brick(pair, canonical(op, size), known))
            truth_ms[pair] = taken_ms[-1]
    return Simulated(bricks, truth_ms)


def probed(found: Simulated, count: int = 20) -> tuple[Deviations, set[Pair]]:
    """The deviations once the most informative bricks of a model of all bricks are measured, and these bricks."""
    before = deviations(found.bricks)
    model = dict.fromkeys(before.pairs, 1.0)
    trials = [Trial((pair,), 0.1) for pair in before.pairs]
    chosen = most_informative(before, [model], trials, Limit(count, math.inf))
    pairs = {pair for trial in chosen for pair in trial.pairs}
    return before.given({pair: found.truth_ms[pair] for pair in pairs}), pairs
