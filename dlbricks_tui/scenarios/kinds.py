"""The fields of a load test that a request states, apart from the simulation: every command loads them."""

from dataclasses import dataclass
from enum import Enum

# More users than any search tries.
MOST_USERS = 256


class ScenarioKind(str, Enum):
    """The scenarios of MLPerf."""

    # The next request is sent when the last one is answered.
    SINGLE = "single"
    # The same with requests of eight samples.
    MULTI = "multi"
    # Requests arrive at random times, as a Poisson process.
    SERVER = "server"
    # All samples are there from the start.
    OFFLINE = "offline"


@dataclass(frozen=True, kw_only=True)
class AskedScenario:
    """How requests arrive and are served, beside the sizes of their batches."""

    kind: ScenarioKind
    # Of the latencies, in percent, such as 99; None: that of MLPerf.
    percentile: float | None = None
    # The bound of that percentile; a server needs one unless it has a rate.
    bound_ms: float | None = None
    # Requests per second of a server; None: the highest rate within the bound.
    rate: float | None = None
    # Copies of the model that serve at the same time, each in a worker with its own threads.
    instances: int = 1
    # MLPerf's durations in place of the fewest queries that decide.
    full: bool = False
