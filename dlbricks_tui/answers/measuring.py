"""Options of a run, and the request that follows from them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dlbricks_tui.answers.opening import CutOptions
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns, StoppingRule
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource, shared_formats
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.request import (
    CalibrationPolicy,
    InputShape,
    InputValue,
    RunRequest,
    can_be_inside,
    chosen,
    usual_method,
)
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format

# A run of more models times no whole models unless it is asked to.
MOST_MODELS_END_TO_END = 3
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions(CutOptions):
    """Options of a run: cutting and measuring. None: the run decides."""

    level: Level = Level.FUSED
    # True: the whole models are timed, too.
    end_to_end: bool | None = None
    method: Method | None = None
    # A registered runtime by its name, and that of the settings, which counts only for models that it runs.
    runtime: str | None = None
    usual_runtime: str | None = None
    threads: int | None = None
    # Sample until half of the 95 % interval is at most this share of the latency.
    target_interval: float | None = None
    # Take this many samples of everything instead.
    fixed_runs: int | None = None
    time_budget_seconds: float | None = None
    # Try again bricks that failed in an earlier run.
    retry_failed: bool = False
    # Measure again bricks that have results.
    again: bool = False
    calibration: CalibrationPolicy = CalibrationPolicy.ONCE
    brick_timeout_seconds: float | None = None
    memory_limit_mib: int | None = None

    def __post_init__(self) -> None:
        _require(self.granularity >= 1, "granularity", self.granularity, "a sequence has 1 layer or more")
        _require(_at_least_one(self.threads), "threads", self.threads, "a framework computes with 1 thread or more")
        for name, seconds in (
            ("time budget", self.time_budget_seconds),
            ("brick timeout", self.brick_timeout_seconds),
        ):
            _require(seconds is None or seconds > 0, name, seconds, "give more than 0 seconds")
        _require(_at_least_one(self.memory_limit_mib), "memory limit", self.memory_limit_mib, "give 1 MiB or more")


def run_request(options: MeasureOptions, sources: Sequence[ModelSource], data: DataFolder) -> RunRequest:
    """Return the request of a run that measures these models."""
    runtime = _runtime(options, shared_formats(sources), data)
    sources = [source.in_format(runtime.traits.format) for source in sources]
    method = _method(options, runtime)
    end_to_end = options.end_to_end
    if end_to_end is None:
        end_to_end = method is Method.INSIDE and len(sources) <= MOST_MODELS_END_TO_END
    return _request(options, runtime, models=sources, end_to_end=end_to_end, method=method)


def suite_request(options: MeasureOptions, carried: Format, data: DataFolder) -> RunRequest:
    """Return the request of a run that measures bricks of this format, without any yet."""
    return _request(options, _runtime(options, {carried}, data))


def _request(
    options: MeasureOptions,
    runtime: Runtime,
    models: Sequence[ModelSource] = (),
    end_to_end: bool = False,
    method: Method = Method.ALONE,
) -> RunRequest:
    timeout, memory_mib = options.brick_timeout_seconds, options.memory_limit_mib
    return RunRequest(
        models=chosen(models),
        runtime=runtime,
        inputs=tuple(InputShape(name, shape) for name, shape in options.inputs.items()),
        values=tuple(InputValue(name, value) for name, value in options.values.items()),
        level=options.level,
        cutting=options.cutting,
        rule=_rule(options),
        time_budget_seconds=options.time_budget_seconds,
        end_to_end=end_to_end,
        retry_failed=options.retry_failed,
        again=options.again,
        calibration=options.calibration,
        time_limits=TimeLimits() if timeout is None else TimeLimits(timeout, timeout),
        memory_limit_bytes=None if memory_mib is None else memory_mib * _MEBIBYTE,
        method=method,
    )


def _method(options: MeasureOptions, runtime: Runtime) -> Method:
    if options.method is None:
        return usual_method(options.cutting, _rule(options), runtime)
    if options.method is Method.INSIDE and not can_be_inside(options.cutting, _rule(options), runtime):
        raise RunError(
            "method inside times single layers that run one after another: leave out granularity, cut and fixed runs, "
            "and choose a runtime that runs one operator at a time, or use method alone"
        )
    return options.method


def _runtime(options: MeasureOptions, formats: Collection[Format], data: DataFolder) -> Runtime:
    registry = Registry(data.path)
    found = registry.find_installed(options.runtime) if options.runtime else None
    if found is None and options.usual_runtime:
        usual = registry.find(options.usual_runtime)
        found = usual if usual.traits.format in formats and usual in registry.all() else None
    return (found or registry.runtime_for(formats)).with_threads(options.threads)


def _rule(options: MeasureOptions) -> StoppingRule:
    if options.fixed_runs is not None:
        return FixedRuns(options.fixed_runs)
    return Adaptive() if options.target_interval is None else Adaptive(target=options.target_interval)


def _at_least_one(number: int | None) -> bool:
    return number is None or number >= 1


def _require(holds: bool, name: str, value: float | None, rule: str) -> None:
    if not holds:
        raise RunError(f"{name} {value:g}: {rule}")
