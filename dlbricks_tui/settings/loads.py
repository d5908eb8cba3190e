"""The settings of a scenario: how requests arrive, and how they are served."""

import os
from dataclasses import dataclass

from dlbricks_tui.scenarios.scenario import ScenarioKind
from dlbricks_tui.settings.setting import Setting, flag, number, one_of, percentile, whole
from dlbricks_tui.settings.variant import BATCH_SIZES

# Each size is a program of its own in each instance.
_MOST_REQUESTS_IN_A_BATCH = 256
# Beyond them are mistakes, and numbers that LoadGen does not take.
_MOST_INSTANCES = 256
_MOST_BOUND_MS, _MOST_RATE = 1e6, 1e6
_BOUNDS_MS = tuple(step * 10.0**power for power in range(4) for step in (1, 2, 5))

KIND = Setting(
    name="kind",
    kind=one_of(*ScenarioKind),
    about="how requests arrive: `single`, the next after each answer; `multi`, the same with eight samples each; "
    "`server`, at random times; `offline`, all at once",
    meaning="how requests arrive",
)
BOUND = Setting(
    name="bound",
    kind=number(_MOST_BOUND_MS, *_BOUNDS_MS, sign="MS"),
    about="the bound of the latency in milliseconds; a server needs it",
    meaning="of the percentile",
    spelled="bound-ms",
    kept_in="bound_ms",
)
PERCENTILE = Setting(
    name="percentile",
    kind=percentile(90.0, 95.0, 99.0, 99.9),
    about="the share of requests, in percent, that the bound is for",
    meaning="of the latencies",
    usual="90 for `single`, else 99",
)
RATE = Setting(
    name="rate",
    kind=number(_MOST_RATE),
    about="send a server so many requests per second",
    meaning="requests per second",
    usual="the highest within the bound",
)
BATCHES = Setting(
    name="batch",
    kind=whole(1, _MOST_REQUESTS_IN_A_BATCH, *BATCH_SIZES),
    about="serve up to N waiting requests in one inference; offline, the best of 1, 2, 4 ... N counts; or these sizes",
    meaning="most requests together",
    usual="1; offline 8",
    kept_in="batch_sizes",
)
INSTANCES = Setting(
    name="instances",
    kind=whole(1, _MOST_INSTANCES, *range(1, (os.cpu_count() or 1) + 1)),
    about="copies of the model that serve at the same time, each with its own threads",
    meaning="copies of the model",
    default=1,
    usual="1",
)
FULL = Setting(
    name="full",
    kind=flag("MLPerf", "short"),
    about="test as long as MLPerf asks",
    meaning="of the tests",
    usual="the fewest requests that are enough for a verdict",
    default=False,
)
# How requests arrive, and how they are served beside their batches.
ARRIVAL = (KIND, PERCENTILE, BOUND, RATE)
SERVING = (INSTANCES, FULL)


@dataclass(frozen=True, kw_only=True)
class AskedScenario:
    """How requests arrive and are served, beside the sizes of their batches."""

    kind: ScenarioKind
    # None: that of MLPerf.
    percentile: float | None = None
    bound_ms: float | None = None
    # Requests per second of a server; None: the highest rate within the bound.
    rate: float | None = None
    instances: int = 1
    full: bool = False
