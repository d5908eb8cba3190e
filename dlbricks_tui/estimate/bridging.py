"""Predictions of a brick's latency from similar measured bricks: the same operators and the nearest shapes.

The constants were fitted on single layers that the paper's authors measured on one machine, with half of all bricks
left out of the fit. The median error of these was a tenth, and 96 % of them lay within their interval.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from dlbricks_tui.bricks.identity import operators_inside
from dlbricks_tui.estimate.knowledge import Latency, Similar

# Latency grows with this power of the work: a little less than in proportion, since every call takes time.
_GROWTH = 0.9
# The natural logarithm of the factor of uncertainty: of a brick of equal features, and per unit of distance.
_DOUBT_OF_AN_EQUAL, _DOUBT_PER_DISTANCE, _MOST_DOUBT = 0.2, 0.7, 4.0
# The same of a brick whose operators differ.
_DOUBT_OF_A_STRANGER = 2.0


class Features(NamedTuple):
    """The features of a brick that determine its latency; sizes are logarithms."""

    ops: tuple[str, ...]
    params: tuple[frozenset[tuple[str, str]], ...]
    data: float
    weights: float
    work: float


class _Example(NamedTuple):
    features: Features
    latency: Latency


class Bridge:
    """Measured bricks, from which the latencies of others are predicted."""

    def __init__(self, measured: Iterable[Similar]) -> None:
        self._by_ops: defaultdict[tuple[str, ...], list[_Example]] = defaultdict(list)
        self._slowest_ms = 0.0
        # A model needs the prediction of a brick as often as it uses the brick.
        self._guesses: dict[str, Latency | None] = {}
        for canonical, latency in measured:
            self._slowest_ms = max(self._slowest_ms, latency.high_ms)
            features = features_of(canonical)
            if features is not None:
                self._by_ops[features.ops].append(_Example(features, latency))

    def predict(self, canonical: str, layers: Sequence[str] = ()) -> Latency | None:
        """Return a latency with a wide interval; None if no brick with the same operators was measured.

        A sequence may also be predicted by the sum of its layers, if each of these can be.
        """
        if canonical not in self._guesses:
            self._guesses[canonical] = self._guess(canonical, layers)
        return self._guesses[canonical]

    def most_ms(self, canonical: str, layers: Sequence[str] = ()) -> float:
        """Return an upper bound of the latency of a brick, also if it is unlike all measured ones."""
        predicted = self.predict(canonical, layers)
        if predicted is not None:
            return predicted.high_ms
        if len(layers) > 1:
            return math.fsum(map(self.most_ms, layers))
        features = features_of(canonical)
        everything = [example for examples in self._by_ops.values() for example in examples]
        if features is None or not everything:
            return self._slowest_ms
        nearest = min(everything, key=lambda example: _distance(features, example.features))
        return nearest.latency.high_ms * _growth(features, nearest.features) * math.exp(_DOUBT_OF_A_STRANGER)

    def _guess(self, canonical: str, layers: Sequence[str]) -> Latency | None:
        features = features_of(canonical)
        if features is not None and features.ops in self._by_ops:
            return _scaled(features, self._by_ops[features.ops])
        alone = [self.predict(layer) for layer in layers] if len(layers) > 1 else []
        known = [latency for latency in alone if latency is not None]
        if not known or len(known) < len(alone):
            return None
        return Latency(*map(math.fsum, zip(*known, strict=True)))


@lru_cache(maxsize=1 << 14)
def features_of(canonical: str) -> Features | None:
    """Return the features of a canonical form; None if shapes are not known."""
    form = json.loads(canonical)
    operators, data, weights = form["operators"], _shapes(form["data"]), _shapes(form["weights"])
    if not operators or data is None or weights is None:
        return None
    parts = list(_parts(operators))
    return Features(
        tuple(op for op, _ in parts),
        tuple(_spelled(params) for _, params in parts),
        math.log(_elements(data)),
        math.log(_elements(weights)),
        math.log(_work(parts[0][1], data, weights)),
    )


def _parts(operators: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield operators with their parameters; a fused operator yields those inside of it."""
    for operator in operators:
        fused = [part for graph in operator.get("inner", ()) for part in operators_inside(graph)]
        yield from fused or [(operator["op"], operator.get("params", {}))]


def _scaled(features: Features, examples: Sequence[_Example]) -> Latency:
    nearest = min(examples, key=lambda example: _distance(features, example.features))
    scale, distance = _growth(features, nearest.features), _distance(features, nearest.features)
    doubt = math.exp(min(_MOST_DOUBT, _DOUBT_OF_AN_EQUAL + _DOUBT_PER_DISTANCE * distance))
    value, low, high = nearest.latency
    return Latency(value * scale, low * scale / doubt, high * scale * doubt)


def _growth(features: Features, measured: Features) -> float:
    return math.exp(_GROWTH * (features.work - measured.work))


def _distance(one: Features, other: Features) -> float:
    different = sum(len(mine ^ yours) for mine, yours in zip(one.params, other.params, strict=False)) / 2
    sizes = abs(one.data - other.data) + abs(one.weights - other.weights) / 2 + abs(one.work - other.work)
    return sizes + different


def _shapes(types: Sequence[Any]) -> list[tuple[int, ...]] | None:
    shapes = [shape for shape, _ in types]
    return None if None in shapes else [tuple(shape) for shape in shapes]


def _spelled(params: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset((name, json.dumps(value)) for name, value in params.items())


def _elements(shapes: Iterable[tuple[int, ...]]) -> int:
    return max(1, sum(math.prod(shape) for shape in shapes))


def _work(params: Mapping[str, Any], data: Sequence[tuple[int, ...]], weights: Sequence[tuple[int, ...]]) -> float:
    """Return the multiplications of a sequence with a matrix or kernel of weights, else the elements that it reads."""
    matrix = max((shape for shape in weights if len(shape) > 1), key=math.prod, default=None)
    if matrix is None or not data or not data[0]:
        return _elements(data)
    if len(matrix) == 2 or len(data[0]) < 3:
        return math.prod(matrix) * data[0][0]
    steps = params.get("stride") or (1,)
    positions = math.prod(data[0]) / data[0][1] / math.prod(steps)
    return max(1.0, positions * math.prod(matrix))
