"""A runtime: an interpreter, the framework in it, and the settings that it starts with."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dlbricks_tui.recorded_host import Processors
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.traits import ENGINES, TRAITS, Traits, Variables, traits_of
from dlbricks_tui.runtime.variant import (
    CACHE_VARIABLE,
    FLASH_ATTENTION_VARIABLE,
    INSTRUCTIONS_VARIABLE,
    OPTIMISATION_VARIABLE,
    AskedVariant,
    CachePrecision,
    FlashAttention,
    InstructionSet,
    Kernels,
    Optimisation,
    Precision,
    stated_cache,
    stated_flash_attention,
    stated_kernels,
    stated_precision,
    stated_threads,
)

# Beginnings of the names of variables that change what a framework computes or how fast.
TUNING_PREFIXES = (
    *("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MALLOC_", CACHE_VARIABLE, FLASH_ATTENTION_VARIABLE),
    *dict.fromkeys(prefix for traits in TRAITS.values() for prefix in traits.variable_prefixes),
)
THREADS_VARIABLE = "OMP_NUM_THREADS"
# Variables of a shell that decide about the number of threads, too.
_THREADS_VARIABLES = (THREADS_VARIABLE, "OMP_THREAD_LIMIT", "MXNET_OMP_MAX_THREADS")
# In place of a number of threads in identities.
THREADS_OF_FRAMEWORK = "threads-default"
PRECISION_VARIABLE = "DLBRICKS_PRECISION"
# oneDNN 3 prefers this name to the other one.
NEWER_INSTRUCTIONS_VARIABLE = "ONEDNN_MAX_CPU_ISA"
# Address space that a framework reserves and never touches.
_RESERVED_BYTES = 8 << 30
# No host has cores for more threads, and frameworks crash when they cannot start theirs.
MOST_THREADS = 1024

# Variables that lead an interpreter to the modules of another one.
FOREIGN_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__", "VIRTUAL_ENV")

Limit = TypeVar("Limit", InstructionSet, Optimisation, CachePrecision, FlashAttention)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that hold before the framework is imported.

    `threads` None stands for the usual number of a host, which the registry there fills in. The memory limit is one of
    the address space, and changes no result.
    """

    threads: int | None = None
    environment: Variables = ()
    memory_limit_bytes: int | None = None
    precision: Precision = Precision.F32


UNTUNED = Settings()


