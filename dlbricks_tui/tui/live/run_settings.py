"""How a run is to measure, as rows that are changed on the spot."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.config.config import Config
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.request import CalibrationPolicy, InputShape, RunRequest, chosen, usual_method
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.tui.choices import Choices, among, next_of
from dlbricks_tui.tui.opened import ModelId, id_of
from dlbricks_tui.wording.numbers import duration, percent

TARGETS = (0.005, 0.01, 0.02, 0.05)
BUDGETS_SECONDS = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0)
# Whole models take longer than all their bricks together.
MOST_MODELS_END_TO_END = 3


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a run goes by; threads None leaves their number to the runtime."""

    choices: Choices
    # By name, and those among which it is chosen.
    runtime: str
    runtimes: tuple[str, ...]
    # None: the usual one.
    method: Method | None = None
    end_to_end: bool = False
    target: float = 0.01
    budget_seconds: float | None = None
    threads: int | None = None
    retry_failed: bool = False
    again: bool = False


class RunSetting(Enum):
    """What can be set, in the order of the rows."""

    LEVEL = "level"
    GRANULARITY = "granularity"
    CUT = "cut"
    METHOD = "method"
    END_TO_END = "end to end"
    TARGET = "target interval"
    BUDGET = "time budget"
    RUNTIME = "runtime"
    THREADS = "threads"
    KNOWN = "known before"
    RETRY = "failed before"


def settings_for(
    choices: Choices, sources: Sequence[ModelSource], data: Path, config: Config, last: RunSettings | None = None
) -> RunSettings:
    """Where a person begins: as last time, at first as the config says.

    Whole models are left out where there are many, as they take too long, and a runtime of another format is not taken.
    """
    registry = Registry(data)
    runtimes = _runtimes(registry, sources)
    before = last or _first(choices, registry, runtimes, config)
    runtime = next(name for name in (before.runtime, config.runtime, *runtimes) if name in runtimes)
    few = len(sources) <= MOST_MODELS_END_TO_END
    # To measure again is meant once.
    kept = replace(before, end_to_end=few and before.end_to_end, again=False)
    return replace(kept, choices=choices, runtime=runtime, runtimes=runtimes)


def shown(setting: RunSetting, settings: RunSettings) -> tuple[str, str]:
    """The value of a setting in words, and what it means."""
    return _ROWS[setting].shown(settings), _ROWS[setting].meaning


def changed(setting: RunSetting, settings: RunSettings, step: int) -> RunSettings:
    """The settings with one of them at its next value, or (step -1) at the one before."""
    return _ROWS[setting].changed(settings, step)


def request_for(
    sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]], settings: RunSettings, data: Path
) -> RunRequest:
    """What the run is asked to do; `shapes` are those that were given of inputs."""
    choices = settings.choices
    runtime = _with_threads(Registry(data).find(settings.runtime), settings.threads)
    rule = Adaptive(target=settings.target)
    usual = usual_method(choices.cutting, rule, runtime)
    return RunRequest(
        models=chosen(sources),
        runtime=runtime,
        inputs=_inputs(sources, shapes),
        level=choices.level,
        cutting=choices.cutting,
        rule=rule,
        time_budget_seconds=settings.budget_seconds,
        end_to_end=settings.end_to_end,
        retry_failed=settings.retry_failed,
        again=settings.again,
        calibration=CalibrationPolicy.ONCE,
        # What cannot be timed inside of networks is timed alone, whatever was chosen.
        method=usual if settings.method is None or usual is Method.ALONE else settings.method,
    )


def _runtimes(registry: Registry, sources: Sequence[ModelSource]) -> tuple[str, ...]:
    """Those that run all these models, the usual one first."""
    usual = registry.runtime_for({source.format for source in sources})
    others = [it.name for it in registry.all() if it.traits.format is usual.traits.format and it.name != usual.name]
    return (usual.name, *others)


def _first(choices: Choices, registry: Registry, runtimes: tuple[str, ...], config: Config) -> RunSettings:
    # A runtime that there is none of is not to be passed over in silence.
    runtime = runtimes[0] if config.runtime is None else registry.find(config.runtime).name
    return RunSettings(
        choices,
        runtime,
        runtimes,
        end_to_end=True,
        target=config.target_ci,
        budget_seconds=config.time_budget,
        threads=config.threads,
    )


