"""The settings of a run: those that it begins with, and their rows in the box before it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from dlbricks_tui.answers.measuring import MOST_MODELS_END_TO_END, MeasureOptions
from dlbricks_tui.config.config import Config
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host import processor
from dlbricks_tui.host.processor import HostFiles
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource, shared_formats
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision, Variant, several, without_variant
from dlbricks_tui.settings.cutting import CUT, CUTTING, GRANULARITY, LEVEL
from dlbricks_tui.settings.measuring import (
    AGAIN,
    END_TO_END,
    METHOD,
    PROBE_SECONDS,
    RETRY_FAILED,
    TARGET_INTERVAL,
    TIME_BUDGET,
)
from dlbricks_tui.settings.setting import fields_of
from dlbricks_tui.settings.variant import (
    BATCH,
    EXECUTION,
    INSTRUCTIONS,
    OPTIMISATION,
    PRECISION,
    RUNTIME,
    THREADS,
    USUAL_EXECUTION,
)
from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.widgets.form import FormRow
from dlbricks_tui.wording.numbers import duration, percent

# The settings that a session keeps from run to run; all others belong to the models of a run.
_GENERAL = ("method", "end_to_end", "target_interval", "time_budget_seconds", "retry_failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(MeasureOptions):
    """The options of a run, with several values of a variant; an empty tuple is the usual value."""

    # The names of the runtimes that measure, one after another, and those to choose from.
    runtime: tuple[str, ...] = ()
    registered: tuple[str, ...] = ()
    precision: tuple[Precision, ...] = (Precision.F32,)
    end_to_end: bool = False
    target_interval: float = 0.01
    # The time of a probe, which measures only the bricks that tell most; None: an ordinary run.
    probe_seconds: float | None = None


def _each_and_all(settings: RunSettings) -> tuple[tuple[str, ...], ...]:
    names = settings.registered
    every = tuple((name,) for name in names)
    return (*every, names) if len(names) > 1 else every


def _instruction_sets(_: RunSettings) -> tuple[tuple[InstructionSet, ...], ...]:
    """Return each set of this processor, and the widths of its vectors together."""
    found = [it for it in processor.instruction_sets(HostFiles()) if it is not InstructionSet.ALL]
    widths = tuple([it for it in (InstructionSet.AVX2, InstructionSet.AVX512_CORE) if it in found])
    together = ((*widths, InstructionSet.ALL),) if widths else ()
    return (*((each,) for each in found), *together)


def _time(seconds: float | None, otherwise: str) -> str:
    return otherwise if seconds is None else duration(seconds)


_BASIC = (
    FormRow(setting=RUNTIME, meaning="the runtime that runs the bricks", many=True, offered=_each_and_all),
    FormRow(setting=THREADS, many=True, usual="default"),
    FormRow(setting=BATCH, many=True, usual="the file's"),
    FormRow(setting=TIME_BUDGET, usual="none", words=lambda it: _time(it.time_budget_seconds, "none")),
)
RUN_ROWS = (
    *_BASIC,
    FormRow(setting=LEVEL),
    FormRow(setting=GRANULARITY),
    FormRow(setting=CUT),
    FormRow(setting=METHOD, usual="default"),
    FormRow(setting=END_TO_END),
    FormRow(setting=TARGET_INTERVAL, words=lambda it: f"±{percent(it.target_interval, 1)}"),
    FormRow(
        setting=PROBE_SECONDS,
        label="probe",
        kept_in="probe_seconds",
        usual="no",
        words=lambda it: _time(it.probe_seconds, "no"),
    ),
    FormRow(setting=PRECISION, many=True),
    FormRow(setting=INSTRUCTIONS, many=True, usual="all", offered=_instruction_sets),
    FormRow(setting=OPTIMISATION, many=True, usual="all"),
    FormRow(setting=AGAIN, label="measured before"),
    FormRow(setting=RETRY_FAILED, label="failed before"),
)


def shown_rows(settings: RunSettings, models: int, *, expert: bool) -> tuple[FormRow, ...]:
    """Return the rows to show: all of them to an expert, else the basic ones and those that are not as usual."""
    usual = RunSettings(runtime=settings.runtime, end_to_end=models <= MOST_MODELS_END_TO_END)
    return tuple(it for it in RUN_ROWS if expert or it in _BASIC or it.shown(settings) != it.shown(usual))


class WantedCombination(NamedTuple):
    """A combination to measure: a runtime by its identity or name, its variant, and the level of the layers."""

    runtime: str
    variant: Variant
    level: Level
    # True: its latency is known, and is measured again.
    again: bool = False


def exactly(settings: RunSettings, wanted: Sequence[WantedCombination], data: DataFolder) -> list[RunSettings]:
    """Return the settings of the fewest runs that measure these combinations and no others.

    Raise a RegistryError if one has no runtime on this host.
    """
    registered = {without_variant(it.identity): it.name for it in Registry(data.path).known()}
    rows: dict[WantedCombination, list[int]] = {}
    for it in wanted:
        name = registered.get(without_variant(it.runtime))
        if name is None:
            raise RegistryError(f"this host has no runtime {it.runtime}: `dlbricks runtimes` lists those it has")
        rows.setdefault(WantedCombination(name, replace(it.variant, batch=1), it.level, it.again), []).append(
            it.variant.batch
        )
    # Rows with the same batch sizes share a run; the usual number of threads has no others beside it.
    threads: dict[tuple[WantedCombination, tuple[int, ...], bool], list[int]] = {}
    for it, sizes in rows.items():
        number = it.variant.threads
        alike = it._replace(variant=replace(it.variant, threads=None))
        threads.setdefault((alike, tuple(sizes), number is None), []).extend([] if number is None else [number])
    # So do runtimes with the same rows.
    runtimes: dict[tuple[WantedCombination, tuple[int, ...], tuple[int, ...]], list[str]] = {}
    for (it, batch, _), numbers in threads.items():
        runtimes.setdefault((it._replace(runtime=""), batch, tuple(numbers)), []).append(it.runtime)
    found = []
    for (it, batch, several_threads), names in runtimes.items():
        precision, kernels = it.variant.precision, it.variant.kernels
        variant = replace(
            settings,
            runtime=tuple(names),
            threads=several_threads,
            batch=batch,
            level=it.level,
            again=it.again,
            end_to_end=True,
            precision=(Precision.F32 if precision is Precision.FILE else precision,),
            instructions=() if kernels.instructions is InstructionSet.ALL else (kernels.instructions,),
            optimisation=() if kernels.optimisation is Optimisation.ALL else (kernels.optimisation,),
        )
        found.append(variant)
    return found


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
    before = last or _first(registry, runtimes, config)
    if (general := of_session or last) is not None:
        before = replace(before, **{name: getattr(general, name) for name in _GENERAL})
    # Of several runtimes of the last run, those count that run these models.
    kept_runtimes = tuple(name for name in before.runtime if name in runtimes)
    few = len(sources) <= MOST_MODELS_END_TO_END
    kept = replace(
        before,
        runtime=kept_runtimes or (next(name for name in (config.runtime, *runtimes) if name in runtimes),),
        registered=runtimes,
        **fields_of(choices, (LEVEL, *CUTTING)),
        end_to_end=few and before.end_to_end,
        # Repeating known measurements, or a probe, applies to one run only.
        again=False,
        probe_seconds=None,
    )
    return _in_view(kept, choices, registry)


def _in_view(settings: RunSettings, choices: Choices, registry: Registry) -> RunSettings:
    """Return the settings with the variant in view, unless they have it among others."""
    threads = choices.threads
    chosen = None if choices.runtime is None else registry.with_identity(choices.runtime)
    if chosen is not None and chosen.name in settings.registered:
        threads = chosen.settings.threads if threads is None else threads
        if chosen.name not in settings.runtime:
            settings = replace(settings, runtime=(chosen.name,))
    if threads is not None and threads not in several(settings.threads):
        settings = replace(settings, threads=(threads,))
    seen: dict[str, Any] = {"batch": choices.batch, "precision": choices.precision, **asdict(choices.kernels)}
    for it in EXECUTION:
        value, usual = seen[it.field], USUAL_EXECUTION.get(it)
        if value not in (several(getattr(settings, it.field)) or (usual,)):
            # The row of the precision names the usual one.
            stated: Any = () if value is usual and it is not PRECISION else (value,)
            settings = replace(settings, **{it.field: stated})
    return settings


def runtimes_for(registry: Registry, sources: Sequence[ModelSource]) -> tuple[str, ...]:
    """Return the runtimes that run all these models, the default first."""
    formats = shared_formats(sources)
    usual = registry.runtime_for(formats)
    others = [it.name for it in registry.all() if it.traits.format in formats and it.name != usual.name]
    return (usual.name, *others)


def _first(registry: Registry, runtimes: tuple[str, ...], config: Config) -> RunSettings:
    # An unknown runtime in the config is an error.
    runtime = runtimes[0] if config.runtime is None else registry.find(config.runtime).name
    return RunSettings(
        runtime=(runtime,),
        end_to_end=True,
        target_interval=config.target_ci,
        time_budget_seconds=config.time_budget,
        threads=() if config.threads is None else (config.threads,),
    )