@dataclass(frozen=True, slots=True)
class Runtime:
    """One way to execute models. Its name is only a label."""

    name: str
    python: str
    framework: str
    version: str
    python_version: str
    settings: Settings = UNTUNED

    @property
    def traits(self) -> Traits:
        return traits_of(self.framework)

    def with_threads(self, threads: int | None) -> "Runtime":
        """Return this runtime with that many threads; None keeps their number."""
        return self if threads is None else replace(self, settings=replace(self.settings, threads=threads))

    def on(self, processors: Processors) -> "Runtime":
        """Return this runtime with the number of threads that it starts on these processors."""
        return self.with_threads(stated_threads(numbered_identity(self.identity, processors)))

    def computes_in(self, precision: Precision | None) -> bool:
        """Return whether its framework has this precision; None stands for any."""
        return precision is None or precision in self.traits.precisions

    def with_precision(self, precision: Precision | None) -> "Runtime":
        """Return this runtime with that precision; None keeps it."""
        if precision is None:
            return self
        if not self.computes_in(precision):
            known = ", ".join(each.value for each in self.traits.precisions)
            raise RegistryError(
                f"runtime {self.name} computes in {known} and not in {precision.value}: choose another precision or "
                "another runtime"
            )
        return replace(self, settings=replace(self.settings, precision=precision))

    @property
    def kernels(self) -> Kernels:
        """The limits on the kernels that it chooses from."""
        return stated_kernels(self.identity)

    def can_have(self, asked: AskedVariant) -> bool:
        """Return whether its framework has this precision and these limits on kernels; None stands for any."""
        return self.computes_in(asked.precision) and self.traits.has_kernels(asked)

    def with_variant(self, asked: AskedVariant) -> "Runtime":
        """Return this runtime in a variant; None keeps its own part."""
        return self.with_precision(asked.precision).with_kernels(asked).with_threads(asked.threads)

    def with_kernels(self, limits: Kernels | AskedVariant) -> "Runtime":
        """Return this runtime with these limits on its kernels; None keeps its own."""
        sets, levels = self.traits.instruction_sets, self.traits.optimisations
        found = self._limited(INSTRUCTIONS_VARIABLE, "instruction sets", limits.instructions, sets, str.upper)
        return found._limited(OPTIMISATION_VARIABLE, "optimisation levels", limits.optimisation, levels, str)

    def with_cache(self, wanted: CachePrecision | None) -> "Runtime":
        """Return this runtime with engines that keep keys and values in this precision; None keeps its own."""
        return self._limited(CACHE_VARIABLE, "precisions of the cache", wanted, self.traits.caches, str)

    def with_flash_attention(self, wanted: FlashAttention | None) -> "Runtime":
        """Return this runtime with engines that use flash attention, or do not; None lets them decide."""
        offered = tuple(FlashAttention) if self.traits.has_flash_attention else ()
        return self._limited(FLASH_ATTENTION_VARIABLE, "flash attention", wanted, offered, str)

    @property
    def cache(self) -> CachePrecision | None:
        """The precision in which its engine keeps keys and values; None if it has no engine of language models."""
        return stated_cache(self.identity) or next(iter(self.traits.caches), None)

    def _limited(
        self, variable: str, what: str, wanted: Limit | None, offered: Sequence[Limit], spelled: Callable[[str], str]
    ) -> "Runtime":
        if wanted is None:
            return self
        if wanted not in offered:
            own = f"{self.traits.title} ({self.name})"
            known = ", ".join(it.value for it in offered)
            told = f"the {what} of {own} are {known}" if len(offered) > 1 else f"{own} has no choice of {what}"
            raise RegistryError(f"{told}: leave {wanted.value} out, or choose another runtime")
        is_limit = wanted not in (InstructionSet.ALL, Optimisation.ALL, *self.traits.caches[:1])
        return self._with_variable(variable, spelled(wanted.value) if is_limit else None)

    def _with_variable(self, name: str, value: str | None) -> "Runtime":
        replaced = (name, NEWER_INSTRUCTIONS_VARIABLE) if name == INSTRUCTIONS_VARIABLE else (name,)
        others = {each: held for each, held in self.settings.environment if each not in replaced}
        return self._with_variables(tuple(sorted((others if value is None else {**others, name: value}).items())))

    def with_identity(self, identity: str) -> "Runtime | None":
        """Return the variant of this runtime that has this identity; None if none has it."""
        threads, precision, kernels = stated_threads(identity), stated_precision(identity), stated_kernels(identity)
        found = replace(self, settings=replace(self.settings, threads=threads, precision=precision))
        if found.identity != identity and self.traits.has_kernels(kernels):
            found = found.with_kernels(kernels)
        if (cache := stated_cache(identity)) in self.traits.caches:
            found = found.with_cache(cache)
        if self.traits.has_flash_attention:
            found = found.with_flash_attention(stated_flash_attention(identity))
        return found if found.identity == identity and self.computes_in(precision) else None

    def side_by_side(self, operators: int) -> "Runtime":
        """Return this runtime with that many operators of a model at the same time."""
        number = ((self.traits.parallel_variable, str(operators)), *self.traits.parallel_settings)
        return self._with_variables(tuple((dict(self.settings.environment) | dict(number)).items()))

    def _with_variables(self, variables: Variables) -> "Runtime":
        return replace(self, settings=replace(self.settings, environment=variables))

    def for_profiling(self) -> "Runtime":
        """Return this runtime with the settings that its profiler needs to tell operators apart."""
        return self._with_variables((*self.settings.environment, *self.traits.profiling_settings))

    def as_timed(self) -> "Runtime":
        """Return this runtime with the settings of whole models that are timed: those for profiling, or its own."""
        variables = dict(self.traits.profiling_settings) | dict(self.settings.environment)
        return self._with_variables(tuple(variables.items()))

    def with_default_engine(self) -> "Runtime | None":
        """Return this runtime with the engine that programs get by default; None if whole models are timed with it."""
        found = self
        for name, value in self.traits.default_engine:
            found = found._with_variable(name, dict(self.settings.environment).get(name, value))
        return None if found.identity == self.identity else found

    def for_explaining(self) -> "Runtime":
        """Return this runtime with the settings with which oneDNN prints the kernels that it chooses."""
        return self._with_variables((*self.settings.environment, *self.traits.explaining_settings))

    def for_printing(self) -> "Runtime":
        """Return this runtime with the settings with which oneDNN prints the primitives that it executes."""
        return self._with_variables((*self.settings.environment, *self.traits.printing_settings))

    def limited_to(self, memory_bytes: int) -> "Runtime":
        """Return this runtime with processes that may use so much memory."""
        settings = replace(self.settings, memory_limit_bytes=memory_bytes + _RESERVED_BYTES)
        return replace(self, settings=settings)

    @property
    def at_once(self) -> int:
        """The number of independent operators of a model that it runs at the same time."""
        variables = dict(self.settings.environment)
        number = variables.get(self.traits.parallel_variable, "")
        enabled = variables.items() >= dict(self.traits.parallel_settings).items()
        return int(number) if number.isdecimal() and int(number) > 1 and enabled else 1

    @property
    def identity(self) -> str:
        """Everything about it that can change a result: runtimes of one identity are the same runtime."""
        threads = THREADS_OF_FRAMEWORK if self.settings.threads is None else f"threads-{self.settings.threads}"
        # Without the micro version: an update of Python's bug fixes would orphan all results of a host.
        python = ".".join(self.python_version.split(".")[:2])
        chosen = [f"{name}={value}" for name, value in sorted(self.settings.environment)]
        # A program of its own has no Python.
        facts = [f"{self.framework}-{self.version}", *[f"python-{python}"] * bool(python), threads]
        return " ".join([*facts, *self.stated_precision, *chosen])

    @property
    def stated_precision(self) -> tuple[str, ...]:
        """The precision as identities spell it; the usual one is left out, as results from before there were others."""
        precision = self.settings.precision
        return () if precision is Precision.F32 else (f"precision-{precision.value}",)

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of its processes: its settings, and no inherited variable that tunes a framework."""
        foreign = FOREIGN_VARIABLES if self.python != sys.executable else ()
        kept = {
            name: value
            for name, value in inherited.items()
            if name not in foreign and not name.startswith(TUNING_PREFIXES)
        }
        if self.settings.threads is not None:
            kept[THREADS_VARIABLE] = str(self.settings.threads)
        # Quantised models are computed as their files say.
        is_reduced = self.settings.precision is Precision.BF16
        kept[PRECISION_VARIABLE] = (self.settings.precision if is_reduced else Precision.F32).value
        return kept | dict(self.settings.environment)


def numbered_identity(identity: str, processors: Processors | None) -> str:
    """Return the identity of a runtime with the number of threads that its framework starts, if that is known."""
    traits = {**TRAITS, **ENGINES}.get(identity.partition("-")[0])
    if traits is None or processors is None or any(f" {name}=" in identity for name in _THREADS_VARIABLES):
        return identity
    return identity.replace(f" {THREADS_OF_FRAMEWORK}", f" threads-{traits.usual_threads(processors)}", 1)


def settings_from(inherited: Mapping[str, str]) -> Settings:
    """Return the settings that the variables of a shell amount to."""
    tuning = {name: value for name, value in inherited.items() if name.startswith(TUNING_PREFIXES)}
    threads = None
    if tuning.get(THREADS_VARIABLE, "").isdecimal() and int(tuning[THREADS_VARIABLE]) > 0:
        threads = int(tuning.pop(THREADS_VARIABLE))
    return Settings(threads, tuple(sorted(tuning.items())))
