"""Options of estimates, and the system, runtimes and level whose measurements they select."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dlbricks_tui.answers.opening import CutOptions
from dlbricks_tui.answers.runtimes import named_runtime, usual_runtimes
from dlbricks_tui.estimate.errors import EstimateError
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.lookup import levels_measured
from dlbricks_tui.estimate.rules import NO_RULES, read_rules
from dlbricks_tui.estimate.selection import find_system, preferred_level
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import TRAITS, Format
from dlbricks_tui.runtime.variant import (
    InstructionSet,
    Kernels,
    Optimisation,
    Precision,
    stated_kernels,
    stated_precision,
    states,
)
from dlbricks_tui.settings.cutting import WORKERS
from dlbricks_tui.settings.setting import require_allowed
from dlbricks_tui.settings.variant import BATCH, THREADS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import by_id

_THREADS = re.compile(r"threads-(\d{1,4})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOptions(CutOptions):
    """Options of an estimate: cutting, composition and the measurements to use. None: the stored results decide."""

    level: Level | None = None
    # A system by its id, name or instance type. None: this host.
    system: str | None = None
    # A registered runtime by its name, or one of the store.
    runtime: str | None = None
    # The number of threads of that runtime, or of the usual one.
    threads: int | None = None
    # The settings that decide which runtime is the usual one on this host.
    usual_runtime: str | None = None
    usual_threads: int | None = None
    # The number of images, sentences or rows in an inference. None: that of the model's file.
    batch: int | None = None
    precision: Precision | None = None
    # The limits on the kernels of that runtime, or of the usual one.
    instructions: InstructionSet | None = None
    optimisation: Optimisation | None = None
    # Compose for this many workers, too.
    workers: int | None = None
    # A TOML file that says which layers may run in parallel.
    rules: Path | None = None
    # Predict no missing brick.
    measured_only: bool = False

    def __post_init__(self) -> None:
        require_allowed(self, (WORKERS, THREADS, BATCH), EstimateError)

    def variant_of(self, runtime: Runtime) -> Runtime:
        """Return a runtime with the threads, the precision and the kernels of these options."""
        threads = self.usual_threads if self.threads is None else self.threads
        return self.optimising_alike(runtime).with_threads(threads)

    def optimising_alike(self, runtime: Runtime) -> Runtime:
        """Return a runtime with the precision and the kernels of these options, which decide about its graphs."""
        return runtime.with_precision(self.precision).with_kernels(self.instructions, self.optimisation)

    def allow(self, runtime: Runtime) -> bool:
        """Return whether a runtime can have the precision and the kernels of these options."""
        return runtime.computes_in(self.precision) and runtime.has_kernels(self.instructions, self.optimisation)

    @property
    def chooses(self) -> bool:
        """True if these options name the runtime or a part of its variant."""
        return self.runtime is not None or self.threads is not None or self.exclude_runtimes

    @property
    def limit_kernels(self) -> bool:
        """True if these options say which kernels count."""
        return self.instructions is not None or self.optimisation is not None

    @property
    def exclude_runtimes(self) -> bool:
        """True if not every runtime can have the precision and the kernels of these options."""
        return self.precision is not None or self.limit_kernels

    def kernels_of(self, identity: str) -> Kernels:
        """Return the limits on kernels of these options; what they leave open is as in the identity of a runtime."""
        own = stated_kernels(identity)
        return Kernels(self.instructions or own.instructions, self.optimisation or own.optimisation)

    @property
    def allows_any_threads(self) -> bool:
        """True if results of any threads may count."""
        return self.threads is None

    def fits(self, identity: str, wanted: str | None = None) -> bool:
        """Return whether a runtime of this identity has the threads, the precision and the kernels of these options.

        Kernels that they leave open are those of the wanted runtime.
        """
        # The identity of a runtime of the store has its own precision.
        precision = self.precision or stated_precision(self.runtime or "")
        return states(identity, self.threads, precision, self.kernels_of(wanted or self.runtime or ""))

    def compositions(self) -> Options:
        """Return the compositions to make; this reads the file of rules."""
        return Options(self.workers, read_rules(self.rules) if self.rules else NO_RULES, self.measured_only)


@dataclass(frozen=True, slots=True)
class MeasurementScope:
    """The system, the level and the runtimes whose measurements count."""

    system: str
    level: Level
    is_host: bool
    # The format that the runtime of the options reads, and its identity.
    format: Format | None
    named: str | None
    # Otherwise, on this host, the runtimes that a run would take.
    usual: Mapping[Format, Runtime]
    # True if the options name a runtime by its identity, which has its number of threads.
    is_exact: bool = False

    def runtime_for(self, source: ModelSource) -> str | None:
        """Return the identity of the runtime that counts for a model; None for the one that covers most of it."""
        if self.named is not None:
            return self.named
        usual = self.usual.get(source.format)
        return None if usual is None else usual.identity

    def threads_taken(self, source: ModelSource, runtime: str) -> str | None:
        """Return the number of threads by which a runtime differs from the usual one; None if that is not all."""
        usual, found = self.usual.get(source.format), _THREADS.search(runtime)
        if usual is None or found is None or runtime == usual.identity:
            return None
        return found[1] if usual.with_threads(int(found[1])).identity == runtime else None


@dataclass(frozen=True, slots=True)
class ScopeChoice:
    """Chooses whose measurements count, by the options and by what a store has."""

    options: EstimateOptions
    data: DataFolder
    store: ResultsDatabase
    # The format of models that have several, unless the options name a runtime.
    preferred: Format

    def scope_of(self, sources: Sequence[ModelSource]) -> MeasurementScope:
        """Return whose measurements count for these models."""
        system, is_host = self._system()
        form, named = self._named(sources, is_host)
        usual = {form: self.options.variant_of(it) for form, it in (self._usual() if is_host else {}).items()}
        if is_host and form is None and self.options.exclude_runtimes:
            self._refuse_without_runtime(sources, usual)
        is_exact = named is not None and self.options.runtime == named
        found = MeasurementScope(system, Level.FUSED, is_host, form, named, usual, is_exact)
        if self.options.level is not None:
            return replace(found, level=self.options.level)
        wanted = {found.runtime_for(source.in_format(form or self.preferred)) for source in sources}
        return replace(found, level=self._level(system, wanted, others=named is None))

    def _usual(self) -> Mapping[Format, Runtime]:
        """Return the runtime of this host for each format, of those that have the precision and the kernels."""
        usual = usual_runtimes(self.data, self.options.usual_runtime, None, self.options.precision)
        registry = Registry(self.data.path)
        found = ((form, registry.first_for({form}, self.options.allow)) for form in Format)
        others = {form: it for form, it in found if it is not None} if self.options.limit_kernels else {}
        return {**others, **{form: it for form, it in usual.items() if self.options.allow(it)}}

    def _refuse_without_runtime(self, sources: Sequence[ModelSource], usual: Collection[Format]) -> None:
        precision, kernels = self.options.precision or Precision.F32, self.options.kernels_of("")
        limits = kernels.instructions, kernels.optimisation
        for source in sources:
            taken = source.in_format(self.preferred).format
            if taken not in usual:
                others = [
                    it
                    for it in TRAITS.values()
                    if it.format is taken and precision in it.precisions and it.has_kernels(*limits)
                ]
                advice = "".join(f", or add {it.title}: {it.install_here}" for it in others[:1])
                raise EstimateError(
                    f"no runtime here computes {taken.value} models, such as {source.name}, "
                    f"{' with '.join([f'in {precision.value}', *kernels.words])}: "
                    f"choose another {'variant' if kernels.words else 'precision'}{advice}"
                )

    def _system(self) -> tuple[str, bool]:
        host = fingerprint().id
        if self.options.system is None:
            return host, True
        found = find_system(self.options.system, by_id(self.store.systems()))
        return found, found == host

    def _level(self, system: str, wanted: Collection[str | None], *, others: bool) -> Level:
        levels = {level for runtime in wanted for level in levels_measured(self.store, system, runtime)}
        return preferred_level(sorted(levels) or (levels_measured(self.store, system) if others else ()))

    def _named(self, sources: Sequence[ModelSource], is_host: bool) -> tuple[Format | None, str | None]:
        """Return the format and the identity of the runtime that the options name; it has to run all of the models.

        The identity is None if several runtimes count: those of a framework, on another system.
        """
        asked = self.options.runtime
        if asked is None:
            return None, None
        found = named_runtime(asked, self.data, self.store)
        for source in sources:
            found.require_format_of(source)
        if found.here is not None and (is_host or found.identity is not None):
            return found.format, self.options.variant_of(found.here).identity
        return found.format, found.identity
