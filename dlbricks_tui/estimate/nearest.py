"""Predictions of the latencies of bricks from measured bricks of the same operators.

A roofline tells how long a brick takes at the usual efficiency of its operator: a call, its arithmetic and its bytes,
at the rates that fit the measured bricks best. The nearest measured bricks tell how many times as long bricks of such a
shape take. A brick like none of them may be as fast as any other operator. docs/log/predictions.md compares this with
other ways to predict.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.estimate.features import DEPTHWISE, Features, Sizes, features_of, multiplies
from dlbricks_tui.estimate.knowledge import Latency, Pair, Unmeasured
from dlbricks_tui.models.kinds import kind_of

Numbers = NDArray[np.float64]

# An operator with fewer measured bricks is not known, and fewer operators tell nothing about others.
FEWEST = 5
# A brick is unlike the measured ones if all are farther: the distance of 2 is seven times as many channels.
FARTHEST = 6.0
# It is unlike them, too, if its interval reaches this many times the prediction and is above this latency.
_VAGUEST, _NEGLIGIBLE_MS = 20.0, 0.1
# An interval that reaches this many times the prediction tells nothing.
_OF_NO_USE = 1e6
_NEAREST = 4
# Added to each distance: the weight of a near brick is the inverse square of the sum.
_ALIKE = 0.1
# Shorter latencies measure the clock rather than the brick.
LEAST_MS = 3e-4
# The logarithm of the error of a prediction: the least of an operator, and per distance.
LEAST_ERROR, _ERROR_PER_DISTANCE = 0.04, 0.08
# The sizes that are the shape of a brick; those before are its work.
_SHAPE = slice(Sizes._fields.index("positions"), None)


class Roofline(NamedTuple):
    """The rates of an operator at its usual efficiency, in milliseconds."""

    call: float
    step: float
    byte: float


@dataclass(frozen=True, slots=True, eq=False)
class OperatorBricks:
    """The measured bricks of an operator."""

    roofline: Roofline
    # The logarithms of the shape of each brick, and its traits, each one or zero.
    shapes: Numbers
    traits: Numbers
    # The logarithm of each latency over that by the roofline.
    excess: Numbers
    # The logarithm of the usual error, and half of the interval over the expected error.
    usual_error: float = LEAST_ERROR
    width: float = 1.0


class Nearest(NamedTuple):
    """The excess of bricks by their nearest ones."""

    excess: Numbers
    # The variance among the nearest bricks, their mean distance, and the distance of the nearest one.
    spread: Numbers
    apart: Numbers
    distance: Numbers

    def error(self, usual: float) -> Numbers:
        """Return the error that is expected of the excess, given the usual one of the operator."""
        return np.asarray(np.sqrt(usual**2 + self.spread + (_ERROR_PER_DISTANCE * self.apart) ** 2))


@dataclass(frozen=True, eq=False)
class NearestBricks:
    """The measured bricks of one way of measuring, from which others are predicted."""

    operators: Mapping[str, OperatorBricks]
    # The traits of all measured bricks, in the order of the columns.
    vocabulary: tuple[str, ...]
    # The share of the half intervals that all predictions of a model have in common.
    shared: float

    @cached_property
    def _columns(self) -> Mapping[str, int]:
        return {trait: column for column, trait in enumerate(self.vocabulary)}

    def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        """Predict each brick from similar ones of its operator, else from all operators; None if neither works.

        Of two vague predictions the one with the narrower interval counts.
        """
        return first_known(bricks, self.from_alike, self._vaguely)

    def _vaguely(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        both = zip(self.from_all(bricks), self.from_alike(bricks, _OF_NO_USE), strict=True)
        return [
            min(by_all, by_alike, key=lambda it: it.high_ms / it.low_ms) if by_all and by_alike else by_all
            for by_all, by_alike in both
        ]

    def from_alike(self, bricks: Sequence[Unmeasured], vaguest: float = _VAGUEST) -> list[Latency | None]:
        """Return the latency of each brick; None if too few of its operator, or none of such a shape, were measured.

        Nor if its interval reaches more than `vaguest` times the prediction.
        """
        found: list[Latency | None] = [None] * len(bricks)
        asked: defaultdict[str, list[tuple[int, Features]]] = defaultdict(list)
        for place, brick in enumerate(bricks):
            features = features_of(brick.canonical, brick.context)
            if features is not None and features.operator in self.operators:
                asked[features.operator].append((place, features))
        for operator, held in asked.items():
            latencies = self._predict(self.operators[operator], [features for _, features in held], vaguest)
            for (place, _), latency in zip(held, latencies, strict=True):
                found[place] = latency
        return found

    def from_all(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        """Predict each brick with the rooflines of all operators that multiply, or of all that do not, like its own.

        The latency is the median over these operators, and the interval spans them all: when a known operator is left
        out, its latencies mostly lie inside.
        """
        found: list[Latency | None] = [None] * len(bricks)
        held = [(place, features_of(brick.canonical, brick.context)) for place, brick in enumerate(bricks)]
        for multiplying, rooflines in enumerate(self._rooflines):
            asked = [(place, features) for place, features in held if features and features.multiplies == multiplying]
            if asked and rooflines:
                rates = np.array(rooflines).T
                latencies_ms = np.maximum(LEAST_MS, work_of([features for _, features in asked]) @ rates)
                for (place, _), each in zip(asked, latencies_ms, strict=True):
                    found[place] = Latency(float(np.median(each)), float(each.min()), float(each.max()))
        return found

    @cached_property
    def _rooflines(self) -> tuple[Sequence[Roofline], Sequence[Roofline]]:
        """The rooflines of operators that do not multiply by weights or matrices, and of those that do; else of all."""
        every = [each.roofline for each in self.operators.values()]
        parts: tuple[list[Roofline], list[Roofline]] = ([], [])
        for name, each in self.operators.items():
            parts[multiplies(kind_of(name.removeprefix(DEPTHWISE)))].append(each.roofline)
        few = [] if len(every) < FEWEST else every
        others, multiplying = (part if len(part) >= FEWEST else few for part in parts)
        return others, multiplying

    def _predict(self, measured: OperatorBricks, wanted: Sequence[Features], vaguest: float) -> list[Latency | None]:
        distances = distances_of(shapes_of(wanted), traits_of(wanted, self._columns), measured)
        # A trait that no measured brick has is a difference from each of them.
        distances += np.array([[sum(trait not in self._columns for trait in each.traits)] for each in wanted])
        near = nearest(distances, measured.excess)
        values_ms = by_roofline_ms(measured.roofline, wanted) * np.exp(near.excess)
        factors = np.exp(measured.width * near.error(measured.usual_error))
        telling = (factors <= vaguest) | (values_ms * factors <= _NEGLIGIBLE_MS)
        known = (near.distance <= FARTHEST) & telling
        return [
            Latency(value_ms, value_ms / factor, value_ms * factor) if is_known else None
            for value_ms, factor, is_known in zip(values_ms.tolist(), factors.tolist(), known.tolist(), strict=True)
        ]


def first_known(
    bricks: Sequence[Unmeasured], *ways: Callable[[Sequence[Unmeasured]], list[Latency | None]]
) -> list[Latency | None]:
    """Return the latency of each brick by the first way to predict that knows it."""
    found: list[Latency | None] = [None] * len(bricks)
    for way in ways:
        left = [place for place, latency in enumerate(found) if latency is None]
        for place, latency in zip(left, way([bricks[place] for place in left]) if left else (), strict=True):
            found[place] = latency
    return found


def shapes_of(bricks: Sequence[Features]) -> Numbers:
    """Return the logarithms of the shapes, a row per brick."""
    return np.array([each.sizes[_SHAPE] for each in bricks])


def traits_of(bricks: Sequence[Features], columns: Mapping[str, int]) -> Numbers:
    """Return the traits as ones and zeros, a row per brick; traits without a column are left out."""
    found = np.zeros((len(bricks), len(columns)))
    for row, brick in enumerate(bricks):
        found[row, [columns[trait] for trait in brick.traits if trait in columns]] = 1.0
    return found


def distances_of(shapes: Numbers, traits: Numbers, measured: OperatorBricks) -> Numbers:
    """Return the distance of each brick, in rows, to each measured one, by shape and traits."""
    different: Numbers = traits.sum(axis=1)[:, None] + measured.traits.sum(axis=1) - 2.0 * traits @ measured.traits.T
    apart = np.empty_like(different)
    for axis in range(shapes.shape[1]):
        # Into one array: a new one for each step takes longer than the arithmetic.
        np.subtract.outer(shapes[:, axis], measured.shapes[:, axis], out=apart)
        different += np.abs(apart, out=apart)
    return different


def nearest(distances: Numbers, excess: Numbers) -> Nearest:
    """Return what the nearest measured bricks tell, given the distance to each of them and its excess.

    Bricks at an infinite distance do not count; at least one must be near.
    """
    count = min(_NEAREST, len(excess))
    places = _places_of_least(distances, count)
    apart = np.take_along_axis(distances, places, axis=1)
    weights = 1.0 / (apart + _ALIKE) ** 2
    weights /= weights.sum(axis=1, keepdims=True)
    held = excess[places]
    mean = (weights * held).sum(axis=1)
    spread = (weights * (held - mean[:, None]) ** 2).sum(axis=1)
    usual = (weights * np.where(np.isfinite(apart), apart, 0.0)).sum(axis=1)
    return Nearest(mean, spread, usual, apart.min(axis=1))


def _places_of_least(numbers: Numbers, count: int) -> NDArray[np.intp]:
    """Return the places of the least numbers of each row; of equal ones the first count.

    Versions of NumPy differ in which of equal numbers a partition or an unstable sort puts first.
    """
    limit = np.partition(numbers, count - 1, axis=1)[:, count - 1 : count]
    below, equal = numbers < limit, numbers == limit
    room = count - below.sum(axis=1, keepdims=True)
    chosen = below | (equal & (equal.cumsum(axis=1) <= room))
    places: NDArray[np.intp] = np.nonzero(chosen)[1].reshape(len(numbers), count)
    return places


def by_roofline_ms(roofline: Roofline, bricks: Sequence[Features]) -> Numbers:
    """Return the latencies at the usual efficiency."""
    return np.asarray(work_of(bricks) @ np.array(roofline))


def work_of(bricks: Sequence[Features]) -> Numbers:
    """Return the calls, the arithmetic steps and the bytes, a row per brick."""
    arithmetic, *moved = np.exp(np.array([each.sizes[: _SHAPE.start] for each in bricks])).T
    return np.stack([np.ones(len(bricks)), arithmetic, np.sum(moved, axis=0)], axis=1)


CONFIDENCE = 0.95
# Larger operators are reduced to their newest bricks.
_MOST_OF_AN_OPERATOR = 1500
# An operator with this many left-out bricks has an interval width of its own; the others use that of all operators.
_ENOUGH_BRICKS = 20
# Fitting the share that errors in a model have in common takes this many left-out models, with this many bricks each.
_ENOUGH_MODELS, _ENOUGH_OF_A_MODEL = 10, 3
# Width and share until there are enough: measured on the committed hosts (`python -m benchmarks.predictions`).
_USUAL_WIDTH, _USUAL_SHARED = 4.0, 0.5


class Example(NamedTuple):
    """A measured brick in a context."""

    brick: str
    context: str
    canonical: str
    latency_ms: float
    # The model that it was measured for, or the run.
    group: str
    # The begin of the run that measured it first, in microseconds since 1970.
    since: int = 0

    @property
    def pair(self) -> Pair:
        """The keys of the brick and of its context."""
        return self.brick, self.context


class _LeftOut(NamedTuple):
    """A brick predicted without those of its group."""

    operator: str
    group: str
    latency_ms: float
    predicted_ms: float
    # The logarithm of the error that is expected.
    error: float


def train(
    examples: Iterable[Example], confidence: float = CONFIDENCE, widths_of: NearestBricks | None = None
) -> NearestBricks:
    """Return a predictor whose intervals hold with this confidence; the examples are sorted, oldest first.

    With `widths_of`, the intervals are as wide as those of another predictor; this takes a tenth of the time.
    """
    held = _by_operator(examples)
    vocabulary = tuple(
        sorted({trait for bricks in held.values() for _, features in bricks for trait in features.traits})
    )
    columns = {trait: column for column, trait in enumerate(vocabulary)}
    operators = {name: _fitted(bricks, columns) for name, bricks in held.items()}
    if widths_of is not None:
        others = widths_of.operators
        operators = {
            name: replace(each, usual_error=others[name].usual_error, width=others[name].width)
            for name, each in operators.items()
        }
        return NearestBricks(operators, vocabulary, widths_of.shared)
    left_out: list[_LeftOut] = []
    for name, bricks in held.items():
        operators[name], found = _left_out(name, bricks, operators[name])
        left_out += found
    widths = _widths(left_out, confidence)
    usual = widths.get("", _USUAL_WIDTH)
    operators = {name: replace(each, width=widths.get(name, usual)) for name, each in operators.items()}
    return NearestBricks(operators, vocabulary, _shared(left_out, operators, confidence))


def _by_operator(examples: Iterable[Example]) -> Mapping[str, Sequence[tuple[Example, Features]]]:
    """Return the newest examples of each operator that has enough, with their features."""
    found: defaultdict[str, list[tuple[Example, Features]]] = defaultdict(list)
    for example in examples:
        features = features_of(example.canonical, example.context)
        if features is not None:
            found[features.operator].append((example, features))
    return {name: held[-_MOST_OF_AN_OPERATOR:] for name, held in found.items() if len(held) >= FEWEST}


def _fitted(held: Sequence[tuple[Example, Features]], columns: Mapping[str, int]) -> OperatorBricks:
    bricks = [features for _, features in held]
    latencies_ms = np.maximum(LEAST_MS, [example.latency_ms for example, _ in held])
    roofline = _roofline(work_of(bricks), latencies_ms)
    excess = np.log(latencies_ms) - np.log(by_roofline_ms(roofline, bricks))
    return OperatorBricks(roofline, shapes_of(bricks), traits_of(bricks, columns), excess)


def _roofline(work: Numbers, latencies_ms: Numbers) -> Roofline:
    """Return the rates with the least sum of absolute relative errors, none of which is below zero.

    Least squares of relative errors give the rates, for each choice of those that are not zero.
    """
    relative = work / latencies_ms[:, None]
    scale = relative.max(axis=0)
    best, rates = math.inf, np.zeros(3)
    for size in (1, 2, 3):
        for chosen in map(list, combinations(range(3), size)):
            found = np.linalg.lstsq(relative[:, chosen] / scale[chosen], np.ones(len(work)), rcond=None)[0]
            wrong = float(np.abs(relative[:, chosen] / scale[chosen] @ found - 1.0).sum())
            if (found >= 0.0).all() and found.any() and wrong < best:
                best, rates = wrong, np.zeros(3)
                rates[chosen] = found / scale[chosen]
    return Roofline(*rates.tolist())


def _left_out(
    operator: str, held: Sequence[tuple[Example, Features]], measured: OperatorBricks
) -> tuple[OperatorBricks, list[_LeftOut]]:
    """Predict each brick of an operator from those of other groups; return the bricks with their usual error, too."""
    groups = np.unique([example.group for example, _ in held], return_inverse=True)[1]
    distances = distances_of(measured.shapes, measured.traits, measured)
    distances[groups[:, None] == groups] = np.inf
    places = np.flatnonzero((np.isfinite(distances).sum(axis=1) >= FEWEST) & (distances.min(axis=1) <= FARTHEST))
    if not len(places):
        return measured, []
    near = nearest(distances[places], measured.excess)
    wrong = np.abs(near.excess - measured.excess[places])
    usual = replace(measured, usual_error=max(LEAST_ERROR, float(np.median(wrong))))
    errors = near.error(usual.usual_error)
    found = []
    for place, excess, error in zip(places.tolist(), near.excess.tolist(), errors.tolist(), strict=True):
        example = held[place][0]
        latency_ms = max(LEAST_MS, example.latency_ms)
        predicted_ms = latency_ms * math.exp(excess - measured.excess[place])
        found.append(_LeftOut(operator, example.group, latency_ms, predicted_ms, error))
    return usual, found


def _widths(left_out: Sequence[_LeftOut], confidence: float) -> dict[str, float]:
    """Return the width of the intervals of each operator, and under "" that of all; none if too few were left out."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for each in left_out:
        score = abs(math.log(each.latency_ms / each.predicted_ms)) / each.error
        scores[each.operator].append(score)
        scores[""].append(score)
    return {
        operator: conformal_quantile(found, confidence)
        for operator, found in scores.items()
        if len(found) >= _ENOUGH_BRICKS
    }


