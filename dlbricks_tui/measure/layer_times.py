"""Layer times from a profile, scaled so that they add up to the plain latency of the same network.

A profiler makes operators slower, and it does not see what the runtime does between them. Both are shared out in
proportion: `python -m benchmarks.carriers` compares this with other ways.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from dlbricks_tui.runtime.protocol import Profiled


def layer_times(profile: Profiled, owners: Mapping[int, int], plain_ms: float) -> Mapping[int, float]:
    """The milliseconds of each layer, by index, in a network that takes `plain_ms`.

    `owners` says which layer an operator belongs to.
    """
    found: defaultdict[int, float] = defaultdict(float)
    durations_ns = [sum(of_one) for of_one in zip(*profile.durations_ns, strict=True)]
    for node, operator_ms in zip(profile.nodes, in_proportion(durations_ns, plain_ms), strict=True):
        found[owners[node]] += operator_ms
    return dict(found)


def in_proportion(durations: Sequence[float], total_ms: float) -> list[float]:
    """The durations in milliseconds, so that they add up to a total."""
    together = sum(durations)
    return [total_ms * duration / together if together else 0.0 for duration in durations]
