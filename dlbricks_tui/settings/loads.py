"""The settings of a scenario: how requests arrive, and how they are served."""

from dataclasses import replace
from enum import Enum

from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runtime.variant import CHOSEN_PRECISIONS
from dlbricks_tui.scenarios.kinds import MOST_USERS, ScenarioKind
from dlbricks_tui.settings.language import GENERATE, PROMPT, WEIGHTS
from dlbricks_tui.settings.setting import Setting, flag, number, one_of, percentile, whole
from dlbricks_tui.settings.variant import BATCH_SIZES, PRECISION

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
    kind=whole(1, _MOST_INSTANCES, *range(1, min(processors_here().to_use, _MOST_INSTANCES) + 1)),
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


class UserLoad(str, Enum):
    """Kinds of load beside the scenarios of MLPerf."""

    # Users of a language model.
    TOKENS = "tokens"


ANY_KIND = replace(
    KIND,
    kind=one_of(*ScenarioKind, *UserLoad),
    about=f"{KIND.about}; `tokens`, by users of a language model",
)
_PRECISIONS: tuple[Enum, ...] = (*CHOSEN_PRECISIONS, WeightPrecision.INT4)
ANY_PRECISION: Setting[Enum] = replace(  # type: ignore[assignment]
    PRECISION,
    kind=one_of(*_PRECISIONS),  # type: ignore[arg-type]
    about=f"{PRECISION.about}; with `tokens`, how the weights are stored: int4, int8 or f32",
    usual=f"{PRECISION.usual}; `tokens` {WEIGHTS.usual}",
)
_MOST_DELAY_MS, _MOST_TOKEN_MS, _MOST_PAUSE_S = 1e7, 1e6, 1e5
FIRST_TOKEN = Setting(
    name="first token",
    kind=number(_MOST_DELAY_MS, 500.0, 1000.0, 2000.0, 5000.0, sign="MS"),
    about="with `tokens`: the bound of the time to the first token in milliseconds",
    default=2000.0,
    usual="2000",
    spelled="first-token-ms",
    kept_in="first_token_ms",
)
PER_TOKEN = Setting(
    name="per token",
    kind=number(_MOST_TOKEN_MS, 50.0, 100.0, 200.0, sign="MS"),
    about="with `tokens`: the bound of the time for each later token in milliseconds, the mean of an answer",
    default=100.0,
    usual="100",
    spelled="per-token-ms",
    kept_in="per_token_ms",
)
USERS = Setting(
    name="users",
    kind=whole(1, MOST_USERS, 1, 2, 4, 8),
    about="with `tokens`: so many users, who each wait for their answer before they ask again",
    usual="the most within both bounds",
)
THINK = Setting(
    name="think",
    kind=number(_MOST_PAUSE_S, 1.0, 10.0, 30.0, sign="S"),
    about="with `tokens`: users pause for so many seconds between an answer and their next request, at random",
    usual="no pause, the hardest case",
    spelled="think-s",
    kept_in="think_s",
)
TOKENS = (USERS, PROMPT, GENERATE, FIRST_TOKEN, PER_TOKEN, THINK)
# How requests arrive, and how they are served beside their batches.
ARRIVAL = (KIND, PERCENTILE, BOUND, RATE)
SERVING = (INSTANCES, FULL)
