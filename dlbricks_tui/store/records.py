"""What the store keeps: one frozen record per measurement, machine, runtime, run or failure.

Keys and ids are plain strings that other rooms make. Definitions (brick forms, systems, runtimes) are told apart by
what they say, so that two stores agree on them; everything that happened has a UUID of its own.
"""

import math
import re
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone

from dlbricks_tui.models.graph import Level

Fact = None | bool | int | float | str
# What is known about something, by name; pairs and no dict, so that records stay immutable.
Facts = tuple[tuple[str, Fact], ...]
Constants = tuple[tuple[str, float], ...]

# The context of what was measured without regard to contexts.
ANY_CONTEXT = ""

_UUID = re.compile(r"[0-9a-f]{32}")


def new_uuid() -> str:
    """A UUID for something that happened just now."""
    return uuid.uuid4().hex


def utc_now() -> str:
    """The time as records carry it: ISO 8601, in UTC, to the microsecond."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What a series of samples says; `low_ms` and `high_ms` bound the trimmed mean with 95 % confidence."""

    trimmed_mean_ms: float
    median_ms: float
    minimum_ms: float
    # The interquartile range.
    spread_ms: float
    low_ms: float
    high_ms: float
    count: int

    def __post_init__(self) -> None:
        # JSON has no NaN, and a latency that is none must not be averaged into an estimate.
        latencies = (self.trimmed_mean_ms, self.median_ms, self.minimum_ms, self.spread_ms, self.low_ms, self.high_ms)
        if not all(math.isfinite(latency) for latency in latencies):
            raise ValueError("statistics must be finite numbers")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrickForm:
    """What a brick key stands for: the canonical JSON text that it is the hash of."""

    key: str
    canonical: str


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A machine."""

    id: str
    name: str
    cpu: str
    cores: int
    memory_bytes: int
    instance_type: str = ""
    facts: Facts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What executes, with every setting that changes its speed."""

    id: str
    name: str
    framework: str
    version: str
    python: str
    threads: int
    settings: Facts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened: when, and the UUID that tells it from everything else that did."""

    when: str
    uuid: str = field(default_factory=new_uuid)

    def __post_init__(self) -> None:
        # What the index cannot take up must not get into a file.
        if datetime.fromisoformat(self.when).tzinfo is None:
            raise ValueError(f"{self.when!r} has no time zone")
        if not _UUID.fullmatch(self.uuid):
            raise ValueError(f"{self.uuid!r} is no UUID of 32 hexadecimal digits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Event):
    """The state of a run at a moment; the newest record of an `id` is how the run stands."""

    id: str
    started: str
    state: str
    system: str
    runtime: str
    level: Level
    protocol: str
    granularity: int
    models: tuple[str, ...]
    measured: int = 0
    reused: int = 0
    failed: int = 0
    settings: Facts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration(Event):
    """The constants of a measuring method on a system and runtime, and how well they predicted each network."""

    system: str
    runtime: str
    level: Level
    protocol: str
    run: str
    constants: Constants
    # Relative error per calibration network, left out of its own fit.
    residuals: Constants
    # How many sequences of each run in a millisecond.
    densities: Constants = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Event):
    """A brick (or, where `brick` is empty, a whole model) that could not be measured, and why."""

    brick: str = ""
    context: str = ""
    model: str = ""
    system: str
    runtime: str
    level: Level
    protocol: str
    run: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed(Event):
    """What brick and end-to-end measurements have in common; one with `flags` is doubtful and says why."""

    system: str
    runtime: str
    level: Level
    protocol: str
    run: str
    statistics: Statistics
    samples_ms: tuple[float, ...]
    batch_size: int = 1
    dtype: str = "float32"
    noise: Facts = ()
    flags: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing speaks against using it."""
        return not self.flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Timed):
    """A brick in a context, timed.

    Who times every layer and not every brick has many of a brick: `occurrence` says which layer of which model it was.
    """

    brick: str
    context: str
    kernel_variant: str = ""
    occurrence: Facts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndToEnd(Timed):
    """A whole model, timed; `model` is its key, `name` what it is called."""

    model: str
    name: str


Result = Measurement | EndToEnd
Record = BrickForm | System | Runtime | Run | Calibration | Failure | EndToEnd | Measurement
