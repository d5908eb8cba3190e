"""An evaluation: everything that a measurement depends on, as a file states it, so that anyone can repeat it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.runtime.variant import AskedVariants, InstructionSet, Variant
from dlbricks_tui.settings.loads import AskedScenario
from dlbricks_tui.settings.measuring import HowMeasured
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
