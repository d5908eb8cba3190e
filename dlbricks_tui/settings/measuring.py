"""The settings of a run, on this host or on a fleet: what it measures, and when it is done."""

from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.settings.cutting import LEVEL
from dlbricks_tui.settings.setting import Setting, flag, number, one_of, share, whole

# A longer time is a mistake, and timers do not take all numbers.
MOST_SECONDS = 365 * 86400.0
# The bootstrap of more samples takes too much memory.
_MOST_SAMPLES = 10_000
_MOST_HANGING_SECONDS, _MOST_MEBIBYTES = 86400.0, 1 << 24
MOST_PROBE_SECONDS, MOST_PROBE_BRICKS = 3600.0, 10_000

METHOD = Setting(
    name="method",
    kind=one_of(*Method),
    about="time bricks inside of networks by the runtime's profiler, or each brick alone, as the paper does",
    meaning="bricks inside of networks, or alone",
)
END_TO_END = Setting(
    name="end to end",
    kind=flag(),
    about="time the whole models too",
    meaning="whole models too, as a check",
)
TARGET_INTERVAL = Setting(
    name="target interval",
    kind=share(0.005, 0.01, 0.02, 0.05),
    about="sample until half of the 95 % interval is at most this share of the latency",
    meaning="interval at which a brick is done",
    default=0.02,
    usual="0.02",
    spelled="target-ci",
    config="run.target_ci",
)
FIXED_RUNS = Setting(
    name="fixed runs",
    kind=whole(1, _MOST_SAMPLES),
    about="take N samples of each brick, as the paper does",
)
TARGET = Setting(
    name="target",
    kind=share(),
    about="measure the bricks that narrow the interval most, and predict the others, until half of each estimate's "
    "interval is at most this share, such as 5%",
    usual="measure all",
)
TIME_BUDGET = Setting(
    name="time budget",
    kind=number(MOST_SECONDS, 60, 300, 900, 1800, 3600, 7200, 14400, sign="S"),
    about="stop after this many seconds with the results so far; start-up counts, waiting for other work and pauses "
    "do not",
    meaning="stop after this time",
    usual="none",
    kept_in="time_budget_seconds",
    config="run.time_budget",
)
RETRY_FAILED = Setting(
    name="retry failed",
    kind=flag("try again", "leave out"),
    about="try again bricks that failed in an earlier run",
    meaning="bricks that failed in an earlier run",
    default=False,
)
AGAIN = Setting(
    name="again",
    kind=flag("run again", "leave out"),
    about="measure again bricks that already have results (the host may have changed)",
    meaning="bricks that were measured before",
    default=False,
)
BRICK_TIMEOUT = Setting(
    name="brick timeout",
    kind=number(_MOST_HANGING_SECONDS, sign="S"),
    about="seconds that a brick may hang before it fails",
    usual="60 while it is loaded, 30 afterwards",
    kept_in="brick_timeout_seconds",
)
MEMORY_LIMIT = Setting(
    name="memory limit",
    kind=whole(1, _MOST_MEBIBYTES, sign="MIB"),
    about="memory that a brick may take",
    usual="all there is",
    kept_in="memory_limit_mib",
)
PROBE_SECONDS = Setting(
    name="seconds",
    kind=number(MOST_PROBE_SECONDS, 20, 60, sign="S"),
    about="the time to take",
    meaning="few bricks; the others are predicted",
    default=20.0,
    usual="20",
)
PROBE_BRICKS = Setting(
    name="bricks",
    kind=whole(1, MOST_PROBE_BRICKS),
    about="the most bricks to time one by one, with --method alone",
    default=30,
    usual="30",
)
# What decides when a run is done, and what it repeats.
ENOUGH = (TARGET_INTERVAL, FIXED_RUNS)
RUNNING = (TIME_BUDGET, RETRY_FAILED, AGAIN, BRICK_TIMEOUT, MEMORY_LIMIT)
HOW = (LEVEL, METHOD, *ENOUGH)


@dataclass(frozen=True, kw_only=True)
class HowMeasured:
    """The layers that are timed, how, and until when; None leaves a value to the program."""

    level: Level = Level.FUSED
    method: Method | None = None
    # Sample until half of the 95 % interval is at most this share of the latency.
    target_interval: float | None = None
    # Take this many samples of everything instead.
    fixed_runs: int | None = None


class Question(str, Enum):
    """The question of a fleet run, which ends once it is answered."""

    # The latencies of all models on all hosts: every brick is measured everywhere.
    EVERYTHING = "everything"
    # The order of the hosts for each model.
    WHICH_HOST = "which-host"


QUESTION = Setting(
    name="question",
    kind=one_of(*Question),
    about="which-host: end once the order of the hosts is certain for every model",
    meaning="what to find out",
    default=Question.EVERYTHING,
    usual="everything",
)
PROBE = Setting(
    name="probe seconds",
    kind=number(MOST_PROBE_SECONDS, 10, 20, 60, sign="S"),
    about="time of the first measurements on each host, which tell most",
    meaning="on each host, first of all",
    default=20.0,
    usual="20",
)
