"""The gap between the latency of a model and the best measured one, split into causes."""

from dataclasses import dataclass

from dlbricks_tui.analysis.bounds import BestMeasured
from dlbricks_tui.analysis.groups import MeasuredExecution, is_conversion
from dlbricks_tui.estimate.compositions import milliseconds, picoseconds


@dataclass(frozen=True, slots=True)
class Gap:
    """The parts of a gap. They add up to it exactly, in picoseconds."""

    # The time by which groups of layers are slower than in the fastest execution.
    slower_layers_ps: int
    # The layers that convert memory layouts.
    conversions_ps: int
    # The end-to-end latency minus the estimate; None without an end-to-end latency.
    unexplained_ps: int | None

    @property
    def total_ps(self) -> int:
        """The latency minus the best: the end-to-end latency, or the estimate without one."""
        return self.slower_layers_ps + self.conversions_ps + (self.unexplained_ps or 0)

    @property
    def slower_layers_ms(self) -> float:
        return milliseconds(self.slower_layers_ps)

    @property
    def conversions_ms(self) -> float:
        return milliseconds(self.conversions_ps)

    @property
    def unexplained_ms(self) -> float | None:
        return None if self.unexplained_ps is None else milliseconds(self.unexplained_ps)


def gap_of(baseline: MeasuredExecution, best: BestMeasured) -> Gap:
    """Return the gap between an execution and the best of several."""
    layers_ps = sum(part.paid_ps for part in baseline.parts)
    conversions_ps = sum(
        part.paid_ps for part in baseline.parts if all(is_conversion(baseline.graph.layers[it]) for it in part.layers)
    )
    measured = baseline.found.end_to_end
    return Gap(
        slower_layers_ps=layers_ps - conversions_ps - best.latency_ps,
        conversions_ps=conversions_ps,
        unexplained_ps=None if measured is None else picoseconds(measured.value_ms) - layers_ps,
    )
