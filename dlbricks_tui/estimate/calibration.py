"""What a measuring method misses of every brick, and how far its predictions were off: constants fitted elsewhere."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.bricks.contexts import DISPLACED, EVICTED, RESIDENT
from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.models.graph import Layer

Array = NDArray[np.float64]

# Two standard deviations, for 95 % of a normal distribution.
_SIGMAS = 1.96

# A method errs by some share of a model, and by some time for each of its sequences: so much more for models of many
# short ones. Where so many of them run in a millisecond, both weigh the same: where, the errors tell.
_DENSE = (4.0, 8.0, 16.0, 32.0)
# An error that is so many times the median of all is one odd network, and counts as so many of them.
_ODD = 5.0

# What takes less than this takes next to nothing.
_NEXT_TO_NOTHING_MS = 0.04
# Inside of a model others use the nearest caches between two runs of a layer. A brick that takes so long has lost all
# by that which it can lose.
_LOSES_ALL_MS = 0.3
# The bricks of a model that touches no more than the former miss nothing, those of one that touches as much as the
# latter all that they can. With these bounds none of three processors of different caches is worse off than without.
_KEEPS_ALL_BYTES, _KEEPS_NOTHING_BYTES = 3e6, 12e6
# What a layer finds in any cache of what it left there one inference ago: the less, the more the model touches
# meanwhile, and nothing from here on.
_FORGETS_ALL_BYTES = 20e6


class Circumstances(NamedTuple):
    """What decides by how much the latency of a sequence inside of a model differs from that of its brick."""

    brick_ms: float
    # What the model reads or writes in one inference.
    touched_bytes: int
    # Whether the caches held something else when the brick was timed.
    cold: bool = False
    # What it takes otherwise, where nobody knows: if only a core's own caches hold something else, or as the word says.
    twin_ms: float | None = None
    twin: str = EVICTED


def _share_of(most_ms: float, circumstances: Circumstances) -> float:
    """How much of a constant a brick pays that pays all of it if it takes so long."""
    return min(1.0, circumstances.brick_ms / most_ms)


def _share_lost(touched_bytes: int) -> float:
    """How much of what a layer has in the nearest caches others have taken until it runs again."""
    return min(1.0, max(0.0, (touched_bytes - _KEEPS_ALL_BYTES) / (_KEEPS_NOTHING_BYTES - _KEEPS_ALL_BYTES)))


def _cold_for_sure(circumstances: Circumstances) -> bool:
    return circumstances.cold and circumstances.twin_ms is None


def _way_to_twin(circumstances: Circumstances) -> float:
    return 0.0 if circumstances.twin_ms is None else circumstances.twin_ms - circumstances.brick_ms


# What it takes to call a runtime that computes nothing: a model pays that once, however many layers it has.
CALL_MS = "call_ms"
# The constants that say where between what is cold or warm and its twin a model lies.
STAYS_SHARE, EVICTED_SHARE, RESIDENT_SHARE = "stays_share", "evicted_share", "resident_share"
# What a constant of this name is multiplied with for one sequence. Constants are milliseconds, or shares of some.
TERMS: Mapping[str, Callable[[Circumstances], float]] = {
    "per_lost_sequence_ms": lambda it: 0.0 if it.cold else _share_lost(it.touched_bytes) * _share_of(_LOSES_ALL_MS, it),
    # By this models take less: what was swept out of all caches before a brick was timed is in some cache there.
    "per_cold_sequence_ms": lambda it: _share_of(_LOSES_ALL_MS, it) if _cold_for_sure(it) else 0.0,
    # And of models that touch little some cache that cores share may hold all weights: by this share of the way.
    STAYS_SHARE: lambda it: _way_to_twin(it) if it.cold else 0.0,
    # And by this share of the way others have taken the nearest caches from what is warm.
    EVICTED_SHARE: lambda it: _way_to_twin(it) if not it.cold and it.twin == EVICTED else 0.0,
    # And by this share of the way what is written past the caches is written over what lies in them.
    RESIDENT_SHARE: lambda it: _way_to_twin(it) if not it.cold and it.twin == RESIDENT else 0.0,
    "per_forgotten_sequence_ms": lambda it: min(1.0, it.touched_bytes / _FORGETS_ALL_BYTES),
    # What systems were calibrated with before: when small models were taken to lose as much as large ones, when cold
    # bricks were taken for others, while bricks woke up for themselves, and when nothing else was known.
    "per_warm_sequence_ms": lambda it: 0.0 if it.cold else _share_of(_LOSES_ALL_MS, it),
    "per_evicted_sequence_ms": lambda it: _share_of(_LOSES_ALL_MS, it),
    "per_displaced_sequence_ms": lambda it: _share_of(0.15, it),
    "per_woken_sequence_ms": lambda it: _share_of(0.04, it),
    "per_sequence_ms": lambda it: 1.0,
    # And when others took the nearest caches in the program that was timed.
    "displaced_share": lambda it: _way_to_twin(it) if not it.cold and it.twin == DISPLACED else 0.0,
}
# Where a model has been seen between what is warm and its twin. What makes more of it explains by caches, which all
# models share, what is odd about a few small networks.
_MOST_OF_THE_WAY = 0.5
# Between which bounds a constant lies that may be anything else by chance only: nothing is gained by what is lost.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "per_lost_sequence_ms": (0.0, math.inf),
    STAYS_SHARE: (0.0, 1.0),
    EVICTED_SHARE: (0.0, _MOST_OF_THE_WAY),
    RESIDENT_SHARE: (0.0, _MOST_OF_THE_WAY),
}
# Two networks with so nearly the same shares of two constants say nothing of either.
_ALIKE = 1e6
# One is left out in turn, and the others have to agree.
_FEWEST_EXAMPLES = 3


def found_by_fit(names: Iterable[str]) -> tuple[str, ...]:
    """Those of the constants that a fit finds: what a call takes was measured."""
    return tuple([name for name in names if name != CALL_MS])


def density_of(paid: Iterable[tuple[int, float]]) -> float:
    """How many sequences run in a millisecond, of those that are paid so often and take so long.

    What takes next to nothing counts in part: nobody errs by more than it takes.
    """
    count = latency_ms = 0.0
    for times, sequence_ms in paid:
        count += times * min(1.0, sequence_ms / _NEXT_TO_NOTHING_MS)
        latency_ms += times * sequence_ms
    return count / latency_ms if latency_ms else 0.0


@dataclass(frozen=True, slots=True)
class Correction:
    """Constants by term, and the relative errors that remained on networks which had no part in the fit.

    The densities are those of these networks; systems that were calibrated before have none.
    """

    constants: tuple[tuple[str, float], ...] = ()
    residuals: tuple[float, ...] = ()
    densities: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in found_by_fit(name for name, _ in self.constants):
            if name not in TERMS:
                raise CalibrationError(
                    f"the calibration of this system has a constant {name!r} that this dlbricks cannot apply; "
                    "update dlbricks, or calibrate again"
                )

    @property
    def call_ms(self) -> float:
        """What a model takes once, whatever it computes; who was calibrated before took that for nothing."""
        return dict(self.constants).get(CALL_MS, 0.0)

    def added_ms(self, layers: Sequence[Layer], circumstances: Circumstances) -> float:
        """What a sequence takes inside of its model beyond what its brick was measured at."""
        if not any(layer.operators for layer in layers):
            return 0.0
        if not any(name == STAYS_SHARE for name, _ in self.constants):
            # Who was calibrated before there were twins means all that is cold.
            circumstances = circumstances._replace(twin_ms=None)
        return sum(constant * TERMS[name](circumstances) for name, constant in self.constants if name != CALL_MS)

    def relative_doubt(self, density: float) -> float:
        """Half of the 95 % interval of the method itself, as a share of an estimate for a model of such a density."""
        if not self.residuals:
            return 0.0
        if not self.densities:
            return _SIGMAS * _usual(self.residuals)
        dense = min(_DENSE, key=self._unlikelihood)
        return _SIGMAS * _usual(self._alike(dense)) * _weight(density, dense)

    def _alike(self, dense: float) -> Sequence[float]:
        """The errors as if none of their networks had short sequences."""
        return [error / _weight(each, dense) for error, each in zip(self.residuals, self.densities, strict=True)]

    def _unlikelihood(self, dense: float) -> float:
        """How little such errors are to be expected where both parts weigh the same at this density."""
        mean = sum(map(abs, self._alike(dense))) / len(self.residuals)
        weights = sum(math.log(_weight(each, dense)) for each in self.densities)
        return round(len(self.residuals) * math.log(mean) + weights, 6) if mean else 0.0


UNCALIBRATED = Correction()


def _weight(density: float, dense: float) -> float:
    """How much more doubtful a model of such a density is than one of a few long sequences."""
    return math.hypot(1.0, density / dense)


def _usual(errors: Sequence[float]) -> float:
    """The root of their mean square, but for odd ones."""
    most = _ODD * median(map(abs, errors)) or math.inf
    return math.sqrt(sum(min(abs(error), most) ** 2 for error in errors) / len(errors))


@dataclass(frozen=True, slots=True)
class Example:
    """A network whose latency is known: what its bricks add up to, uncorrected, and what it takes end to end.

    The latter has one call of the runtime in it.
    """

    name: str
    # For each constant, the sum over all sequences of what it is multiplied with.
    terms: tuple[float, ...]
    composed_ms: float
    measured_ms: float
    density: float = 0.0
    call_ms: float = 0.0

    def error(self, constants_ms: Sequence[float]) -> float:
        """By what share the corrected sum is too high."""
        added_ms = sum(constant * term for constant, term in zip(constants_ms, self.terms, strict=True))
        return (self.composed_ms + added_ms + self.call_ms) / self.measured_ms - 1.0


def fitted(examples: Sequence[Example], names: Sequence[str]) -> Correction:
    """The constants of these names that leave the least relative errors; each residual is of an example left out."""
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
    """Those with the least sum of absolute errors, which one odd network does not move.

    Such a sum is least where as many examples come out right as there are constants, or where some of these are
    nothing, or as much as they can be: all such are tried.
    """
    terms = np.array([it.terms for it in examples])
    measured_ms = np.array([it.measured_ms for it in examples])
    missing_ms = measured_ms - np.array([it.composed_ms + it.call_ms for it in examples])
    low, high = (np.array(ends) for ends in zip(*(BOUNDS.get(name, (-np.inf, np.inf)) for name in names), strict=True))
    at_an_end = [np.zeros(len(names))]
    for place in np.flatnonzero(np.isfinite(high)):
        at_an_end += [np.where(np.arange(len(names)) == place, high, given) for given in at_an_end]
    tried = np.concatenate([_making_right(terms, missing_ms, given) for given in at_an_end])
    tried = tried[((tried >= low) & (tried <= high)).all(axis=1)]
    errors = np.abs((tried @ terms.T - missing_ms) / measured_ms).sum(axis=1)
    return tuple(tried[errors.argmin()].tolist())


def _making_right(terms: Array, missing_ms: Array, given: Array) -> Array:
    """All constants, one of them a row, by which as many examples come out right as are not given."""
    free = np.flatnonzero(given == 0.0)
    missing_ms = missing_ms - terms @ given
    found = [given[None, :]]
    for size in range(1, len(free) + 1):
        right = np.array(list(combinations(range(len(terms)), size)))
        for chosen in combinations(free, size):
            shares = terms[right][:, :, chosen]
            # Nothing tells the others apart.
            told = np.linalg.cond(shares) < _ALIKE
            constants = np.repeat(given[None, :], int(told.sum()), axis=0)
            constants[:, chosen] = np.linalg.solve(shares[told], missing_ms[right[told], None])[:, :, 0]
            found.append(constants)
    return np.concatenate(found)
