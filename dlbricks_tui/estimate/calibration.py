"""What a measuring method misses of every brick, and how far its predictions were off: constants fitted elsewhere."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.models.graph import Layer

# Two standard deviations, for 95 % of a normal distribution.
_SIGMAS = 1.96

# A method errs by some share of a model, and by some time for each of its sequences: so much more for models of many
# short ones. Where so many of them run in a millisecond, both weigh the same.
_DENSE = 4.0

# What takes less than this takes next to nothing.
_NEXT_TO_NOTHING_MS = 0.04
# Inside of a model others use the nearest caches between two runs of a layer. A brick that takes so long has lost all
# by that which it can lose.
_LOSES_ALL_MS = 0.3
# What a layer finds in any cache of what it left there one inference ago: the less, the more the model touches
# meanwhile, and nothing from here on.
_FORGETS_ALL_BYTES = 20e6


class Circumstances(NamedTuple):
    """What decides by how much the latency of a sequence inside of a model differs from that of its brick."""

    brick_ms: float
    # What the model reads or writes in one inference.
    touched_bytes: int


# What a constant of this name is multiplied with for one sequence. Constants are milliseconds.
TERMS: Mapping[str, Callable[[Circumstances], float]] = {
    "per_evicted_sequence_ms": lambda it: min(1.0, it.brick_ms / _LOSES_ALL_MS),
    "per_forgotten_sequence_ms": lambda it: min(1.0, it.touched_bytes / _FORGETS_ALL_BYTES),
    # What systems were calibrated with before: while bricks woke up for themselves, and when nothing else was known.
    "per_displaced_sequence_ms": lambda it: min(1.0, it.brick_ms / 0.15),
    "per_woken_sequence_ms": lambda it: min(1.0, it.brick_ms / 0.04),
    "per_sequence_ms": lambda it: 1.0,
}
# One is left out in turn, and the others have to agree.
_FEWEST_EXAMPLES = 3


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
        for name, _ in self.constants:
            if name not in TERMS:
                raise CalibrationError(
                    f"the calibration of this system has a constant {name!r} that this dlbricks cannot apply; "
                    "update dlbricks, or calibrate again"
                )

    def added_ms(self, layers: Sequence[Layer], circumstances: Circumstances) -> float:
        """What a sequence takes inside of its model beyond what its brick was measured at."""
        if not any(layer.operators for layer in layers):
            return 0.0
        return sum(constant * TERMS[name](circumstances) for name, constant in self.constants)

    @property
    def names(self) -> tuple[str, ...]:
        """What the constants are called."""
        return tuple(name for name, _ in self.constants)

    def relative_doubt(self, density: float) -> float:
        """Half of the 95 % interval of the method itself, as a share of an estimate for a model of such a density."""
        if not self.residuals:
            return 0.0
        if not self.densities:
            return _SIGMAS * _root_mean_square(self.residuals)
        alike = [error / _weight(dense) for error, dense in zip(self.residuals, self.densities, strict=True)]
        return _SIGMAS * _root_mean_square(alike) * _weight(density)


UNCALIBRATED = Correction()


def _weight(density: float) -> float:
    """How much more doubtful a model of such a density is than one of a few long sequences."""
    return math.hypot(1.0, density / _DENSE)


def _root_mean_square(errors: Sequence[float]) -> float:
    return math.sqrt(sum(error * error for error in errors) / len(errors))


@dataclass(frozen=True, slots=True)
class Example:
    """A network whose latency is known: what its bricks add up to, uncorrected, and what it takes end to end."""

    name: str
    # The sum over all its sequences of what the constant is multiplied with.
    term: float
    composed_ms: float
    measured_ms: float
    density: float = 0.0

    def error(self, constant_ms: float) -> float:
        """By what share the corrected sum is too high."""
        return (self.composed_ms + constant_ms * self.term) / self.measured_ms - 1.0


def fitted(examples: Sequence[Example], name: str) -> Correction:
    """The constant of that name that leaves the least relative errors; each residual is of an example left out."""
    if len(examples) < _FEWEST_EXAMPLES:
        raise CalibrationError(
            f"{len(examples)} networks to calibrate on could be measured, and {_FEWEST_EXAMPLES} are needed; "
            "`dlbricks runs watch last` tells what kept them"
        )
    residuals = [
        example.error(_constant_ms([*examples[:number], *examples[number + 1 :]]))
        for number, example in enumerate(examples)
    ]
    densities = tuple([example.density for example in examples])
    return Correction(((name, _constant_ms(examples)),), tuple(residuals), densities)


def _constant_ms(examples: Sequence[Example]) -> float:
    """That with the least sum of absolute errors, which one odd network does not move.

    Such a sum is least where an example comes out right: all are tried.
    """
    candidates = [(it.measured_ms - it.composed_ms) / it.term for it in examples if it.term]
    return min([0.0, *candidates], key=lambda constant_ms: sum(abs(it.error(constant_ms)) for it in examples))
