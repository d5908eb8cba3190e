"""The request of a run, stored in its folder, so that any process can execute or resume it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.jobs.folder import stored_request
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive, StoppingRule
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level, Numbers, Shape
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.runtime.variant import kernels_in_words, threads_in_words


class ModelChoice(NamedTuple):
    """A model by name and file."""

    name: str
    path: Path


class RuntimeChoice(NamedTuple):
    """A runtime, the files of the models that it reads, and how it times their bricks."""

    runtime: Runtime
    models: tuple[ModelChoice, ...]
    method: Method


class InputShape(NamedTuple):
    """The shape of an input, as given by the user."""

    name: str
    shape: Shape


class InputValue(NamedTuple):
    """The value of an input, as given by the user."""

    name: str
    value: Numbers


class SuiteChoice(NamedTuple):
    """A suite of bricks to measure, and the file for their results."""

    folder: Path
    results: Path


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """When a run ends early, and what it repeats."""

    time_budget_seconds: float | None = None
    # Half of the interval of each estimate, as a share of it, at which no further brick is measured; None: all are.
    target: float | None = None
    # True: try again what failed before under the same conditions.
    retry_failed: bool = False
    # True: measure again what is known, because hosts change.
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(RunLimits):
    """Models, how they are cut, the runtime, and the stopping rule."""

    models: tuple[ModelChoice, ...]
    runtime: Runtime
    # Further runtimes that measure their models, one after another.
    others: tuple[RuntimeChoice, ...] = ()
    inputs: tuple[InputShape, ...] = ()
    values: tuple[InputValue, ...] = ()
    # Empty: that of each model.
    batch_sizes: tuple[int, ...] = ()
    level: Level = Level.FUSED
    cutting: Cutting = field(default_factory=Cutting)
    rule: StoppingRule = field(default_factory=Adaptive)
    end_to_end: bool = False
    time_limits: TimeLimits = field(default_factory=TimeLimits)
    # None: all memory of the host.
    memory_limit_bytes: int | None = None
    method: Method = Method.ALONE
    # Instead of models.
    suite: SuiteChoice | None = None
    # The most bricks of a probe, which measures the most informative ones; None: all bricks are measured.
    probe_bricks: int | None = None
    # The keys of the only bricks to measure; empty: all that the models need.
    only: tuple[str, ...] = ()
    # False: only whole models are timed.
    bricks: bool = True
    # True: estimates predict no missing brick.
    measured_only: bool = False
    # The evaluation that asked for the run, and its requirements that this system does not meet.
    evaluation: str = ""
    unmet: tuple[str, ...] = ()

    @property
    def model_names(self) -> tuple[str, ...]:
        """The names of the models, or of the suite."""
        if self.suite is not None:
            return (f"suite {self.suite.folder.name}",)
        found = (model.name for models in (self.models, *(it.models for it in self.others)) for model in models)
        return tuple(dict.fromkeys(found))

    @property
    def parts(self) -> tuple["RunRequest", ...]:
        """The requests of each runtime alone, in the order in which they measure."""
        first = replace(self, others=())
        others = (replace(first, runtime=it.runtime, models=it.models, method=it.method) for it in self.others)
        return (first, *others)

    @property
    def measured_cutting(self) -> Cutting:
        """The way to cut a model into what is timed: inside of networks only layers are, of which sequences consist."""
        return Cutting() if self.method is Method.INSIDE else self.cutting

    def first_runtime(self, memory_bytes: int) -> Runtime:
        """Return the runtime of the worker that times first, on a host with so much memory."""
        runtime = self.runtime
        if self.method is Method.INSIDE:
            timed, profiled = runtime.as_timed(), runtime.for_profiling()
            runtime = timed if self.end_to_end and timed.identity != profiled.identity else profiled
        return runtime.limited_to(self.memory_limit_bytes or memory_bytes)

    def with_runtimes(self, change: Callable[[Runtime], Runtime]) -> "RunRequest":
        """Return the request with each runtime changed."""
        others = tuple([it._replace(runtime=change(it.runtime)) for it in self.others])
        return replace(self, runtime=change(self.runtime), others=others)

    def part_label(self, part: "RunRequest") -> str:
        """Return what tells a part from the others, such as its runtime or its threads; empty for the only part."""
        runtimes, own = [each.runtime for each in self.parts], part.runtime.settings
        words = [runtime_title(part.runtime.name)] if len({each.name for each in runtimes}) > 1 else []
        if len({each.settings.threads for each in runtimes}) > 1:
            words.append(threads_in_words(own.threads))
        if len({each.settings.precision for each in runtimes}) > 1:
            words.append(own.precision.value)
        if len({each.kernels for each in runtimes}) > 1:
            words += kernels_in_words(part.runtime.kernels)
        return ", ".join(words)

    def sources(self, library: Library) -> tuple[ModelSource, ...]:
        """Return the models with everything that the library knows of them."""
        known = {ModelChoice(source.name, source.path): source for source in library.sources()}
        return tuple(known.get(model) or source_of(model.path) for model in self.models)


def can_be_inside(rule: StoppingRule, runtime: Runtime, level: Level) -> bool:
    """True if layers run one after another: others cannot be timed inside of a network."""
    is_fused_away = level is Level.WRITTEN and runtime.traits.always_fuses
    return isinstance(rule, Adaptive) and runtime.at_once == 1 and not is_fused_away


def can_be_alone(runtime: Runtime, level: Level) -> bool:
    """True if a brick is the same layer in a separate program. Some runtimes fuse it anew there, in other layouts."""
    return level is Level.WRITTEN or not runtime.traits.always_fuses


def usual_method(rule: StoppingRule, runtime: Runtime, level: Level) -> Method:
    return Method.INSIDE if can_be_inside(rule, runtime, level) else Method.ALONE


def chosen(sources: Sequence[ModelSource]) -> tuple[ModelChoice, ...]:
    """Return the models by name and absolute path, because a run works in a separate folder."""
    return tuple(ModelChoice(source.name, source.path.absolute()) for source in sources)


def read_request(path: Path) -> RunRequest:
    # Requests of earlier versions left the number of threads to the framework.
    return stored_request(path, RunRequest, "run").with_runtimes(lambda runtime: runtime.on(processors_here()))