def _shared(left_out: Sequence[_LeftOut], operators: Mapping[str, OperatorBricks], confidence: float) -> float:
    """Return the share that half intervals have in common, so that the intervals of left-out models hold."""
    groups: defaultdict[str, list[_LeftOut]] = defaultdict(list)
    for each in left_out:
        groups[each.group].append(each)
    needed = [_needed(held, operators) for held in groups.values() if len(held) >= _ENOUGH_OF_A_MODEL]
    return conformal_quantile(needed, confidence) if len(needed) >= _ENOUGH_MODELS else _USUAL_SHARED


def _needed(held: Sequence[_LeftOut], operators: Mapping[str, OperatorBricks]) -> float:
    """Return the least share with which the interval of a model's sum holds its latency, at most 1."""
    beyond_ms = math.fsum(each.latency_ms - each.predicted_ms for each in held)
    sign = 1.0 if beyond_ms > 0 else -1.0
    halves_ms = [
        abs(math.expm1(sign * operators[each.operator].width * each.error)) * each.predicted_ms for each in held
    ]
    linear, independent = math.fsum(halves_ms) ** 2, math.fsum(half**2 for half in halves_ms)
    missing = beyond_ms**2 - independent
    return 0.0 if missing <= 0.0 else min(1.0, math.sqrt(missing / max(linear - independent, missing)))


def conformal_quantile(scores: Sequence[float], confidence: float) -> float:
    """Return the score that a new one exceeds with a probability of at most 1 - confidence."""
    place = min(len(scores), math.ceil((len(scores) + 1) * confidence))
    return sorted(scores)[place - 1]
