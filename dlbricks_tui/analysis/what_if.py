"""What-ifs: changes of the way in which a model is executed, each with its predicted gain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import median_high, median_low

from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.records import Proof


class WhatIfKind(str, Enum):
    """The kinds of changes, in the order in which tables show them."""

    PARALLEL = "parallel"
    KERNELS = "kernels"
    RUNTIME = "runtime"
    FUSION = "fusion"
    PRECISION = "precision"
    THREADS = "threads"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Execution:
    """How a model is executed: a runtime with all of its settings, fused or as written, at a batch size.

    The settings of the runtime hold its threads, precision, limits on kernels, and the number of operators
    side by side. The batch size is that of the model's file if it is None.
    """

    runtime: Runtime
    level: Level
    batch_size: int | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """The share of the latency that a change saves, with its 95 % interval; negative if it costs time."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Correction:
    """The number of proofs of the same change for other models, and the gain that was predicted without them."""

    proofs: int
    uncorrected: Gain


class Doubt(Enum):
    """A reason not to trust a prediction without a proof, as proofs have shown: see docs/how-it-works/analysis.md."""

    # Operators side by side never saved time, and cost more than predicted.
    PARALLEL = "parallel"
    # A predicted gain of less than 10 % can be a loss.
    SMALL_GAIN = "small gain"
    # The sign is right, and the size is often wrong by more than 10 points.
    LOSS = "loss"


_LEAST_TRUSTED_GAIN = 0.10


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A change, with the latency and the gain that it is predicted to bring."""

    # The kind with its number or name, such as `parallel-2` or `runtime-openvino`. Unique for a model.
    id: str
    kind: WhatIfKind
    baseline: Execution
    # None: a bound that no runtime reaches, such as the best runtime of each layer.
    change: Execution | None
    # Per item of a batch if the batch sizes differ.
    estimate_ms: float
    gain: Gain
    # The names of the layers that are responsible, the most important first.
    layers: tuple[str, ...]
    # The command or setting that achieves it.
    how: str
    correction: Correction | None = None

    @property
    def uncorrected_gain(self) -> Gain:
        """The gain that the results of the model alone predict."""
        return self.gain if self.correction is None else self.correction.uncorrected

    @property
    def doubt(self) -> Doubt | None:
        """The reason not to trust it without a proof; None for a bound too, which nobody can prove."""
        if self.change is None:
            return None
        if self.kind is WhatIfKind.PARALLEL:
            return Doubt.PARALLEL
        if self.gain.value < 0:
            return Doubt.LOSS
        return Doubt.SMALL_GAIN if self.gain.value < _LEAST_TRUSTED_GAIN else None


def newest_proofs(proofs: Sequence[Proof], what_if: WhatIf) -> dict[str, Proof]:
    """Return the newest proof of the same change for each model that has one, given the newest first."""
    if what_if.change is None:
        return {}
    sought = (what_if.id, what_if.baseline.runtime.identity, what_if.change.runtime.identity)
    same = [it for it in proofs if (it.what_if, it.runtime, it.changed_runtime) == sought]
    return {it.model: it for it in reversed(same)}


def corrected(what_if: WhatIf, proofs: Sequence[Proof]) -> WhatIf:
    """Return a what-if as proofs of other models on its host have shown such predictions to be wrong.

    The correction is the median error of the newest proof of each model, as if one more had agreed with its
    prediction, so a single odd proof moves nothing. The interval reaches them all: a change that cost time once is
    doubted, and one that did so twice is no longer promised.
    """
    errors = [math.log(_kept(it.gain) / _kept(it.predicted_gain)) for it in newest_proofs(proofs, what_if).values()]
    if not errors:
        return what_if
    gain = what_if.gain
    shift = min(median_low([0.0, *errors]), median_high([0.0, *errors]), key=abs)
    spread = max(abs(error - shift) for error in errors)
    value, low, high = (_kept(each) * math.exp(shift) for each in (gain.value, gain.low, gain.high))
    moved = Gain(1.0 - value, 1.0 - max(low, value * math.exp(spread)), 1.0 - min(high, value * math.exp(-spread)))
    estimate_ms = what_if.estimate_ms * math.exp(shift)
    return replace(what_if, estimate_ms=estimate_ms, gain=moved, correction=Correction(len(errors), gain))


def _kept(gain: float) -> float:
    """Return the share of the latency that a gain leaves, a thousandth at least."""
    return max(1e-3, 1.0 - gain)


@dataclass(frozen=True, slots=True)
class MeasuredGain:
    """The outcome of a what-if that was carried out: the latency after the change, and the gain.

    The latency is that of an item if the change is one of the batch size.
    """

    measured_ms: float
    gain: float
    # The 95 % interval of the gain.
    interval: tuple[float, float]
    before_ms: float
    when: str

    @property
    def with_interval(self) -> Gain:
        """The gain with its interval."""
        return Gain(self.gain, *self.interval)


def measured_gain(proof: Proof) -> MeasuredGain:
    """Return the gain of a proof, with the latencies of an item if the batch sizes differ."""
    sizes = proof.batch_size, proof.changed_batch_size
    before, after = sizes if sizes[0] != sizes[1] else (1, 1)
    return MeasuredGain(
        proof.after.trimmed_mean_ms / after,
        proof.gain,
        (proof.gain_low, proof.gain_high),
        proof.before.trimmed_mean_ms / before,
        proof.when,
    )