def _with_threads(runtime: Runtime, threads: int | None) -> Runtime:
    return runtime if threads is None else replace(runtime, settings=replace(runtime.settings, threads=threads))


def _inputs(sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]]) -> tuple[InputShape, ...]:
    given = {source.name: dict(shapes.get(id_of(source), {})) for source in sources}
    first = next(iter(given.values()), {})
    apart = [name for name, its in given.items() if its and any(its != other for other in given.values())]
    if apart:
        # The inputs of a run are those of all its models: they are mostly called alike.
        raise RunError(f"{apart[0]} has input shapes of its own: run it by itself, without other models marked")
    return tuple(InputShape(name, shape) for name, shape in first.items())


@dataclass(frozen=True, slots=True)
class _Row:
    shown: Callable[[RunSettings], str]
    changed: Callable[[RunSettings, int], RunSettings]
    meaning: str


def _chosen(change: Callable[[Choices, int], Choices]) -> Callable[[RunSettings, int], RunSettings]:
    return lambda settings, step: replace(settings, choices=change(settings.choices, step))


def _target(settings: RunSettings, step: int) -> RunSettings:
    return replace(settings, target=next_of(among(TARGETS, settings.target), settings.target, step))


def _budget(settings: RunSettings, step: int) -> RunSettings:
    known = (None, *among(BUDGETS_SECONDS, settings.budget_seconds))
    return replace(settings, budget_seconds=next_of(known, settings.budget_seconds, step))


def _threads(settings: RunSettings, step: int) -> RunSettings:
    known = (None, *among(range(1, (os.cpu_count() or 1) + 1), settings.threads))
    return replace(settings, threads=next_of(known, settings.threads, step))


_ROWS = {
    RunSetting.LEVEL: _Row(
        lambda it: it.choices.level.value,
        _chosen(lambda choices, step: replace(choices, level=next_of(tuple(Level), choices.level, step))),
        "layers as fused, or as in the file",
    ),
    RunSetting.GRANULARITY: _Row(
        lambda it: f"{it.choices.granularity}",
        _chosen(lambda choices, step: choices.with_granularity(choices.granularity + step)),
        "the most layers of a brick",
    ),
    RunSetting.CUT: _Row(
        lambda it: it.choices.cut.value,
        _chosen(lambda choices, step: replace(choices, cut=next_of(tuple(Cut), choices.cut, step))),
        "which windows of layers are bricks",
    ),
    RunSetting.METHOD: _Row(
        lambda it: "usual" if it.method is None else it.method.value,
        lambda settings, step: replace(settings, method=next_of((None, *Method), settings.method, step)),
        "bricks inside of networks, or alone",
    ),
    RunSetting.END_TO_END: _Row(
        lambda it: "yes" if it.end_to_end else "no",
        lambda settings, _: replace(settings, end_to_end=not settings.end_to_end),
        "whole models too, as a check",
    ),
    RunSetting.TARGET: _Row(
        lambda it: f"±{percent(it.target, 1)}",
        _target,
        "how well a brick is to be known",
    ),
    RunSetting.BUDGET: _Row(
        lambda it: "none" if it.budget_seconds is None else duration(it.budget_seconds),
        _budget,
        "stop then with what is known",
    ),
    RunSetting.RUNTIME: _Row(
        lambda it: it.runtime,
        lambda settings, step: replace(settings, runtime=next_of(settings.runtimes, settings.runtime, step)),
        "what executes the bricks",
    ),
    RunSetting.THREADS: _Row(
        lambda it: "default" if it.threads is None else f"{it.threads}",
        _threads,
        "that the framework computes with",
    ),
    RunSetting.KNOWN: _Row(
        lambda it: "run again" if it.again else "leave out",
        lambda settings, _: replace(settings, again=not settings.again),
        "bricks that were measured before",
    ),
    RunSetting.RETRY: _Row(
        lambda it: "try again" if it.retry_failed else "leave out",
        lambda settings, _: replace(settings, retry_failed=not settings.retry_failed),
        "bricks that failed in an earlier run",
    ),
}
