"""What a run is asked to do; kept beside the run, so that any process can take it up again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.bricks.ordering import Order
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns, StoppingRule
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runtime.runtime import Runtime, Settings

_SCHEMA = 1
_RULES: Mapping[str, type[StoppingRule]] = {"adaptive": Adaptive, "fixed": FixedRuns}


class ModelChoice(NamedTuple):
    """A model by name and file."""

    name: str
    path: Path


class InputShape(NamedTuple):
    """The shape that a person has given of an input."""

    name: str
    shape: Shape


class SuiteChoice(NamedTuple):
    """A suite of somebody's bricks, and the file that their results go to."""

    folder: Path
    results: Path


class CalibrationPolicy(str, Enum):
    """When it is found out what the method misses on this system: where that is not known yet, in any case, or not."""

    ONCE = "once"
    ANEW = "anew"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a program may take before it counts as hanging; many times what it is expected to take comes on top."""

    load_seconds: float = 60.0
    sample_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Models, how they are cut, what executes them, and when it is enough."""

    models: tuple[ModelChoice, ...]
    runtime: Runtime
    inputs: tuple[InputShape, ...] = ()
    level: Level = Level.FUSED
    cutting: Cutting = field(default_factory=Cutting)
    rule: StoppingRule = field(default_factory=Adaptive)
    time_budget_seconds: float | None = None
    end_to_end: bool = False
    # Whether what failed before under the same conditions is tried once more.
    retry_failed: bool = False
    # Whether what is known is measured once more: hosts change.
    again: bool = False
    calibration: CalibrationPolicy = CalibrationPolicy.NEVER
    patience: Patience = Patience()
    # None: as much as the host has.
    memory_limit_bytes: int | None = None
    method: Method = Method.ALONE
    # In the place of models.
    suite: SuiteChoice | None = None

    @property
    def model_names(self) -> tuple[str, ...]:
        """What people call the models, or the suite."""
        if self.suite is not None:
            return (f"suite {self.suite.folder.name}",)
        return tuple(model.name for model in self.models)

    def sources(self, library: Library) -> tuple[ModelSource, ...]:
        """The models with all that the library knows of them."""
        known = {ModelChoice(source.name, source.path): source for source in library.sources()}
        return tuple(known.get(model) or source_of(model.path) for model in self.models)


def can_be_inside(cutting: Cutting, rule: StoppingRule, runtime: Runtime) -> bool:
    """True if the bricks are single layers that run one after another: others cannot be timed inside of a network."""
    single = cutting.granularity == 1 and cutting.cut is Cut.CHAIN
    return single and isinstance(rule, Adaptive) and runtime.at_once == 1


def usual_method(cutting: Cutting, rule: StoppingRule, runtime: Runtime) -> Method:
    """The method of a run where nobody chose one."""
    return Method.INSIDE if can_be_inside(cutting, rule, runtime) else Method.ALONE


def chosen(sources: Sequence[ModelSource]) -> tuple[ModelChoice, ...]:
    """The models that were found, as a request names them; a run works in a folder of its own."""
    return tuple(ModelChoice(source.name, source.path.absolute()) for source in sources)


def write_request(path: Path, request: RunRequest) -> None:
    """Keeps a request."""
    document = asdict(request)
    document["models"] = [[model.name, str(model.path)] for model in request.models]
    document["suite"] = None if request.suite is None else [str(path) for path in request.suite]
    document["rule"] = {"kind": _kind_of(request.rule), **document["rule"]}
    try:
        write_atomically(path, json.dumps({"schema": _SCHEMA, **document}, indent=2) + "\n")
    except OSError as error:
        raise RunError(
            f"cannot write {path}: {error.strerror}; make it writable, or choose another data folder"
        ) from error


def read_request(path: Path) -> RunRequest:
    """The request that was kept."""
    try:
        return _request_from(json.loads(path.read_bytes()))
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}; start the run anew") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} is no request of a run ({error!r}); start the run anew") from error


def _request_from(document: Mapping[str, Any]) -> RunRequest:
    if document["schema"] != _SCHEMA:
        raise ValueError(f"schema {document['schema']}, this dlbricks knows {_SCHEMA}")
    runtime, cutting, rule = document["runtime"], document["cutting"], dict(document["rule"])
    budget = document["time_budget_seconds"]
    # Requests from before there were suites have none.
    suite = document.get("suite")
    return RunRequest(
        models=tuple(ModelChoice(name, Path(path)) for name, path in document["models"]),
        runtime=Runtime(**{**runtime, "settings": _settings_from(runtime["settings"])}),
        inputs=tuple(InputShape(name, tuple(shape)) for name, shape in document["inputs"]),
        level=Level(document["level"]),
        cutting=Cutting(cutting["granularity"], Cut(cutting["cut"]), Order(cutting["order"])),
        rule=_RULES[rule.pop("kind")](**rule),
        time_budget_seconds=None if budget is None else float(budget),
        end_to_end=bool(document["end_to_end"]),
        retry_failed=bool(document["retry_failed"]),
        # Older requests say nothing of it.
        again=bool(document.get("again")),
        calibration=CalibrationPolicy(document["calibration"]),
        patience=Patience(**document["patience"]),
        memory_limit_bytes=document["memory_limit_bytes"],
        method=Method(document["method"]),
        suite=None if suite is None else SuiteChoice(*map(Path, suite)),
    )


def _settings_from(document: Mapping[str, Any]) -> Settings:
    environment = tuple((str(name), str(value)) for name, value in document["environment"])
    return Settings(**{**document, "environment": environment})


def _kind_of(rule: StoppingRule) -> str:
    return next(kind for kind, each in _RULES.items() if isinstance(rule, each))
