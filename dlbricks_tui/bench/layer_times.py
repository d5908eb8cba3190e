"""Layer times from a profile, corrected for what the profiler adds to each operator and the runtime spends between two.

Both are alike for all operators, so they show in the difference to the plain latency of the same network. They are
small: of a larger difference only as much is shared out as they can be. The rest is unexplained, and makes the times
unsure.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlbricks_tui.runtime.protocol import Profiled

_NANOSECONDS_PER_MS = 1e6
# Neither a profiler nor a runtime takes longer than this for one operator.
MOST_OVERHEAD_MS = 0.008


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """The time of each layer by its index, and how much of the plain latency these do not explain."""

    layers_ms: Mapping[int, float]
    unexplained_ms: float


def layer_times(profile: Profiled, owners: Mapping[int, int], plain_ms: float) -> LayerTimes:
    """The times of layers in a network that takes `plain_ms`; `owners` says which layer an operator belongs to."""
    operators_ms = corrected_ms(_mean_ms(profile.durations_ns), plain_ms)
    found: defaultdict[int, float] = defaultdict(float)
    for node, operator_ms in zip(profile.nodes, operators_ms, strict=True):
        found[owners[node]] += operator_ms
    return LayerTimes(dict(found), plain_ms - sum(operators_ms))


def corrected_ms(profiled_ms: Sequence[float], plain_ms: float) -> list[float]:
    """Operator times without the profiler and with what the runtime spends between them; none is negative."""
    if not profiled_ms:
        return []
    each_ms = (plain_ms - sum(profiled_ms)) / len(profiled_ms)
    each_ms = min(MOST_OVERHEAD_MS, max(-MOST_OVERHEAD_MS, each_ms))
    return [max(0.0, operator_ms + each_ms) for operator_ms in profiled_ms]


def _mean_ms(durations_ns: Sequence[Sequence[int]]) -> list[float]:
    return [sum(of_one) / len(of_one) / _NANOSECONDS_PER_MS for of_one in zip(*durations_ns, strict=True)]
