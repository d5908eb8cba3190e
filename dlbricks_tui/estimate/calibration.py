"""What a measuring method adds to every brick, and how far its predictions were off: constants fitted elsewhere."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.models.graph import Layer

# Two standard deviations, for 95 % of a normal distribution.
_SIGMAS = 1.96

# What a constant of this name is multiplied with for one sequence. Constants are milliseconds.
TERMS: Mapping[str, Callable[[Sequence[Layer]], float]] = {
    "per_sequence_ms": lambda layers: 1.0 if any(layer.operators for layer in layers) else 0.0,
    "per_layer_ms": lambda layers: float(sum(bool(layer.operators) for layer in layers)),
}


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

    def added_ms(self, layers: Sequence[Layer]) -> float:
        """What a sequence takes inside a model beyond what its brick was measured at."""
        return sum(constant * TERMS[name](layers) for name, constant in self.constants)

    @property
    def relative_doubt(self) -> float:
        """Half of the 95 % interval of the method itself, as a share of an estimate."""
        if not self.residuals:
            return 0.0
        return _SIGMAS * math.sqrt(sum(error * error for error in self.residuals) / len(self.residuals))


UNCALIBRATED = Correction()
