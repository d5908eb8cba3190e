"""How fast a host was while it measured, against what is usual for it, by the reference latencies in the store."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.index import REFERENCE_COLUMN

# On a quiet host the reference varies by one or two percent. Neighbours on a shared host change it by a third, for
# minutes.
MOST_SLOWER = 1.15
# The usual speed follows a host that has changed for good.
_RUNS_REMEMBERED = 20


@dataclass(frozen=True, eq=False)
class HostSpeed:
    """The reference latencies of the results of one way of measuring on a system, in no order."""

    references_ms: NDArray[np.float64]
    # In microseconds since 1970.
    when: NDArray[np.int64]
    # The numbers of their runs.
    runs: NDArray[np.int32]

    @cached_property
    def usual_ms(self) -> float | None:
        """The reference latency of the quick host: a quarter of the latest runs had a lower one; None without results.

        A host has been quiet in at least some of its runs. A single quick run of five is chance.
        """
        newest = {run: int(self.when[self.runs == run].max()) for run in np.unique(self.runs).tolist()}
        latest = sorted(newest, key=newest.__getitem__)[-_RUNS_REMEMBERED:]
        found = sorted(float(np.median(self.references_ms[self.runs == run])) for run in latest)
        return found[(len(found) - 1) // 4] if found else None

    def was_slower(self, reference_ms: float) -> bool:
        """True if the host was clearly slower than usual when the reference took this long; 0: not known."""
        return self.usual_ms is not None and reference_ms > MOST_SLOWER * self.usual_ms

    def quicker_since(self, when: int, reference_ms: float) -> bool:
        """True if a result since then was measured on a clearly quicker host."""
        return bool(np.any(MOST_SLOWER * self.references_ms[self.when > when] < reference_ms))


def host_speed(store: ResultsDatabase, system: str, runtime: str, protocol: str) -> HostSpeed:
    """Return the speed of a system in all results of a way of measuring that state the reference."""
    found = store.select(equal(system=system, runtime=runtime, protocol=protocol), order=())
    references_ms = found.numbers(REFERENCE_COLUMN)
    known = references_ms > 0
    return HostSpeed(references_ms[known], found.numbers("when")[known], found.numbers("run")[known])
