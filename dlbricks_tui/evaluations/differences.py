"""The named differences between an earlier result and today's, and the earlier result that is nearest to it."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dlbricks_tui.evaluations.baseline import Baseline, is_told
from dlbricks_tui.evaluations.evaluation import SHORT_HASH, RecordedResult
from dlbricks_tui.runtime.traits import TRAITS, runtime_title
from dlbricks_tui.runtime.variant import threads_in_words
from dlbricks_tui.settings.setting import plain
from dlbricks_tui.settings.variant import KERNELS
from dlbricks_tui.store.change import Timing
from dlbricks_tui.store.records import Fact, Facts

NOT_SET = "not set"
# The titles of facts in messages. All others have the name of the fact.
TITLES = {
    "cpu": "processor",
    "memory_gib": "memory (GiB)",
    "instance_type": "instance type",
    "hyper_threading": "hyper-threading",
    "vectors": "instruction sets",
    "quota_cores": "time quota (cores)",
    "onednn": "oneDNN",
    "python": "Python",
    "os": "operating system",
}


# The parts of a variant beside its threads.
_PARTS = {
    "batch": "batch size",
    "precision": "precision",
    "instructions": "instruction set of the kernels",
    "optimisation": "graph optimisation",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A circumstance that was another one for the earlier result."""

    subject: str
    was: str
    now: str

    @property
    def in_words(self) -> str:
        """The difference as messages show it."""
        return f"{self.subject}: {self.was} before, {self.now} now"


@dataclass(frozen=True, slots=True)
class ComparableTimings:
    """The timings of two results: both end to end, or both estimates, or neither if there are no such two.

    Those of different batch sizes are per item.
    """

    was: Timing | None
    now: Timing | None
    end_to_end: bool = False
    per_item: bool = False


def differences(was: RecordedResult, now: RecordedResult) -> tuple[Difference, ...]:
    """Return all known circumstances of two results of a model that differ, those that users choose first."""
    return tuple(_differences(was, now))


def _differences(was: RecordedResult, now: RecordedResult) -> Iterator[Difference]:
    if was.sha256 and now.sha256 and was.sha256 != now.sha256:
        yield Difference("model content", was.sha256[:SHORT_HASH], now.sha256[:SHORT_HASH])
    pairs = (
        ("framework", runtime_title(was.framework), runtime_title(now.framework)),
        ("threads", threads_in_words(was.threads), threads_in_words(now.threads)),
        *((title, *(str(plain(it.parts[part])) for it in (was, now))) for part, title in _PARTS.items()),
    )
    yield from (Difference(*pair) for pair in pairs if pair[1] != pair[2])
    for name in sorted({*was.variables, *now.variables}):
        before, after = was.variables.get(name, NOT_SET), now.variables.get(name, NOT_SET)
        if before != after:
            yield Difference(f"variable {name}", before, after)
    if was.framework == now.framework and was.version != now.version:
        yield Difference(f"{runtime_title(now.framework)} version", was.version, now.version)
    # A framework's own package has its version.
    yield from _facts(was.packages, now.packages, without={*_packages(now.framework), now.framework})
    yield from _facts(was.host, now.host)


def _facts(was: Facts, now: Facts, without: Iterable[str] = ()) -> Iterator[Difference]:
    """Yield the facts that both tell and that differ."""
    before, left_out = {name: fact for name, fact in was if is_told(fact)}, set(without)
    for name, value in now:
        if name in before and name not in left_out and is_told(value) and not _is_same(before[name], value):
            yield Difference(TITLES.get(name, name), _said(before[name]), _said(value))


def _is_same(was: Fact, now: Fact) -> bool:
    if isinstance(was, float) or isinstance(now, float):
        both_numbers = isinstance(was, int | float) and isinstance(now, int | float)
        return both_numbers and math.isclose(was, now)  # type: ignore[arg-type]
    return was == now


def _said(value: Fact) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)


def _packages(framework: str) -> tuple[str, ...]:
    return TRAITS[framework].packages if framework in TRAITS else ()


def nearest(now: Baseline, earlier: Iterable[Baseline]) -> Baseline | None:
    """Return the earlier result of the same model and framework that differs least; of equal ones the newest.

    None if the framework has no earlier result of the model.
    """
    same = now.result.model, now.result.framework
    fitting = [it for it in earlier if (it.result.model, it.result.framework) == same]
    by_age = sorted(fitting, key=lambda it: it.result.when, reverse=True)
    return min(by_age, key=lambda it: _distance(it.result, now.result), default=None)


def _distance(was: RecordedResult, now: RecordedResult) -> tuple[float, ...]:
    """Return how far two results differ: what changes latencies most comes first."""
    return (
        abs(math.log2(was.batch / now.batch)),
        was.precision is not now.precision,
        # A result without a latency is the last choice.
        was.measured_ms is None and was.estimate_ms is None,
        _threads_apart(was.threads, now.threads),
        *(was.parts[it.field] is not now.parts[it.field] for it in KERNELS),
        len(_differing(was.variables, now.variables)),
        was.version != now.version,
    )


def _threads_apart(was: int | None, now: int | None) -> float:
    if was is None or now is None:
        return 0.0 if was is now else math.inf
    return abs(math.log2(was / now))


def _differing(was: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    return {name for name, _ in set(was.items()) ^ set(now.items())}


def comparable(was: Baseline, now: Baseline) -> ComparableTimings:
    """Return the timings of two results that can be compared: of the whole model if both have one, else estimates."""
    sizes = was.result.batch, now.result.batch
    items = sizes if sizes[0] != sizes[1] else (1, 1)
    for end_to_end in (True, False):
        before, after = (it.timing if end_to_end else _estimate(it.result) for it in (was, now))
        if before is not None and after is not None:
            both = before.per_item(items[0]), after.per_item(items[1])
            return ComparableTimings(*both, end_to_end, per_item=sizes[0] != sizes[1])
    return ComparableTimings(None, None)


def _estimate(result: RecordedResult) -> Timing | None:
    value, low, high = result.estimate_ms, result.estimate_low_ms, result.estimate_high_ms
    if value is None or low is None or high is None:
        return None
    return Timing(value_ms=value, low_ms=low, high_ms=high)
