"""The records of the store: one frozen dataclass per measurement, system, runtime, run or failure.

Keys and ids are strings that other packages make. Definitions (brick forms, systems, runtimes) are identified by their
content, so that two stores agree on them; everything else has a UUID.
"""

import math
import re
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from dlbricks_tui.host_files import cores_within
from dlbricks_tui.models.graph import Level

Fact = None | bool | int | float | str
# Named facts; pairs instead of a dict, because records are immutable.
Facts = tuple[tuple[str, Fact], ...]
Constants = tuple[tuple[str, float], ...]

# The context of measurements that were made without regard to contexts.
ANY_CONTEXT = ""

# The id of the method of the results that the paper's authors published: each layer alone, fed from a plain array, 50
# times.
PUBLISHED = "dlbricks-2019"

# Clocks of hosts differ, but not by more.
_CLOCK_TOLERANCE = timedelta(days=1)
_UUID = re.compile(r"[0-9a-f]{32}")


def new_uuid() -> str:
    """Return a new UUID."""
    return uuid.uuid4().hex


def utc_now() -> str:
    """Return the current time for records: ISO 8601, in UTC, to the microsecond."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def latest_date() -> datetime:
    """Return the latest date that a record may have."""
    return datetime.now(timezone.utc) + _CLOCK_TOLERANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Statistics of samples; `low_ms` and `high_ms` bound the trimmed mean with 95 % confidence."""

    trimmed_mean_ms: float
    median_ms: float
    minimum_ms: float
    # The interquartile range.
    spread_ms: float
    low_ms: float
    high_ms: float
    count: int

    def __post_init__(self) -> None:
        # JSON has no NaN, and a NaN must not be averaged into an estimate.
        latencies = (self.trimmed_mean_ms, self.median_ms, self.minimum_ms, self.spread_ms, self.low_ms, self.high_ms)
        if not all(math.isfinite(latency) for latency in latencies):
            raise ValueError("statistics must be finite numbers")

    @property
    def latency(self) -> tuple[float, float, float]:
        """The trimmed mean with its interval."""
        return self.trimmed_mean_ms, self.low_ms, self.high_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class BrickForm:
    """A brick's canonical JSON text; the key is its hash."""

    key: str
    canonical: str


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The machine: processor, cores and memory."""

    id: str
    name: str
    cpu: str
    cores: int
    memory_bytes: int
    instance_type: str = ""
    facts: Facts = ()

    @property
    def cores_to_use(self) -> int:
        """The cores, or as many as a container has the time of."""
        return cores_within(self.cores, dict(self.facts).get("quota_cores"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeRecord:
    """A framework and its version, with every setting that changes its speed."""

    id: str
    name: str
    framework: str
    version: str
    python: str
    threads: int
    settings: Facts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedRecord:
    """A record of something that happened, with its time and UUID."""

    when: str
    uuid: str = field(default_factory=new_uuid)

    def __post_init__(self) -> None:
        # The index needs both, so no file may hold a record without them.
        if datetime.fromisoformat(self.when).tzinfo is None:
            raise ValueError(f"{self.when!r} has no time zone")
        if not _UUID.fullmatch(self.uuid):
            raise ValueError(f"{self.uuid!r} is not a UUID of 32 hexadecimal digits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(DatedRecord):
    """The state of a run at a moment; the newest record of an `id` is its current state."""

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
class Failure(DatedRecord):
    """A brick, or a whole model if `brick` is empty, that could not be measured, with the reason."""

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
class Timed(DatedRecord):
    """The common fields of brick and end-to-end measurements; `flags` name the reasons for doubt."""

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
        """True if there is no reason for doubt."""
        return not self.flags

    @property
    def steady_ms(self) -> tuple[float, ...]:
        """The samples after the warm-up, of which the statistics are."""
        return self.samples_ms[len(self.samples_ms) - self.statistics.count :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Timed):
    """The samples of a brick in a context.

    `occurrence` names the layer and model, if each layer was timed and not each brick.
    """

    brick: str
    context: str
    kernel_variant: str = ""
    occurrence: Facts = ()

    @property
    def busy(self) -> float:
        """The share by which its latency may be wrong, as the host was not quiet; 0 if it was, or is not known.

        What the bricks of a carrier share on a quiet host, such as the places of its tensors, is no such doubt.
        """
        noise = dict(self.noise)
        return _share_in(noise) if noise.get("disturbed_rounds") else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EndToEnd(Timed):
    """The samples of a whole model; `model` is its key."""

    model: str
    name: str

    @property
    def busy(self) -> float:
        """The share by which its latency may be wrong, as the host was not quiet; 0 if it was, or is not known."""
        return _share_in(dict(self.noise))


def _share_in(noise: dict[str, Fact]) -> float:
    share = noise.get("shared")
    return max(0.0, share) if isinstance(share, float) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks(DatedRecord):
    """The highest speeds that a number of threads reached together on a system.

    `arithmetic` has billions of 32-bit floating-point operations per second, by instruction set. `bandwidth` has
    billions of bytes read per second, by `memory` and `shared cache`.
    """

    system: str
    threads: int
    arithmetic: Constants
    bandwidth: Constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof(DatedRecord):
    """A what-if that was carried out: a whole model before and after the change, timed in alternating rounds.

    - `model` is the key of the model before the change, and `what_if` the id of the change, such as `parallel-2`.
    - Samples of the same place are of the same round. `before` and `after` are their statistics.
    - Gains are shares of the latency that the change saves, per item if the batch sizes differ. `gain` is measured.
    """

    model: str
    name: str
    system: str
    what_if: str
    kind: str
    runtime: str
    level: Level
    batch_size: int
    changed_runtime: str
    changed_level: Level
    changed_batch_size: int
    before: Statistics
    after: Statistics
    gain: float
    gain_low: float
    gain_high: float
    # At the time of the proof.
    predicted_gain: float
    predicted_low: float
    predicted_high: float
    samples_ms: tuple[float, ...]
    changed_samples_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTest(DatedRecord):
    """A scenario that MLPerf LoadGen carried out; `model` is the key of the model.

    - `kind`, `percentile`, `bound_ms`, `batch_size` and `instances` are those of the scenario.
    - `rate` has the requests per second that a server was sent. If `sought`, it is the highest within the bound.
    - `valid` is LoadGen's verdict, and `reasons` why it is negative.
    - `latencies` has the time of each request from when it was due to its answer, packed by `pack_latencies`.
    """

    model: str
    name: str
    system: str
    runtime: str
    level: Level
    kind: str
    percentile: float
    bound_ms: float | None
    rate: float | None
    sought: bool
    batch_size: int
    instances: int
    per_second: float
    valid: bool
    reasons: tuple[str, ...]
    queries: int
    seconds: float
    # What passing a request to the worker and back adds to its inference.
    passing_ms: float
    # How much longer a request takes whose instance was idle for a while before it.
    wake_up_ms: float
    latencies: str

    @property
    def found_per_second(self) -> float:
        """The requests per second that the test has found: those that were sent if it sought the highest rate."""
        return self.rate if self.sought and self.rate is not None else self.per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance(DatedRecord):
    """Where the results of a run on one runtime come from: everything beside the system and runtime that names them.

    - `run` is the id of the run. Proofs and load tests belong to no run: theirs is their own UUID.
    - `packages` has the versions of dlbricks, Python, the framework, and the libraries in it, such as `onednn`.
    - `host` has facts about the system at the time, such as `kernel` and `governor`.
    - `models` has the SHA-256 of each model's file, unpacked, by the key of the model.
    - `evaluation` names the evaluation that asked for the run, and `unmet` its requirements that were not met.
    """

    run: str
    system: str
    runtime: str
    protocol: str
    packages: Facts
    host: Facts
    models: Facts
    evaluation: str = ""
    unmet: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Import(DatedRecord):
    """Records that came from a file of results, by their UUIDs; a large file has several of these.

    - `file` is the file's name, with its place in the gallery that it came with.
    - `signer` is the verified signer of the file; empty if it is unsigned.
    """

    file: str
    signer: str
    records: tuple[str, ...]


Result = Measurement | EndToEnd
Record = (
    BrickForm
    | System
    | RuntimeRecord
    | Peaks
    | Run
    | Provenance
    | Failure
    | Proof
    | LoadTest
    | EndToEnd
    | Measurement
    | Import
)
