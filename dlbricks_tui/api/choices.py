"""The settings in view: how models are cut and composed, and which measurements count."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import (
    USUAL_KERNELS,
    Kernels,
    Precision,
    stated_kernels,
    stated_precision,
    stated_threads,
    threads_in_words,
)
from dlbricks_tui.settings.cutting import CUTTING, GRANULARITY, LEVEL, WORKERS
from dlbricks_tui.settings.setting import Setting, fields_of, next_of, with_own
from dlbricks_tui.settings.variant import BATCH, PRECISION, RUNTIME, SYSTEM, THREADS
from dlbricks_tui.settings.workbench import PREDICTIONS, Switch

if TYPE_CHECKING:
    from dlbricks_tui.api.scope import EstimateOptions
    from dlbricks_tui.bricks.decomposition import Cutting
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.runtime.traits import Format
    from dlbricks_tui.store.records import RuntimeRecord, System


Value = TypeVar("Value")
Number = TypeVar("Number", bound=float)


CutAt: TypeAlias = "tuple[Level, Cutting, Format | None, int | None, Precision, Kernels]"


@dataclass(frozen=True, slots=True)
class Choices:
    """The settings of all panels; `system` and `runtime` None mean this host and its best-covered runtime.

    `format` is that of the runtime. It selects the files of models that have several; None is that of the library.
    """

    granularity: int = 1
    level: Level = Level.FUSED
    cut: Cut = Cut.CHAIN
    order: LayerOrder = LayerOrder.BRANCH
    system: str | None = None
    runtime: str | None = None
    workers: int = 2
    format: Format | None = None
    # The images, sentences or rows in an inference; None: as many as the file says.
    batch: int | None = None
    # None: any number of threads that the framework computes with.
    threads: int | None = None
    precision: Precision = Precision.F32
    predictions: Switch = Switch.ON

    @property
    def cutting(self) -> Cutting:
        from dlbricks_tui.bricks.decomposition import Cutting

        return Cutting(self.granularity, self.cut, self.order)

    @property
    def cut_at(self) -> CutAt:
        """The choices on which the bricks of a model depend."""
        return self.level, self.cutting, self.format, self.batch, self.precision, self.kernels

    @property
    def measured_only(self) -> bool:
        """True if the latencies of bricks that were not measured are not predicted."""
        return self.predictions is Switch.OFF

    @property
    def kernels(self) -> Kernels:
        """The limits on the kernels of the runtime."""
        return USUAL_KERNELS if self.runtime is None else stated_kernels(self.runtime)

    def options(self, **others: Any) -> EstimateOptions:
        """Return them as the options of estimates, with other options beside them."""
        # Loaded here: the first screen estimates nothing.
        from dlbricks_tui.api.scope import EstimateOptions

        return EstimateOptions(
            **fields_of(self, (*CUTTING, LEVEL, SYSTEM, RUNTIME, BATCH, WORKERS)),
            # A runtime that was chosen has its own number of threads.
            threads=self.threads if self.runtime is None else None,
            precision=None if self.precision is Precision.F32 else self.precision,
            measured_only=self.measured_only,
            **others,
        )

    def of_single_layers(self) -> Choices:
        """Return the choices with single layers as the file of a model has them, which the paper counts."""
        return replace(self, level=Level.WRITTEN, granularity=1, cut=Cut.CHAIN)

    def of_precision(self, precision: Precision) -> Choices:
        """Return the choices with a precision, and a format whose runtimes have it; a runtime has its own precision."""
        form = None if precision is Precision.F32 else _format_computed_in(precision)
        return replace(self, precision=precision, format=form, runtime=None)


def choices_from(config: Config, data: DataFolder) -> Choices:
    by_default = Choices()
    return Choices(
        format=None if config.runtime is None else _format_read_by(config.runtime, data),
        granularity=config.granularity,
        cut=config.cut,
        order=config.order,
        workers=by_default.workers if config.workers is None else config.workers,
        predictions=config.predictions,
    )


def _format_computed_in(precision: Precision) -> Format | None:
    return next((it.format for it in TRAITS.values() if precision in it.precisions), None)


def _format_read_by(runtime: str, data: DataFolder) -> Format | None:
    from dlbricks_tui.runtime.registry import Registry

    # A run names an unknown runtime in the config.
    with suppress(RegistryError):
        return Registry(data.path).find(runtime).traits.format
    return None


@dataclass(frozen=True, slots=True)
class Available:
    """The systems and runtimes that have measurements."""

    host: str = ""
    systems: tuple[System, ...] = ()
    runtimes: tuple[RuntimeRecord, ...] = ()
    results: int = 0

    def system_name(self, id_: str) -> str:
        return next((it.name for it in self.systems if it.id == id_), id_)

    def runtime_name(self, id_: str) -> str:
        """Return the name of a runtime, with its threads and limits on kernels if others have the same name."""
        name = next((it.name for it in self.runtimes if it.id == id_), id_)
        several = sum(it.name == name for it in self.runtimes) > 1
        words = threads_in_words(stated_threads(id_)), *stated_kernels(id_).words
        return ", ".join([name, *words]) if several else name


NONE_AVAILABLE = Available()


# A newcomer understands these; the others are expert settings.
BASIC_SETTINGS: tuple[Setting[Any], ...] = (RUNTIME, THREADS, BATCH, SYSTEM)
# In the order of their rows.
CHOSEN: tuple[Setting[Any], ...] = (*BASIC_SETTINGS, PRECISION, PREDICTIONS, LEVEL, *CUTTING, WORKERS)


def shown_settings(choices: Choices, *, expert: bool) -> tuple[Setting[Any], ...]:
    """Return the settings to show: all of them to an expert, else the basic ones and those that are not as usual."""
    usual = Choices()
    return tuple(
        it for it in CHOSEN if expert or it in BASIC_SETTINGS or getattr(choices, it.field) != getattr(usual, it.field)
    )


def setting_named(name: str) -> Setting[Any]:
    return next(it for it in CHOSEN if it.name == name)


def change_setting(
    setting: Setting[Any], choices: Choices, step: int, available: Available = NONE_AVAILABLE
) -> Choices:
    """Return the choices with a setting at its next value, or the previous one for `step` -1."""
    value = getattr(choices, setting.field)
    if setting in (GRANULARITY, WORKERS):
        value = value + step if setting.kind.accepts(value + step) else value
    else:
        value = next_of(_values(setting, choices, available), value, step)
    changed = replace(choices, **{setting.field: value})
    if setting is THREADS:
        # A runtime of the store has its own number of threads.
        return replace(changed, runtime=None)
    if setting is RUNTIME:
        # Loaded here: the first screen needs no store.
        from dlbricks_tui.estimate.system_estimate import format_of

        runtime = next((it for it in available.runtimes if it.id == value), None)
        return replace(changed, threads=None, format=None if runtime is None else format_of(runtime))
    if setting is PRECISION:
        return changed.of_precision(changed.precision)
    # Another system has other runtimes.
    return replace(changed, runtime=None, format=None) if setting is SYSTEM else changed


def _values(setting: Setting[Any], choices: Choices, available: Available) -> tuple[Any, ...]:
    if setting is SYSTEM:
        return (None, *(it.id for it in available.systems if it.id != available.host))
    if setting is RUNTIME:
        return (None, *(it.id for it in available.runtimes if stated_precision(it.id) is choices.precision))
    if setting is THREADS:
        measured = (stated_threads(it.id) for it in available.runtimes)
        return (None, *with_own((it for it in measured if it is not None), choices.threads))
    if setting is BATCH:
        return (None, *with_own(setting.kind.offered, choices.batch))
    return setting.kind.offered
