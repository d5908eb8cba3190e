"""The engine with which whole models were timed, where that is not the one that programs get by default."""

from collections.abc import Iterable

from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.measure.method import Method
from dlbricks_tui.runtime.traits import TRAITS


def engine_remarks(found: Iterable[SystemEstimate]) -> list[str]:
    """Return for each framework a line that says with which engine the end-to-end latencies hold; usually none."""
    told = {}
    for one in found:
        traits = TRAITS.get(one.way.runtime.partition("-")[0])
        if traits is None or one.end_to_end is None or one.way.protocol != Method.INSIDE.id:
            continue
        own = dict(word.split("=", 1) for word in one.way.runtime.split(" ") if "=" in word)
        # On one thread both are as fast.
        if one.variant.threads != 1 and any(name not in own for name, _ in traits.default_engine):
            settings = " ".join(f"{name}={value}" for name, value in traits.profiling_settings)
            told[traits.title] = f"end to end with {settings}; {traits.title}'s default can be slower"
    return list(told.values())
