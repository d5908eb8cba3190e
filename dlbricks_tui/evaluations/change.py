"""The verdict on two timings of the same thing: slower, same, faster, or unknown."""

from dataclasses import dataclass
from enum import Enum

# A smaller change counts as none, unless the user names another share: two processes differ by as much.
USUAL_SHARE = 0.03


class Verdict(str, Enum):
    """Today's latency compared with the earlier one."""

    SLOWER = "slower"
    SAME = "same"
    FASTER = "faster"
    # The samples are too few, or vary too much, to say any of the others.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """A latency with its 95 % interval, and its samples if there are any."""

    value_ms: float
    low_ms: float
    high_ms: float
    samples_ms: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change between two timings.

    `change` is the share by which the latency has grown, with its 95 % interval. `significant` is true if samples that
    differ so much are unlikely by chance.
    """

    was_ms: float
    is_ms: float
    change: float
    low: float
    high: float
    significant: bool
    verdict: Verdict
