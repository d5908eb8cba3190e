"""An evaluation: everything that a measurement depends on, as a file states it; its tables, keys and JSON schema."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.runtime.runtime import TUNING_PREFIXES
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import AskedVariants, InstructionSet, Precision, Variant
from dlbricks_tui.scenarios.kinds import AskedScenario
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.loads import ARRIVAL, BATCHES, SERVING
from dlbricks_tui.settings.measuring import END_TO_END, ENOUGH, METHOD, HowMeasured
from dlbricks_tui.settings.setting import Setting, ValueKind, flag, one_of, several
from dlbricks_tui.settings.variant import EXECUTION, PRECISION, THREADS
from dlbricks_tui.store.records import Facts

# The version of the file format.
FORMAT = 1
# The characters of a hash that messages and marks show.
SHORT_HASH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedModel:
    """A model by its content, and where to find it. A model with files of two formats is stated once for each."""

    name: str
    # Of the model file, unpacked if it is gzipped; empty: any content.
    sha256: str = ""
    # Relative to the folder of the evaluation, or absolute; empty: the library has a model of this name or content.
    path: str = ""
    inputs: Mapping[str, Shape] = field(default_factory=dict)
    values: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedRuntime(AskedVariants):
    """A framework with a version constraint, and the variants in which it runs the models.

    Each combination of the values of the variants is measured.
    """

    framework: str
    # As in requirements of Python packages, such as `>=1.20,<2`; empty: any version.
    version: str = ""
    # Environment variables that tune the framework. A variable of the shell that is not among them is a difference.
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring(HowMeasured):
    """How the models are cut and timed; None leaves the value to the program."""

    granularity: int = 1
    cut: Cut = Cut.CHAIN
    order: LayerOrder | None = None
    bricks: bool = True
    end_to_end: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedScenario(AskedScenario):
    """A scenario that each model is measured in, by each runtime with its first variant."""

    batch: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The requirements on the system; None and empty values require nothing."""

    # A number such as `4`, or a limit such as `>=4`.
    cores: str = ""
    memory_gib: str = ""
    # A part of the name of the processor.
    cpu: str = ""
    instance_type: str = ""
    # The processor has all of these.
    instructions: tuple[InstructionSet, ...] = ()
    governor: str = ""
    turbo: bool | None = None
    hyper_threading: bool | None = None
    # No other program computes, and no processor time is stolen.
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedResult(Variant):
    """A result of the run from which the evaluation was written: a whole model in one combination.

    Values of the variant are those of the run. `samples_ms` are of the whole model; empty if only bricks were timed.
    """

    model: str
    framework: str
    version: str
    variables: Mapping[str, str] = field(default_factory=dict)
    when: str
    measured_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    samples_ms: tuple[float, ...] = ()
    # The sequential estimate and its 95 % interval; None if not all bricks were measured.
    estimate_ms: float | None = None
    estimate_low_ms: float | None = None
    estimate_high_ms: float | None = None
    # The versions of packages, such as `onednn`, and facts about the host at that time, such as `kernel`.
    packages: Facts = ()
    host: Facts = ()
    # The SHA-256 of the model file, unpacked; empty: not known.
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What to measure, on which system, and the results of an earlier run to compare with."""

    name: str
    # What it is for, in a sentence.
    about: str = ""
    models: tuple[EvaluatedModel, ...]
    runtimes: tuple[EvaluatedRuntime, ...]
    measuring: Measuring = field(default_factory=Measuring)
    scenarios: tuple[EvaluatedScenario, ...] = ()
    system: Requirements = field(default_factory=Requirements)
    results: tuple[RecordedResult, ...] = ()
    # Of the text of the file.
    sha256: str = ""

    @property
    def label(self) -> str:
        """The name and the beginning of the hash, by which results name their evaluation."""
        return f"{self.name}@{self.sha256[:SHORT_HASH]}" if self.sha256 else self.name


class EvaluationError(UserError):
    """An evaluation that cannot be read, written or carried out; the message says where and what to do."""


Schema = Mapping[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a table: the JSON schema of its values, and what a valid value becomes."""

    schema: Schema
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTable:
    """A table of a file, and the class that it becomes."""

    kind: type
    # Of an evaluation.
    field: str
    about: str
    keys: Mapping[str, Key]
    # The description of all tables of this name, and the most of them; empty: there is one.
    together: str = ""
    most: int = 1

    @property
    def schema(self) -> Schema:
        """The JSON schema of the table, or of all tables of this name."""
        optional = {it.name for it in fields(self.kind) if (it.default, it.default_factory) != (MISSING, MISSING)}
        found = {
            "description": self.about,
            "type": "object",
            "required": [name for name in self.keys if name not in optional],
            "additionalProperties": False,
            "properties": {name: key.schema for name, key in self.keys.items()},
        }
        if not self.together:
            return found
        return {"description": self.together, **_list(found, self.most)}


