"""Predictors from measured bricks, with intervals that hold for bricks and models that were left out (conformal)."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.prediction.features import Features, features_of
from dlbricks_tui.estimate.prediction.nearest import (
    FARTHEST,
    FEWEST,
    LEAST_ERROR,
    LEAST_MS,
    NearestBricks,
    Numbers,
    OperatorBricks,
    Roofline,
    by_roofline_ms,
    distances_of,
    nearest,
    shapes_of,
    traits_of,
    work_of,
)

CONFIDENCE = 0.95
# Larger operators are reduced to their newest bricks.
_MOST_OF_AN_OPERATOR = 1500
# So many left-out bricks tell the width of the intervals of their operator; otherwise those of all operators do.
_ENOUGH_BRICKS = 20
# So many left-out models, of so many bricks each, tell how far the errors of a model add up.
_ENOUGH_MODELS, _ENOUGH_OF_A_MODEL = 10, 3
# Without them: measured on the committed hosts (`python -m benchmarks.predictions`).
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
        """Its keys."""
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
        operator: _quantile(found, confidence) for operator, found in scores.items() if len(found) >= _ENOUGH_BRICKS
    }


def _shared(left_out: Sequence[_LeftOut], operators: Mapping[str, OperatorBricks], confidence: float) -> float:
    """Return the share that half intervals have in common, so that the intervals of left-out models hold."""
    groups: defaultdict[str, list[_LeftOut]] = defaultdict(list)
    for each in left_out:
        groups[each.group].append(each)
    needed = [_needed(held, operators) for held in groups.values() if len(held) >= _ENOUGH_OF_A_MODEL]
    return _quantile(needed, confidence) if len(needed) >= _ENOUGH_MODELS else _USUAL_SHARED


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


def _quantile(scores: Sequence[float], confidence: float) -> float:
    """Return the score that a new one exceeds with a probability of at most 1 - confidence."""
    place = min(len(scores), math.ceil((len(scores) + 1) * confidence))
    return sorted(scores)[place - 1]
