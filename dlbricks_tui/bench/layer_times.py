"""Layer times from a profile, corrected so that they add up to what the network takes without the profiler.

A profiler adds a little time to each operator, and the runtime spends a little between two of them. Both are alike for
all operators, so what is missing to the plain latency, or too much, is shared out evenly.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from dlbricks_tui.runtime.protocol import Profiled

_NANOSECONDS_PER_MS = 1e6


def layer_times_ms(profile: Profiled, owners: Mapping[int, int], plain_ms: float) -> dict[int, float]:
    """The time of each layer, by its index; `owners` says which layer an operator belongs to."""
    operators_ms = corrected_ms(_mean_ms(profile.durations_ns), plain_ms)
    found: defaultdict[int, float] = defaultdict(float)
    for node, operator_ms in zip(profile.nodes, operators_ms, strict=True):
        found[owners[node]] += operator_ms
    return dict(found)


def corrected_ms(profiled_ms: Sequence[float], plain_ms: float) -> list[float]:
    """Operator times that add up to the plain latency; none is negative."""
    if not profiled_ms:
        return []
    each = (plain_ms - sum(profiled_ms)) / len(profiled_ms)
    shifted = [max(0.0, operator_ms + each) for operator_ms in profiled_ms]
    total = sum(shifted)
    # Operators shorter than the shift were kept from becoming negative: the others give that back in proportion.
    return [operator_ms * plain_ms / total for operator_ms in shifted] if total else shifted


def _mean_ms(durations_ns: Sequence[Sequence[int]]) -> list[float]:
    return [sum(of_one) / len(of_one) / _NANOSECONDS_PER_MS for of_one in zip(*durations_ns, strict=True)]