def as_list(value: Any) -> list[Any]:
    """Return the values of a key that takes one, several or none."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _own(about: str, schema: Schema, read: Callable[[Any], Any] = lambda value: value) -> Key:
    """Declare a key that is no setting."""
    return Key({"description": about, **schema}, read)


def _by(kind: ValueKind[Any], about: str) -> Key:
    return _own(about, kind.schema, kind.load)


def of_settings(*settings: Setting[Any], many: bool = False, usual: bool = True, **others: Key) -> dict[str, Key]:
    """Declare the keys that are settings, which may have several values; the others replace some of them."""
    return {it.field: _by(it.many if many else it.kind, _about(it, usual=usual)) for it in settings} | others


def _about(setting: Setting[Any], *, usual: bool = True) -> str:
    told = f" Without it: {setting.usual}." if usual and setting.usual else ""
    return f"{setting.about[0].upper()}{setting.about[1:]}.{told}"


def _limit(value: Any) -> str:
    """Return a limit as text, a number without an exponent."""
    return value if isinstance(value, str) else f"{value:.9f}".rstrip("0").rstrip(".")


def _facts(value: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(value.items())


def _text(most: int, pattern: str = "", says: str = "") -> Schema:
    found = {"type": "string", "maxLength": most}
    return {**found, "pattern": pattern, "patternErrorMessage": says} if pattern else found


def _list(items: Schema, most: int, **more: Any) -> Schema:
    return {"type": "array", "maxItems": most, "items": items, **more}


def _mapping(values: Schema, most: int = 100, **more: Any) -> Schema:
    return {"type": "object", "maxProperties": most, **more, "additionalProperties": values}


_LINE = "^[^\\u0000-\\u001f\\u007f]+$"
_NAME = _text(200, _LINE, "text in one line that is not empty")
_SHA256 = _text(4000, "^[0-9a-f]{64}$", "64 hexadecimal digits in lower case")
_FRAMEWORK = {"enum": list(TRAITS)}
_LENGTH = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
_NUMBER = {"type": "number"}
_LATENCY = {**_NUMBER, "exclusiveMinimum": 0, "maximum": 1e9}
_LOWER_END = {**_NUMBER, "minimum": -1e9, "maximum": 1e9}
_A_LIMIT = 'a number, or a limit such as ">=4"'
_LIMIT_AS_TEXT = _text(200, r"^(==|>=|<=|=|>|<|) *[0-9]{1,9}(\.[0-9]{1,9})?$", _A_LIMIT)
_LIMIT = {"anyOf": [_LATENCY, _LIMIT_AS_TEXT], "patternErrorMessage": _A_LIMIT}
_OF_FILES = "PATH|LIBRAR|TOOL|HOME|ROOT|DIR|FILE|DUMP|TRACE|LOAD|PLUGIN|EXTENSION|CONF"
_TUNING_VARIABLE = {
    "pattern": f"^(?!.*({_OF_FILES}))({'|'.join(TUNING_PREFIXES)})[A-Z0-9_]{{1,100}}$",
    "patternErrorMessage": "a variable that tunes a framework, such as OMP_WAIT_POLICY, and names no file",
}
_WITHOUT_SLASHES = _text(1000, r"^[^/\\\u0000-\u001f\u007f]*$", "text in one line without slashes")
_FACTS = _mapping({"type": ["string", "number", "boolean"], "maxLength": 4000}, 200)
_TRUTH = flag().schema
_PRECISIONS = one_of(*Precision)

TABLES: Mapping[str, FileTable] = {
    "model": FileTable(
        kind=EvaluatedModel,
        field="models",
        about="A model by its content, and where to find it. A model with files of two formats is stated once for "
        "each.",
        together="The models, one table for each.",
        most=1000,
        keys={
            "name": _own("A name that `dlbricks models` lists, or any name if there is a path.", _NAME),
            "sha256": _own(
                "The SHA-256 of the model file, unpacked if it is gzipped. Without it any content will do.", _SHA256
            ),
            "path": _own(
                "The model file, relative to the folder of the evaluation, or absolute. Without it the library is "
                "searched.",
                _text(4000, _LINE, "the path of a file"),
            ),
            "inputs": _own(
                "The shapes of inputs whose shape is not in the file, such as `data = [1, 3, 224, 224]`.",
                _mapping(_list(_LENGTH, 32)),
                lambda value: {name: tuple(map(int, shape)) for name, shape in value.items()},
            ),
            "values": _own(
                "The values of inputs that are settings, such as `sr = 16000`.",
                _mapping({"anyOf": [_NUMBER, _list(_NUMBER, 1024, minItems=1)]}),
                lambda value: {name: tuple(as_list(numbers)) for name, numbers in value.items()},
            ),
        },
    ),
    "runtime": FileTable(
        kind=EvaluatedRuntime,
        field="runtimes",
        about="A framework with a version constraint, and its variants. Each combination of the values is measured.",
        together="The frameworks with their variants, one table for each.",
        most=100,
        keys={
            "framework": _own("The framework that runs the models.", _FRAMEWORK),
            "version": _own(
                "The versions of the framework that will do, as in requirements of Python packages: `>=1.20,<2`, "
                "`==1.9.1`.",
                _text(200),
            ),
            **of_settings(
                THREADS,
                *EXECUTION,
                many=True,
                precision=_by(
                    several(_PRECISIONS),
                    f"{_about(PRECISION)} `file` stands for models that are quantised in their file.",
                ),
            ),
            "variables": _own(
                "Environment variables that tune the framework. They name no files, so that nothing runs by accident.",
                _mapping(_WITHOUT_SLASHES, propertyNames=_TUNING_VARIABLE),
            ),
        },
    ),
    "measure": FileTable(
        kind=Measuring,
        field="measuring",
        about="How the models are cut and timed.",
        keys={
            **of_settings(LEVEL, *CUTTING, METHOD),
            "bricks": _own("Whether the bricks are timed.", _TRUTH),
            **of_settings(END_TO_END, *ENOUGH),
        },
    ),
    "scenario": FileTable(
        kind=EvaluatedScenario,
        field="scenarios",
        about="How requests arrive, and what is asked of their latencies.",
        together="Scenarios that each model is measured in, by each runtime with its first variant.",
        most=100,
        keys={**of_settings(*ARRIVAL), "batch": _by(BATCHES.many, _about(BATCHES)), **of_settings(*SERVING)},
    ),
    "system": FileTable(
        kind=Requirements,
        field="system",
        about="Requirements on the system. On another system `dlbricks evaluate` refuses, unless --anyway is given.",
        keys={
            "cores": _own('The usable cores: a number, or a limit such as ">=4".', _LIMIT, _limit),
            "memory_gib": _own('The memory in GiB: a number, or a limit such as ">=16".', _LIMIT, _limit),
            "cpu": _own('A part of the name of the processor, such as "EPYC".', _NAME),
            "instance_type": _own('The type of the cloud instance, such as "c6i.large".', _NAME),
            "instructions": _by(
                several(one_of(*(it for it in InstructionSet if it is not InstructionSet.ALL))),
                "Vector instructions that the processor has, all of them.",
            ),
            "governor": _own('The frequency governor of the kernel, such as "performance".', _NAME),
            "turbo": _own("Whether the processor may exceed its base frequency.", _TRUTH),
            "hyper_threading": _own("Whether cores run two threads.", _TRUTH),
            "quiet": _own("Whether other programs must leave the processor alone.", _TRUTH),
        },
    ),
    "result": FileTable(
        kind=RecordedResult,
        field="results",
        about="A result of the run from which the evaluation was written: a whole model in one combination.",
        together="Results of an earlier run, which `--compare` compares with those of today.",
        most=5000,
        keys={
            "model": _own("The name of one of the models above.", _NAME),
            "framework": _own("The framework that ran the model.", _FRAMEWORK),
            "version": _own("The version of the framework.", _NAME),
            **of_settings(
                THREADS,
                *EXECUTION,
                usual=False,
                threads=_by(THREADS.kind, "The threads; without it, those that the framework starts by default."),
                precision=_by(_PRECISIONS, _about(PRECISION, usual=False)),
            ),
            "variables": _own("The environment variables that tuned the framework.", _mapping(_text(4000))),
            "when": _own(
                'The time of the measurement with its time zone, such as "2026-11-27T08:00:00+00:00".', _text(40)
            ),
            "measured_ms": _own("The latency of the whole model, in milliseconds.", _LATENCY, float),
            "low_ms": _own("The lower end of its 95 % interval.", _LOWER_END, float),
            "high_ms": _own("The upper end of its 95 % interval.", _LATENCY, float),
            "samples_ms": _own(
                "All samples of the whole model, in the order in which they were taken.",
                _list(_LATENCY, 100_000),
                lambda value: tuple(map(float, value)),
            ),
            "estimate_ms": _own("The latency that is composed of the bricks, one after another.", _LATENCY, float),
            "estimate_low_ms": _own("The lower end of the 95 % interval of the estimate.", _LOWER_END, float),
            "estimate_high_ms": _own("The upper end of the 95 % interval of the estimate.", _LATENCY, float),
            "packages": _own("The versions of packages and libraries, such as `onednn`.", _FACTS, _facts),
            "host": _own("Facts about the host at the time, such as `kernel` and `governor`.", _FACTS, _facts),
            "sha256": _own("The SHA-256 of the file that was measured.", _SHA256),
        },
    ),
}


@cache
def schema() -> Schema:
    """Return the JSON schema of a file, for its check and for editors."""
    tables = {name: table.schema for name, table in TABLES.items()}
    needed = ("model", "runtime")
    return {
        "$schema": _DIALECT,
        "title": "Evaluation of dlbricks",
        "description": "What to measure, on which system, and the results of an earlier run to compare with. "
        "`dlbricks evaluate FILE` carries it out.",
        "type": "object",
        "required": ["format", "name", *needed],
        "additionalProperties": False,
        "properties": {
            "format": {"description": "The version of the file format.", "const": FORMAT},
            "name": {
                "description": "The name of the evaluation. Results show it with the beginning of the hash of the "
                "file.",
                **_NAME,
            },
            "about": {"description": "What the evaluation is for, in a sentence.", **_text(4000)},
            **{name: {**part, "minItems": 1} if name in needed else part for name, part in tables.items()},
        },
    }
