"""The settings of a run, and those that it begins with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlbricks_tui.answers.measuring import MOST_MODELS_END_TO_END
from dlbricks_tui.config.config import Config
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.library import ModelSource, shared_formats
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.variant import (
    USUAL_KERNELS,
    InstructionSet,
    Optimisation,
    Precision,
)
from dlbricks_tui.tui.choices import Choices, next_of

# The settings that a session keeps from run to run; all others belong to the models of a run.
_GENERAL = ("method", "end_to_end", "target", "budget_seconds", "retry_failed")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of a run."""

    choices: Choices
    # The names of the runtimes that measure, one after another, and those to choose from.
    chosen: tuple[str, ...]
    runtimes: tuple[str, ...]
    # None is the default method.
    method: Method | None = None
    end_to_end: bool = False
    target: float = 0.01
    budget_seconds: float | None = None
    # The time of a probe, which measures only the bricks that tell most; None: an ordinary run.
    probe_seconds: float | None = None
    threads: tuple[int, ...] = ()
    batch_sizes: tuple[int, ...] = ()
    precisions: tuple[Precision, ...] = (Precision.F32,)
    # The limits on the kernels; none: without a limit.
    instructions: tuple[InstructionSet, ...] = ()
    optimisations: tuple[Optimisation, ...] = ()
    retry_failed: bool = False
    again: bool = False

    def stepped(self, name: str, values: Sequence[Any], step: int) -> "RunSettings":
        """Return the settings with one of them at the next of its values."""
        return self.with_value(name, next_of(tuple(values), getattr(self, name), step))

    def with_value(self, name: str, value: Any) -> "RunSettings":
        """Return the settings with another value of one of them."""
        return replace(self, **{name: value})

    def with_choices(self, **changed: Any) -> "RunSettings":
        """Return the settings with other choices."""
        return replace(self, choices=replace(self.choices, **changed))


def settings_for(
    choices: Choices,
    sources: Sequence[ModelSource],
    data: DataFolder,
    config: Config,
    last: RunSettings | None = None,
    of_session: RunSettings | None = None,
) -> RunSettings:
    """Return the initial settings: those of the last run of these models, or of the config.

    General settings are those of the session's last run. Many models are not timed end to end, which would take too
    long. The runtime has to match the format of the models.
    """
    registry = Registry(data.path)
    runtimes = runtimes_for(registry, sources)
    before = last or _first(choices, registry, runtimes, config)
    if (general := of_session or last) is not None:
        before = replace(before, **{name: getattr(general, name) for name in _GENERAL})
    # Of several runtimes of the last run, those count that run these models.
    kept_runtimes = tuple(name for name in before.chosen if name in runtimes)
    chosen = kept_runtimes or (next(name for name in (config.runtime, *runtimes) if name in runtimes),)
    few = len(sources) <= MOST_MODELS_END_TO_END
    # Repeating known measurements, or a probe, applies to one run only.
    kept = replace(before, end_to_end=few and before.end_to_end, again=False, probe_seconds=None)
    return _in_view(replace(kept, choices=choices, chosen=chosen, runtimes=runtimes), registry)


def _in_view(settings: RunSettings, registry: Registry) -> RunSettings:
    """Return the settings with the variant in view, unless they have it among others."""
    batch, threads, precision = settings.choices.batch, settings.choices.threads, settings.choices.precision
    chosen = None if settings.choices.runtime is None else registry.with_identity(settings.choices.runtime)
    if chosen is not None and chosen.name in settings.runtimes:
        threads = chosen.settings.threads if threads is None else threads
        if chosen.name not in settings.chosen:
            settings = replace(settings, chosen=(chosen.name,))
    if precision not in settings.precisions:
        settings = replace(settings, precisions=(precision,))
    if threads is not None and threads not in settings.threads:
        settings = replace(settings, threads=(threads,))
    if batch not in (settings.batch_sizes or (None,)):
        settings = replace(settings, batch_sizes=() if batch is None else (batch,))
    kernels = settings.choices.kernels
    instructions, optimisation = kernels.instructions, kernels.optimisation
    if instructions not in (settings.instructions or (USUAL_KERNELS.instructions,)):
        limits = () if instructions is USUAL_KERNELS.instructions else (instructions,)
        settings = replace(settings, instructions=limits)
    if optimisation not in (settings.optimisations or (USUAL_KERNELS.optimisation,)):
        levels = () if optimisation is USUAL_KERNELS.optimisation else (optimisation,)
        settings = replace(settings, optimisations=levels)
    return settings


def runtimes_for(registry: Registry, sources: Sequence[ModelSource]) -> tuple[str, ...]:
    """Return the runtimes that run all these models, the default first."""
    formats = shared_formats(sources)
    usual = registry.runtime_for(formats)
    others = [it.name for it in registry.all() if it.traits.format in formats and it.name != usual.name]
    return (usual.name, *others)


def _first(choices: Choices, registry: Registry, runtimes: tuple[str, ...], config: Config) -> RunSettings:
    # An unknown runtime in the config is an error.
    runtime = runtimes[0] if config.runtime is None else registry.find(config.runtime).name
    return RunSettings(
        choices,
        (runtime,),
        runtimes,
        end_to_end=True,
        target=config.target_ci,
        budget_seconds=config.time_budget,
        threads=() if config.threads is None else (config.threads,),
    )
