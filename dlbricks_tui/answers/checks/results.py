"""Checks as plain values: the results of the Python API, and the JSON documents of `dlbricks check`."""

from dataclasses import dataclass

from dlbricks_tui.evaluations.change import Verdict
from dlbricks_tui.evaluations.differences import Difference
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedModel:
    """A model in one combination, measured again; latencies are None where there are none."""

    model: str
    # Today's runtime, by its identity, and the variant; None for a model that the file lacks.
    framework: str | None
    runtime: str | None
    threads: int | None
    batch: int | None
    precision: Precision | None
    instructions: InstructionSet | None
    optimisation: Optimisation | None
    level: Level | None
    was_ms: float | None
    is_ms: float | None
    # The share by which the latency has grown, and its 95 % interval.
    change: float | None
    interval: tuple[float, float] | None
    # Corrected for the number of models; None if there are too few samples.
    p_value: float | None
    significant: bool
    verdict: Verdict
    # Why the verdict is unknown; else empty.
    reason: str
    # False if the model could not be measured, or the file has no latency to compare with.
    compared: bool
    # What was different at the earlier measurement.
    differences: tuple[Difference, ...]
    # When the earlier latency was measured, and the numbers of samples.
    when: str | None
    was_samples: int
    is_samples: int
    # The runs that have measured it now.
    runs: tuple[str, ...]
