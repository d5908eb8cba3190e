"""What executes: an interpreter, the framework in it, and the settings that it starts with."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

# Variables that change what a framework does or how fast it does it.
TUNING_PREFIXES = (
    "OMP_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "MKLDNN_",
    "DNNL_",
    "ONEDNN_",
    "OPENBLAS_",
    "MXNET_",
    "NNVM_",
    "ORT_",
    "MALLOC_",
)
THREADS_VARIABLE = "OMP_NUM_THREADS"
# More of them no host has cores for, and frameworks crash when they cannot start theirs.
MOST_THREADS = 1024

# They lead an interpreter to the modules of another one.
FOREIGN_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__", "VIRTUAL_ENV")


class Format(str, Enum):
    """What models are written in: a framework runs one format."""

    MXNET = "MXNet"
    ONNX = "ONNX"


MXNET, ONNX_RUNTIME = "mxnet", "onnxruntime"
# By these variables a framework runs several operators at once; MXNet only those that its engine gets singly.
_AT_ONCE: Mapping[str, str] = {MXNET: "MXNET_CPU_WORKER_NTHREADS", ONNX_RUNTIME: "ORT_INTER_OP_THREADS"}
_SINGLY = ("MXNET_EXEC_BULK_EXEC_INFERENCE", "0")
# MXNet's operators run in the order of the graph when the thread that asks computes them.
_IN_ORDER = ("MXNET_ENGINE_TYPE", "NaiveEngine")
# What each framework runs.
FRAMEWORKS: Mapping[str, Format] = {MXNET: Format.MXNET, ONNX_RUNTIME: Format.ONNX}


def format_run_by(framework: str) -> Format:
    """Which models a framework runs; what nobody knows by name was always one of MXNet's."""
    return FRAMEWORKS.get(framework, Format.MXNET)


@dataclass(frozen=True, slots=True)
class Settings:
    """What is fixed before the framework is imported; `threads` None leaves their number to the framework.

    The memory limit is one of the address space, and changes no result.
    """

    threads: int | None = None
    environment: tuple[tuple[str, str], ...] = ()
    memory_limit_bytes: int | None = None


UNTUNED = Settings()


@dataclass(frozen=True, slots=True)
class Runtime:
    """One way to execute; its name is for people only."""

    name: str
    python: str
    framework: str
    version: str
    python_version: str
    settings: Settings = UNTUNED

    @property
    def runs(self) -> Format:
        """Which models it runs."""
        return format_run_by(self.framework)

    def with_threads(self, threads: int | None) -> "Runtime":
        """The same with so many threads; None leaves their number as it is."""
        return self if threads is None else replace(self, settings=replace(self.settings, threads=threads))

    def side_by_side(self, operators: int) -> "Runtime":
        """The same with so many operators of a model at the same time."""
        variables = dict(self.settings.environment) | {_AT_ONCE[self.framework]: str(operators)}
        if self.framework == MXNET:
            variables |= [_SINGLY]
        return replace(self, settings=replace(self.settings, environment=tuple(variables.items())))

    def for_profiling(self) -> "Runtime":
        """The same, so that its profiler can tell operators apart; MXNet's tells them by their order only."""
        if self.framework != MXNET:
            return self
        return replace(self, settings=replace(self.settings, environment=(*self.settings.environment, _IN_ORDER)))

    @property
    def at_once(self) -> int:
        """How many operators of a model it runs at the same time where they do not need one another."""
        variables = dict(self.settings.environment)
        number = variables.get(_AT_ONCE.get(self.framework, ""), "")
        singly = self.framework != MXNET or _SINGLY in variables.items()
        return int(number) if number.isdecimal() and int(number) > 1 and singly else 1

    @property
    def identity(self) -> str:
        """What of it can change a result: two runtimes of one identity are the same runtime."""
        threads = "default" if self.settings.threads is None else str(self.settings.threads)
        # The numbers after the minor one bring repairs, and would orphan all results of a host at each update.
        python = ".".join(self.python_version.split(".")[:2])
        chosen = [f"{name}={value}" for name, value in sorted(self.settings.environment)]
        return " ".join([f"{self.framework}-{self.version}", f"python-{python}", f"threads-{threads}", *chosen])

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of its processes: of what tunes a framework, the settings and nothing inherited."""
        foreign = FOREIGN_VARIABLES if self.python != sys.executable else ()
        kept = {
            name: value
            for name, value in inherited.items()
            if name not in foreign and not name.startswith(TUNING_PREFIXES)
        }
        if self.settings.threads is not None:
            kept[THREADS_VARIABLE] = str(self.settings.threads)
        return kept | dict(self.settings.environment)


def settings_from(inherited: Mapping[str, str]) -> Settings:
    """The settings that the variables of a shell amount to."""
    tuning = {name: value for name, value in inherited.items() if name.startswith(TUNING_PREFIXES)}
    threads = tuning.get(THREADS_VARIABLE, "")
    if threads.isdecimal() and int(threads) > 0:
        del tuning[THREADS_VARIABLE]
        return Settings(int(threads), tuple(sorted(tuning.items())))
    return Settings(None, tuple(sorted(tuning.items())))
