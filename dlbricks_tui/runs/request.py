"""The request of a run, stored in its folder, so that any process can execute or resume it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns, StoppingRule
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level, Numbers, Shape
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.regular_files import read_json
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.variant import Precision, kernels_in_words, threads_in_words

_SCHEMA = 1
_RULES: Mapping[str, type[StoppingRule]] = {"adaptive": Adaptive, "fixed": FixedRuns}


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

    def with_runtimes(self, change: Callable[[Runtime], Runtime]) -> "RunRequest":
        """Return the request with each runtime changed."""
        others = tuple([it._replace(runtime=change(it.runtime)) for it in self.others])
        return replace(self, runtime=change(self.runtime), others=others)

    def part_label(self, part: "RunRequest") -> str:
        """Return what tells a part from the others, such as its runtime or its threads; empty for the only part."""
        runtimes, own = [each.runtime for each in self.parts], part.runtime.settings
        words = [part.runtime.name] if len({each.name for each in runtimes}) > 1 else []
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


def write_request(path: Path, request: RunRequest) -> None:
    try:
        write_atomically(path, json.dumps(request_document(request), indent=2) + "\n")
    except OSError as error:
        raise RunError(
            f"cannot write {path}: {error.strerror}; make it writable, or choose another data folder"
        ) from error


def request_document(request: RunRequest) -> dict[str, Any]:
    """Return a request as JSON values."""
    document = asdict(request)
    document["models"] = _written(request.models)
    document["others"] = [
        {"runtime": asdict(it.runtime), "models": _written(it.models), "method": it.method} for it in request.others
    ]
    document["suite"] = None if request.suite is None else [str(path) for path in request.suite]
    document["rule"] = {"kind": "adaptive" if isinstance(request.rule, Adaptive) else "fixed", **document["rule"]}
    return {"schema": _SCHEMA, **document}


def _written(models: Sequence[ModelChoice]) -> list[list[str]]:
    return [[model.name, str(model.path)] for model in models]


def read_request(path: Path) -> RunRequest:
    try:
        document = read_json(path)
        schema = document["schema"]
        if schema == _SCHEMA:
            # Requests of earlier versions left the number of threads to the framework.
            return request_from(document).with_runtimes(lambda runtime: runtime.on(processors_here()))
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}; start a new run") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} is no request of a run ({error!r}); start a new run") from error
    raise RunError(f"{path} was written with schema {schema!r}; this version reads schema {_SCHEMA}; start a new run")


def request_from(document: Mapping[str, Any]) -> RunRequest:
    """Return the request that JSON values stand for.

    Other values raise ValueError, KeyError, TypeError or AttributeError.
    """
    cutting, rule = document["cutting"], dict(document["rule"])
    budget = document["time_budget_seconds"]
    suite = document["suite"]
    return RunRequest(
        models=_models_from(document["models"]),
        runtime=_runtime_from(document["runtime"]),
        # Requests of earlier versions have no others, no values, no batch sizes and no probes.
        others=tuple(
            RuntimeChoice(_runtime_from(it["runtime"]), _models_from(it["models"]), Method(it["method"]))
            for it in document.get("others", ())
        ),
        inputs=tuple(InputShape(name, tuple(shape)) for name, shape in document["inputs"]),
        batch_sizes=tuple(document.get("batch_sizes", ())),
        values=tuple(InputValue(name, tuple(value)) for name, value in document.get("values", ())),
        level=Level(document["level"]),
        cutting=Cutting(cutting["granularity"], Cut(cutting["cut"]), LayerOrder(cutting["order"])),
        rule=_RULES[rule.pop("kind")](**rule),
        time_budget_seconds=None if budget is None else float(budget),
        # Requests of earlier versions have no target.
        target=None if document.get("target") is None else float(document["target"]),
        end_to_end=bool(document["end_to_end"]),
        retry_failed=bool(document["retry_failed"]),
        again=bool(document["again"]),
        time_limits=TimeLimits(**document["time_limits"]),
        memory_limit_bytes=document["memory_limit_bytes"],
        method=Method(document["method"]),
        suite=None if suite is None else SuiteChoice(*map(Path, suite)),
        probe_bricks=document.get("probe_bricks"),
        # Requests of earlier versions measure all bricks.
        only=tuple(map(str, document.get("only", ()))),
        # Requests of earlier versions have bricks.
        bricks=bool(document.get("bricks", True)),
        # Requests of earlier versions come from no evaluation.
        evaluation=str(document.get("evaluation", "")),
        unmet=tuple(map(str, document.get("unmet", ()))),
    )


def _models_from(models: Sequence[Sequence[str]]) -> tuple[ModelChoice, ...]:
    return tuple([ModelChoice(name, Path(path)) for name, path in models])


def _runtime_from(runtime: Mapping[str, Any]) -> Runtime:
    settings = runtime["settings"]
    environment = tuple((str(name), str(value)) for name, value in settings["environment"])
    # Requests of earlier versions have no precision.
    precision = Precision(settings.get("precision", Precision.F32))
    found = Settings(**{**settings, "environment": environment, "precision": precision})
    return Runtime(**{**runtime, "settings": found})
