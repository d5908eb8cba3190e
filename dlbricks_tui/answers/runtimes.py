"""The runtimes that a name or the settings stand for, and the variants of them that have results."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from dlbricks_tui.estimate.errors import EstimateError
from dlbricks_tui.estimate.selection import find_runtime, format_of
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import TRAITS, Format, traits_of
from dlbricks_tui.runtime.variant import (
    Kernels,
    Precision,
    stated_kernels,
    stated_precision,
    stated_threads,
    without_variant,
)
from dlbricks_tui.store import records
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.selections import by_id, combinations


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


def usual_runtimes(
    data: DataFolder, usual: str | None, threads: int | None, precision: Precision | None = None
) -> Mapping[Format, Runtime]:
    """Return the runtime of this host for each format, by the settings, of those that have the precision."""
    registry = Registry(data.path)
    named = registry.find(usual) if usual else None
    if named is not None and not named.computes_in(precision):
        named = None
    found = registry.one_of_each_format(named, precision)
    return {form: runtime.with_threads(threads) for form, runtime in found.items()}


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

    def variant(self, threads: int | None, precision: Precision, kernels: Kernels) -> Runtime | None:
        """Return the runtime of this host in a variant; raise RegistryError if its framework lacks it."""
        if self.here is None:
            return None
        found = self.here.with_threads(threads).with_precision(precision)
        return found.with_kernels(kernels.instructions, kernels.optimisation)

    def identity_of(self, threads: int | None, precision: Precision, kernels: Kernels) -> str:
        """Return the identity of a variant: one with results, or one of this host."""
        for each in self.measured:
            if (stated_threads(each), stated_precision(each), stated_kernels(each)) == (threads, precision, kernels):
                return each
        runtime = self.variant(threads, precision, kernels)
        return self.identity if runtime is None else runtime.identity


class RuntimesOnSystem:
    """The runtimes whose results on a system may count for a model."""

    def __init__(self, data: DataFolder, store: ResultsDatabase, system: str) -> None:
        self._data = data
        self._store = store
        self.registered: Sequence[Runtime] = Registry(data.path).known()
        self._stored: Mapping[str, records.Runtime] = by_id(store.runtimes())
        ways = combinations(store.select(equal(system=system), order=()))
        self._measured = tuple(dict.fromkeys(it.runtime for it in ways))

    def with_results(self, source: ModelSource) -> list[RuntimeVariants]:
        """Return the runtimes with results that run a model."""
        return [it for it in self._of(self._measured) if it.form in source.formats]

    def named(self, asked: str, source: ModelSource) -> list[RuntimeVariants]:
        """Return the runtimes of a name that run a model: those with results, else the one of this host."""
        found = named_runtime(asked, self._data, self._store)
        found.require_format_of(source)
        identities = {without_variant(each) for each in found.all_in(self._store)}
        measured = [it for it in self._of(self._measured) if it.identity in identities]
        # The registry says what to install.
        return measured or self._of([(found.here or Registry(self._data.path).find(asked)).identity])

    def usual(self, source: ModelSource, usual_runtime: str | None) -> RuntimeVariants:
        """Return the runtime of this host that a run of a model would take."""
        usual = usual_runtimes(self._data, usual_runtime, None)
        found = usual.get(source.format) or Registry(self._data.path).runtime_for(source.formats)
        return self._of([found.identity])[0]

    def _of(self, identities: Iterable[str]) -> list[RuntimeVariants]:
        variants: dict[str, list[str]] = {}
        for each in identities:
            variants.setdefault(without_variant(each), []).append(each)
        return [self._runtime(identity, held) for identity, held in variants.items()]

    def _runtime(self, identity: str, variants: Sequence[str]) -> RuntimeVariants:
        here = next((it for it in self.registered if without_variant(it.identity) == identity), None)
        measured = tuple([each for each in variants if each in self._measured])
        if here is not None:
            return RuntimeVariants(identity, here.name, here.framework, here.traits.format, here, measured)
        stored = self._stored.get(variants[0])
        name = identity if stored is None else stored.name
        framework = identity.partition("-")[0] if stored is None else stored.framework
        return RuntimeVariants(identity, name, framework, format_of(stored), None, measured)
