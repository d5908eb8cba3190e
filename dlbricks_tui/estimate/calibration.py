"""What a measuring method misses of every brick, and how far its predictions were off: constants fitted elsewhere."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.models.graph import Layer

# Two standard deviations, for 95 % of a normal distribution.
_SIGMAS = 1.96

# What a layer finds in the caches of what it left there one inference ago: the less, the more the model touches
# meanwhile, and nothing from here on.
_FORGETS_ALL_BYTES = 20e6

# What a constant of this name is multiplied with for one sequence of a model that touches so many bytes in one
# inference. Constants are milliseconds.
TERMS: Mapping[str, Callable[[int], float]] = {
    "per_forgotten_sequence_ms": lambda touched_bytes: min(1.0, touched_bytes / _FORGETS_ALL_BYTES),
    # What systems were calibrated with before.
    "per_sequence_ms": lambda touched_bytes: 1.0,
}
FITTED = "per_forgotten_sequence_ms"
_FEWEST_EXAMPLES = 2


@dataclass(frozen=True, slots=True)
class Correction:
    """Constants by term, and the relative errors that remained on networks which had no part in the fit."""

    constants: tuple[tuple[str, float], ...] = ()
    residuals: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name, _ in self.constants:
            if name not in TERMS:
                raise CalibrationError(
                    f"the calibration of this system has a constant {name!r} that this dlbricks cannot apply; "
                    "update dlbricks, or calibrate again"
                )

    def added_ms(self, layers: Sequence[Layer], touched_bytes: int) -> float:
        """What a sequence takes inside a model that touches so much beyond what its brick was measured at."""
        if not any(layer.operators for layer in layers):
            return 0.0
        return sum(constant * TERMS[name](touched_bytes) for name, constant in self.constants)

    @property
    def relative_doubt(self) -> float:
        """Half of the 95 % interval of the method itself, as a share of an estimate."""
        if not self.residuals:
            return 0.0
        return _SIGMAS * math.sqrt(sum(error * error for error in self.residuals) / len(self.residuals))


UNCALIBRATED = Correction()


@dataclass(frozen=True, slots=True)
class Example:
    """A network whose latency is known: what its bricks add up to, uncorrected, and what it takes end to end."""

    name: str
    # The sum over all its sequences of what the fitted constant is multiplied with.
    term: float
    composed_ms: float
    measured_ms: float

    @property
    def constant_ms(self) -> float:
        """The constant by which its corrected sum would be right."""
        return (self.measured_ms - self.composed_ms) / self.term

    @property
    def weight(self) -> float:
        """By what share of its latency the corrected sum grows with the constant."""
        return self.term / self.measured_ms

    def error(self, constant_ms: float) -> float:
        """By what share the corrected sum is too high."""
        return (self.composed_ms + constant_ms * self.term) / self.measured_ms - 1.0


def fitted(examples: Sequence[Example]) -> Correction:
    """The constant that leaves the least relative errors; each residual is of an example left out of the fit."""
    if len(examples) < _FEWEST_EXAMPLES:
        raise CalibrationError(
            f"{len(examples)} networks to calibrate on could be measured, and {_FEWEST_EXAMPLES} are needed; "
            "`dlbricks runs watch last` tells what kept them"
        )
    residuals = [
        example.error(_constant_ms([*examples[:number], *examples[number + 1 :]]))
        for number, example in enumerate(examples)
    ]
    return Correction(((FITTED, _constant_ms(examples)),), tuple(residuals))


def _constant_ms(examples: Sequence[Example]) -> float:
    """That which has the least sum of absolute errors: a weighted median, which one odd network does not move."""
    ordered = sorted(examples, key=lambda example: example.constant_ms)
    left = sum(example.weight for example in ordered) / 2
    for example in ordered:
        left -= example.weight
        if left <= 0:
            return example.constant_ms
    return ordered[-1].constant_ms
