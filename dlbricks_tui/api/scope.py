"""Options of estimates, and the system, runtimes and level whose measurements they select."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.api.opening import CutOptions, RuntimeOptions
from dlbricks_tui.estimate.compositions import NO_RULES, EstimateError, read_rules
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.lookup import levels_measured
from dlbricks_tui.estimate.system_estimate import find_runtime, find_system, format_of
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import TRAITS, Format, traits_of
from dlbricks_tui.runtime.variant import (
    ANY_VARIANT,
    AskedVariant,
    Kernels,
    Variant,
    stated_kernels,
    stated_precision,
    stated_threads,
    stated_variant,
    states,
    without_variant,
)
from dlbricks_tui.settings.cutting import WORKERS
from dlbricks_tui.settings.setting import fields_of, require_allowed
from dlbricks_tui.settings.variant import BATCH, KERNELS, THREADS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import by_id, combinations, equal


class NamedRuntime(NamedTuple):
    """A runtime as users name it: by its own name, or by that of its framework."""

    asked: str
    framework: str
    # The runtime of this host.
    here: Runtime | None
    # None for the name of a framework, which stands for all runtimes that have it.
    identity: str | None

    @property
    def format(self) -> Format:
        """The format of the models that it runs."""
        return traits_of(self.framework).format

    def require_format_of(self, source: ModelSource) -> None:
        """Raise EstimateError if the runtime does not run a model."""
        if self.format not in source.formats:
            raise EstimateError(
                f"runtime {self.asked} runs {self.format.value} models, and {source.name} is one of "
                f"{source.format.value}: name another --runtime, or none"
            )

    def all_in(self, store: ResultsDatabase) -> frozenset[str]:
        """Return the identities of the runtimes of a store that have this name."""
        if self.identity is not None:
            return frozenset({self.identity})
        return frozenset(it.id for it in store.runtimes() if it.framework == self.framework)


def named_runtime(asked: str, data: DataFolder, store: ResultsDatabase) -> NamedRuntime:
    """Return the runtime of that name: a registered one, one of a framework, or one of the store."""
    registry = Registry(data.path)
    if asked in TRAITS:
        with suppress(RegistryError):
            usual = registry.find(asked)
            return NamedRuntime(asked, asked, usual, usual.identity if usual.name == asked else None)
        return NamedRuntime(asked, asked, None, None)
    registered = registry.known()
    named = next((it for it in registered if it.name == asked), None)
    if named is not None:
        return NamedRuntime(asked, named.framework, named, named.identity)
    known = by_id(store.runtimes())
    identity = find_runtime(asked, known)
    here = next((it for it in registered if it.identity == identity), None)
    return NamedRuntime(asked, known[identity].framework, here, identity)


def usual_runtimes(data: DataFolder, usual: str | None, asked: AskedVariant = ANY_VARIANT) -> Mapping[Format, Runtime]:
    """Return the runtime of this host for each format, by the settings, of those that can have a variant."""
    registry = Registry(data.path)
    return registry.one_of_each_format(registry.find(usual) if usual else None, asked)


@dataclass(frozen=True, slots=True)
class RuntimeVariants:
    """A runtime with any number of threads, in any precision, with any limits on its kernels."""

    # Without the variant.
    identity: str
    name: str
    framework: str
    form: Format
    # The runtime of this host.
    here: Runtime | None
    # The identities of the variants with results on the system.
    measured: tuple[str, ...]

    def variant(self, variant: Variant) -> Runtime | None:
        """Return the runtime of this host in a variant; raise RegistryError if its framework lacks it."""
        return None if self.here is None else self.here.with_variant(variant)

    def identity_of(self, variant: Variant) -> str:
        """Return the identity of a variant: one with results, or one of this host."""
        for each in self.measured:
            if stated_variant(each, variant.batch) == variant:
                return each
        runtime = self.variant(variant)
        return self.identity if runtime is None else runtime.identity


class MeasuredRuntimes:
    """The runtimes with results on a system, and those of this host."""

    def __init__(self, data: DataFolder, store: ResultsDatabase, system: str) -> None:
        self.system = system
        self._data, self._store = data, store
        self._levels: dict[str, tuple[Level, ...]] = {}
        self.registered: Sequence[Runtime] = Registry(data.path).known()
        self._stored = by_id(store.runtimes())
        ways = combinations(store.select(equal(system=system), order=()))
        self.measured = tuple(dict.fromkeys(it.runtime for it in ways if it.runtime.partition("-")[0] in TRAITS))
        self._of_models: dict[str, set[str]] | None = None

    def with_results(self, source: ModelSource) -> list[RuntimeVariants]:
        """Return the runtimes with results that run a model."""
        return [it for it in self._grouped(self.measured) if it.form in source.formats]

    def named(self, asked: str, source: ModelSource) -> list[RuntimeVariants]:
        """Return the runtimes of a name that run a model: those with results, else the one of this host."""
        found = named_runtime(asked, self._data, self._store)
        found.require_format_of(source)
        identities = {without_variant(each) for each in found.all_in(self._store)}
        measured = [it for it in self._grouped(self.measured) if it.identity in identities]
        # The registry says what to install.
        return measured or self._grouped([(found.here or Registry(self._data.path).find(asked)).identity])

    def usual(self, source: ModelSource, usual_runtime: str | None) -> RuntimeVariants:
        """Return the runtime of this host that a run of a model would take."""
        usual = usual_runtimes(self._data, usual_runtime, AskedVariant())
        found = usual.get(source.format) or Registry(self._data.path).runtime_for(source.formats)
        return self._grouped([found.identity])[0]

    def _grouped(self, identities: Iterable[str]) -> list[RuntimeVariants]:
        variants: dict[str, list[str]] = {}
        for each in identities:
            variants.setdefault(without_variant(each), []).append(each)
        found: list[RuntimeVariants] = []
        for identity, held in variants.items():
            here = next((it for it in self.registered if without_variant(it.identity) == identity), None)
            stored = self._stored.get(held[0])
            form = format_of(stored) if here is None else here.traits.format
            known = here or stored
            name, framework = (known.name, known.framework) if known else (identity, identity.partition("-")[0])
            measured = tuple([each for each in held if each in self.measured])
            found.append(RuntimeVariants(identity, name, framework, form, here, measured))
        return found

    def of_model(self, name: str) -> Collection[str]:
        """Return the identities of the runtimes with results that name a model: of runs, or of the whole model."""
        if self._of_models is None:
            timed = self._store.select(equal(of="model", system=self.system), order=())
            named = set(zip(timed.values("name"), timed.values("runtime"), strict=True))
            named |= {(it, run.runtime) for run in self._store.runs() if run.system == self.system for it in run.models}
            self._of_models = {}
            for model, identity in named:
                self._of_models.setdefault(model, set()).add(identity)
        return self._of_models.get(name, ())

    def is_plain(self, identity: str) -> bool:
        """Return whether a runtime has the engine with which models are timed, or one of this host names another."""
        variables = {name for name, _ in TRAITS[identity.partition("-")[0]].default_engine}
        names_engine = any(word.partition("=")[0] in variables for word in identity.split(" "))
        return not names_engine or any(it.with_identity(identity) is not None for it in self.registered)

    def of(self, identity: str) -> Runtime:
        """Return the runtime of an identity: a variant of one of this host, or as the store describes it."""
        for each in self.registered:
            if (found := each.with_identity(identity)) is not None:
                return found
        # It is not on this host: the identity says all.
        stored = self._stored.get(identity)
        first, *words = identity.split(" ")
        framework, _, version = first.partition("-")
        python = next((word.removeprefix("python-") for word in words if word.startswith("python-")), "")
        variables = [word.partition("=") for word in words if "=" in word]
        environment = tuple(sorted((name, value) for name, _, value in variables))
        settings = Settings(stated_threads(identity), environment, precision=stated_precision(identity))
        return Runtime(stored.name if stored else framework, "", framework, version, python, settings)

    def loading(self, runtime: Runtime) -> Runtime | None:
        """Return the runtime that reads models as this one fuses them; threads do not matter.

        None: the usual one of its format.
        """
        here = [it for it in self.registered if it.framework == runtime.framework]
        alike = next((it for it in here if it.version == runtime.version), here[0] if here else None)
        if alike is None:
            return None
        settings = replace(
            alike.settings, precision=runtime.settings.precision, environment=runtime.settings.environment
        )
        return replace(alike, settings=settings) if alike.computes_in(runtime.settings.precision) else None

    def levels(self, identity: str) -> tuple[Level, ...]:
        """Return the levels with results of a runtime."""
        if identity not in self._levels:
            self._levels[identity] = levels_measured(self._store, self.system, identity)
        return self._levels[identity]

    def batch_sizes(self, model: str) -> tuple[int, ...]:
        """Return the batch sizes at which a model was timed end to end."""
        found = self._store.select(equal(of="model", name=model, system=self.system), order=()).numbers("batch_size")
        return tuple(sorted({int(size) for size in found.tolist()}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionOptions(CutOptions):
    """Options that select measurements of models, beside the runtime. None: the stored results decide."""

    level: Level | None = None
    # A system by its id, name or instance type. None: this host.
    system: str | None = None
    # The threads of the settings, which count unless a number is given.
    usual_threads: int | None = None
    # Predict no missing brick.
    measured_only: bool = False

    def system_in(self, store: ResultsDatabase) -> str:
        """Return the id of the system whose measurements count."""
        return fingerprint().id if self.system is None else find_system(self.system, by_id(store.systems()))

    def memory_bytes_in(self, store: ResultsDatabase) -> int | None:
        """Return the memory of that system; None where it is not known."""
        host = fingerprint()
        return {**by_id(store.systems()), host.id: host}[self.system_in(store)].memory_bytes or None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOptions(RuntimeOptions, SelectionOptions):
    """Options of an estimate: cutting, composition and the measurements to use. None: the stored results decide."""

    # Compose for this many workers, too.
    workers: int | None = None
    # A TOML file that says which layers may run in parallel.
    rules: Path | None = None

    def __post_init__(self) -> None:
        require_allowed(self, (WORKERS, THREADS, BATCH), EstimateError)

    def variant_of(self, runtime: Runtime) -> Runtime:
        """Return a runtime with the threads, the precision and the kernels of these options."""
        threads = self.usual_threads if self.threads is None else self.threads
        return runtime.with_variant(self).with_threads(threads)

    def optimising_alike(self, runtime: Runtime) -> Runtime:
        """Return a runtime with the precision and the kernels of these options, which decide about its graphs."""
        return runtime.with_precision(self.precision).with_kernels(self)

    @property
    def chooses(self) -> bool:
        """True if these options name the runtime or a part of its variant."""
        return self.runtime is not None or self.threads is not None or self.exclude_runtimes

    @property
    def exclude_runtimes(self) -> bool:
        """True if not every runtime can have the precision and the kernels of these options."""
        return self.precision is not None or any(limit is not None for limit in fields_of(self, KERNELS).values())

    def kernels_of(self, identity: str) -> Kernels:
        """Return the limits on kernels of these options; what they leave open is as in the identity of a runtime."""
        own = stated_kernels(identity)
        return replace(own, **{field: limit for field, limit in fields_of(self, KERNELS).items() if limit})

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

    def threads_taken(self, source: ModelSource, runtime: str) -> int | None:
        """Return the number of threads by which a runtime differs from the usual one; None if that is not all."""
        usual, threads = self.usual.get(source.format), stated_threads(runtime)
        if usual is None or threads is None or runtime == usual.identity:
            return None
        return threads if usual.with_threads(threads).identity == runtime else None
