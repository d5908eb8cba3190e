"""The kinds of scenarios and the most users, apart from the simulation: every command loads them with its settings."""

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
