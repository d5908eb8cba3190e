"""Calibration constants: corrections of the bricks' latencies, fitted on other networks, and the errors that remain.

Systems that were never calibrated have constants from other systems. docs/log/constants.md says how those of MXNet were
fitted to stored samples, and has the figures of each host.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from statistics import median

from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.runtime.traits import MXNET, ONNX_RUNTIME, Traits

# Two standard deviations, for 95 % of a normal distribution.
_SIGMAS = 1.96

# A method has an error in proportion to the model, and one per sequence: models of many short sequences have larger
# errors. Both parts are equal at one of these densities, in sequences per millisecond; the residuals tell at which.
_DENSE = (4.0, 8.0, 16.0, 32.0)
# A residual counts as at most this many times the median: one odd network must not widen all intervals.
_ODD = 5.0

# A brick shorter than this counts only in proportion to its latency.
_NEXT_TO_NOTHING_MS = 0.04
# A brick of this latency pays all of a constant, a shorter one only in proportion to its latency. docs/log/constants.md
# compares other rules.
_PAYS_ALL_MS = 0.3
# A brick of this latency pays all of what a node costs, a shorter one only in proportion to its latency.
_PAYS_ALL_OF_A_NODE_MS = 0.001


def _share_by_latency(brick_ms: float) -> float:
    return min(1.0, brick_ms / _PAYS_ALL_MS)


# The time of a runtime call that computes almost nothing: a model pays it once.
CALL_MS = "call_ms"
# The batch size of the networks, beside their constants. Calibrations without it were made with single images.
BATCH_SIZE = "batch_size"
# The share of each fitted constant that a brick pays, by its latency and whether it was timed cold.
TERMS: Mapping[str, Callable[[float, bool], float]] = {
    # Data and code that other layers replace in the near caches between two runs of a layer.
    "warm_brick_ms": lambda brick_ms, cold: 0.0 if cold else _share_by_latency(brick_ms),
    # The time of a node beside its computation. Often negative: a brick by itself also writes outputs.
    "node_ms": lambda brick_ms, cold: min(1.0, brick_ms / _PAYS_ALL_OF_A_NODE_MS),
    # Often negative: sweeping the caches removes more than the other layers of a model do.
    "cold_brick_ms": lambda brick_ms, cold: _share_by_latency(brick_ms) if cold else 0.0,
}
# The data that other layers replace grow with the batch; weights, nodes and calls stay as they are.
_DEPENDING_ON_BATCH = ("warm_brick_ms",)
# Networks with nearly the same terms, by the condition of their matrix, do not determine the constants.
_ALIKE = 1e6
# For each network there is a fit without it, which needs at least two others.
_FEWEST_EXAMPLES = 3


def is_applicable(names: Iterable[str]) -> bool:
    """True if this version knows how to apply all of these constants."""
    return all(name in TERMS for name in found_by_fit(names))


def found_by_fit(names: Iterable[str]) -> tuple[str, ...]:
    """Return the constants that a fit finds: the time of a call is measured, and the batch size is given."""
    return tuple([name for name in names if name not in (CALL_MS, BATCH_SIZE)])


def density_of(paid: Iterable[tuple[int, float]]) -> float:
    """Return the number of sequences per millisecond, given how often each runs and its latency.

    Very short sequences count in part, because their error is at most their latency.
    """
    count = latency_ms = 0.0
    for times, sequence_ms in paid:
        count += times * min(1.0, sequence_ms / _NEXT_TO_NOTHING_MS)
        latency_ms += times * sequence_ms
    return count / latency_ms if latency_ms else 0.0


@dataclass(frozen=True, slots=True)
class Correction:
    """Constants, and the relative errors (residuals) and densities of networks that were left out of the fit.

    A prior has the constants of other systems.
    """

    constants: tuple[tuple[str, float], ...] = ()
    residuals: tuple[float, ...] = ()
    densities: tuple[float, ...] = ()
    is_prior: bool = False
    # True if the networks had another batch size than the model.
    of_other_batch: bool = False

    @property
    def call_ms(self) -> float:
        """The time of one call of the runtime, which a model pays once."""
        return dict(self.constants).get(CALL_MS, 0.0)

    def added_ms(self, brick_ms: float, *, cold: bool) -> float:
        """Return what a brick takes inside of its model beyond what it takes alone."""
        return sum(constant * TERMS[name](brick_ms, cold) for name, constant in self.constants if name != CALL_MS)

    def unsure_ms(self, brick_ms: float, *, cold: bool) -> float:
        """Return how much of `added_ms` depends on the batch size, if the networks had another one."""
        if not self.of_other_batch:
            return 0.0
        known = [(name, constant) for name, constant in self.constants if name in _DEPENDING_ON_BATCH]
        return sum(abs(constant) * TERMS[name](brick_ms, cold) for name, constant in known)

    def relative_doubt(self, density: float) -> float:
        """Return half of the 95 % interval of the method, as a share of the estimate of a model of a density."""
        if not self.residuals:
            return 0.0
        if not self.densities:
            return _SIGMAS * _usual(self.residuals)
        dense = min(_DENSE, key=self._unlikelihood)
        return _SIGMAS * _usual(self._alike(dense)) * _weight(density, dense)

    def _alike(self, dense: float) -> Sequence[float]:
        """Return the residuals as they would be at density zero."""
        return [error / _weight(each, dense) for error, each in zip(self.residuals, self.densities, strict=True)]

    def _unlikelihood(self, dense: float) -> float:
        """Return the negative log likelihood of the residuals if both parts of the error are equal at this density."""
        mean = sum(map(abs, self._alike(dense))) / len(self.residuals)
        weights = sum(math.log(_weight(each, dense)) for each in self.densities)
        return round(len(self.residuals) * math.log(mean) + weights, 6) if mean else 0.0


UNCALIBRATED = Correction()
# The ids of results of isolated bricks begin with this. Other methods need no constants.
_ISOLATED = "alone-"
# By these constants the committed networks are wrong by 7.5 % (root mean square).
_RESIDUALS = (0.075,)
_PRIORS: Mapping[str, Correction] = {
    MXNET.framework: Correction(
        (("call_ms", 0.08), ("warm_brick_ms", 0.016), ("cold_brick_ms", -0.036)), _RESIDUALS, is_prior=True
    ),
    ONNX_RUNTIME.framework: Correction((("warm_brick_ms", 0.020), ("node_ms", -0.0002)), _RESIDUALS, is_prior=True),
}


def prior_of(traits: Traits, protocol: str, batch_size: int = 1) -> Correction:
    """Return the prior for results of a method by a framework; nothing is corrected where there is none."""
    if not protocol.startswith(_ISOLATED):
        return UNCALIBRATED
    # They were found with single images.
    return replace(_PRIORS.get(traits.framework, UNCALIBRATED), of_other_batch=batch_size != 1)


def _weight(density: float, dense: float) -> float:
    """Return the error at a density over that at density zero."""
    return math.hypot(1.0, density / dense)


def _usual(errors: Sequence[float]) -> float:
    """Return the root mean square, with outliers limited."""
    most = _ODD * median(map(abs, errors)) or math.inf
    return math.sqrt(sum(min(abs(error), most) ** 2 for error in errors) / len(errors))


@dataclass(frozen=True, slots=True)
class Example:
    """A network with known latency: the uncorrected sum of its bricks, and its end-to-end latency, with one call."""

    name: str
    # For each constant, the sum of its shares over all sequences.
    terms: tuple[float, ...]
    composed_ms: float
    measured_ms: float
    density: float = 0.0
    call_ms: float = 0.0

    def error(self, constants_ms: Sequence[float]) -> float:
        added_ms = sum(constant * term for constant, term in zip(constants_ms, self.terms, strict=True))
        return (self.composed_ms + added_ms + self.call_ms) / self.measured_ms - 1.0


def fitted(examples: Sequence[Example], names: Sequence[str]) -> Correction:
    """Return the constants of these names that fit best, and the residual of each example when it is left out."""
    if len(examples) < _FEWEST_EXAMPLES:
        raise CalibrationError(
            f"{len(examples)} networks to calibrate on could be measured, and {_FEWEST_EXAMPLES} are needed; "
            "`dlbricks runs watch last` tells what kept them"
        )
    sought = found_by_fit(names)
    residuals = [
        example.error(_constants([*examples[:number], *examples[number + 1 :]], sought))
        for number, example in enumerate(examples)
    ]
    densities = tuple([example.density for example in examples])
    found = {CALL_MS: median(example.call_ms for example in examples)}
    found |= dict(zip(sought, _constants(examples, sought), strict=True))
    return Correction(tuple([(name, found[name]) for name in names]), tuple(residuals), densities)


def _constants(examples: Sequence[Example], names: Sequence[str]) -> tuple[float, ...]:
    """Return the constants with the least sum of absolute errors, which one odd network does not move.

    That sum is least where as many examples come out right as there are constants other than zero: try all of these.
    """
    # Only fitting needs it; estimates are not to wait for it.
    import numpy as np

    terms = np.array([it.terms for it in examples])
    measured_ms = np.array([it.measured_ms for it in examples])
    missing_ms = measured_ms - np.array([it.composed_ms + it.call_ms for it in examples])
    tried = [np.zeros(len(names))]
    for size in range(1, len(names) + 1):
        for chosen, right in product(combinations(range(len(names)), size), combinations(range(len(examples)), size)):
            shares = terms[np.ix_(right, chosen)]
            if np.linalg.cond(shares) < _ALIKE:
                constants = np.zeros(len(names))
                constants[list(chosen)] = np.linalg.solve(shares, missing_ms[list(right)])
                tried.append(constants)
    errors = np.abs((np.array(tried) @ terms.T - missing_ms) / measured_ms).sum(axis=1)
    return tuple(tried[errors.argmin()].tolist())
