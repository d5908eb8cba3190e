"""The ways to predict the latency of a brick that `benchmarks.predictions` compares.

roofline    call, arithmetic and bytes at the usual efficiency of the operator
neighbours  mean of the four nearest bricks of the operator in log arithmetic and log bytes
trees       gradient-boosted trees for what the roofline leaves; skipped without scikit-learn
nearest     what dlbricks does: the roofline times the excess of the nearest bricks
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dlbricks_tui.estimate.features import Features, features_of
from dlbricks_tui.estimate.knowledge import Latency, Predictor, Unmeasured
from dlbricks_tui.estimate.nearest import (
    FEWEST,
    Example,
    NearestBricks,
    OperatorBricks,
    by_roofline_ms,
    train,
)

NEAR = 4
# The floor of the latencies whose logarithms and ratios are compared.
NO_LATENCY_MS = 3e-4


@dataclass(frozen=True)
class ByOperator:
    """A predictor that fits something to the bricks of each operator; it has no intervals."""

    fits: Mapping[str, Callable[[Sequence[Features]], Iterable[float]]]
    shared: float = 1.0

    def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        """Return the latency of each brick."""
        found: list[Latency | None] = [None] * len(bricks)
        asked: defaultdict[str, list[int]] = defaultdict(list)
        features = [features_of(*brick) for brick in bricks]
        for place, each in enumerate(features):
            if each is not None and each.operator in self.fits:
                asked[each.operator].append(place)
        for operator, places in asked.items():
            wanted = [each for place in places if (each := features[place]) is not None]
            for place, value_ms in zip(places, self.fits[operator](wanted), strict=True):
                found[place] = Latency(value_ms, value_ms, value_ms)
        return found


def by_operator(examples: Sequence[Example]) -> Mapping[str, tuple[list[Features], Any]]:
    """Return the features and the logarithms of the latencies of the operators with enough bricks."""
    held: defaultdict[str, tuple[list[Features], list[float]]] = defaultdict(lambda: ([], []))
    for each in examples:
        features = features_of(each.canonical, each.context)
        if features is not None:
            held[features.operator][0].append(features)
            held[features.operator][1].append(math.log(max(NO_LATENCY_MS, each.latency_ms)))
    return {name: (bricks, np.array(logs)) for name, (bricks, logs) in held.items() if len(bricks) >= FEWEST}


def rooflines(examples: Sequence[Example], confidence: float) -> ByOperator:
    """Train the roofline alone."""

    def predict(measured: OperatorBricks, bricks: Sequence[Features]) -> Iterable[float]:
        usual = math.exp(np.median(measured.excess))
        return [usual * value_ms for value_ms in by_roofline_ms(measured.roofline, bricks).tolist()]

    operators = train(examples, confidence).operators
    return ByOperator({name: partial(predict, each) for name, each in operators.items()})


def neighbours(examples: Sequence[Example], confidence: float) -> ByOperator:
    """Train the mean of the nearest bricks in log arithmetic and log bytes."""

    def work(bricks: Sequence[Features]) -> Any:
        sizes = np.array([each.sizes for each in bricks])
        return np.stack([sizes[:, 0], np.log(np.exp(sizes[:, 1:4]).sum(axis=1))], axis=1)

    def fitted(known: list[Features], logs: Any) -> Callable[[Sequence[Features]], Iterable[float]]:
        places = work(known)

        def predict(bricks: Sequence[Features]) -> Iterable[float]:
            apart = np.linalg.norm(work(bricks)[:, None] - places, axis=2)
            near = np.argsort(apart, axis=1)[:, :NEAR]
            return map(math.exp, logs[near].mean(axis=1).tolist())

        return predict

    return ByOperator({name: fitted(*held) for name, held in by_operator(examples).items()})


def trees(examples: Sequence[Example], confidence: float) -> ByOperator:
    """Train boosted trees on what the roofline leaves, for all operators together."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    held = by_operator(examples)
    operators = train(examples, confidence).operators
    traits = sorted({trait for bricks, _ in held.values() for each in bricks for trait in each.traits} | set(held))
    columns = {trait: column for column, trait in enumerate(traits)}

    def table(name: str, bricks: Sequence[Features]) -> Any:
        flags = np.zeros((len(bricks), len(columns)))
        flags[:, columns[name]] = 1
        for row, each in enumerate(bricks):
            flags[row, [columns[trait] for trait in each.traits if trait in columns]] = 1
        return np.hstack([np.array([each.sizes for each in bricks]), flags])

    def base(name: str, bricks: Sequence[Features]) -> Any:
        return np.log(by_roofline_ms(operators[name].roofline, bricks))

    found = HistGradientBoostingRegressor(loss="absolute_error", max_iter=100, learning_rate=0.1, min_samples_leaf=4)
    found.fit(
        np.vstack([table(name, bricks) for name, (bricks, _) in held.items()]),
        np.concatenate([logs - base(name, bricks) for name, (bricks, logs) in held.items()]),
    )

    def predict(name: str, bricks: Sequence[Features]) -> Iterable[float]:
        return map(math.exp, (base(name, bricks) + found.predict(table(name, bricks))).tolist())

    return ByOperator({name: partial(predict, name) for name in held})


def nearest(examples: Sequence[Example], confidence: float) -> NearestBricks:
    """Train what dlbricks predicts with."""
    return train(examples, confidence)


TREES, OURS = "trees", "nearest"
PREDICTORS: Mapping[str, Callable[..., Predictor]] = {
    "roofline": rooflines,
    "neighbours": neighbours,
    TREES: trees,
    OURS: nearest,
}
