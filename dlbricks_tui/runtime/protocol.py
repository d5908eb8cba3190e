"""The requests to a worker and its replies.

Both sides import this module, so it uses only the syntax and the standard library of Python 3.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar, Union

# A finite number, which may be negative; an `int` in a message is a count.
Number = float
# A number, or a text for an input of texts.
Value = Union[float, str]  # noqa: UP007 - Python 3.7 evaluates it


class Tensor(NamedTuple):
    """The type of one output as far as inference reaches; None where it does not."""

    shape: tuple[int, ...] | None
    dtype: str | None


class Held(NamedTuple):
    """An output of one run: its type, and its numbers if they are few."""

    shape: tuple[int, ...]
    dtype: str
    numbers: tuple[Number, ...]


class Said(NamedTuple):
    """A line that oneDNN printed, and the number of the operator that ran; None if the framework does not tell."""

    line: str
    node: int | None


class TracedOperator(NamedTuple):
    """An operator in one run: its number in the network, its kind as the framework calls it, and its time.

    The start counts from the start of the run.
    """

    node: int
    kind: str
    start_ns: int
    duration_ns: int


class ArrayType(NamedTuple):
    """The type of an array that the worker creates."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Network:
    """A graph to run as it is: a symbol file of unique node names, and the types of its variables.

    `weights` never change. `inputs` are fed, in this order; those in `values` hold these numbers or texts, or
    one of them throughout; all others hold synthetic data. Where `file` names a model file, the worker runs that file
    with its own weights, and `symbol` and `weights` are empty. The framework optimises the file only if `optimised` is
    set. `in_place` has inputs, such as the cache of a decoder, each with the place of the output that is written to its
    array: a run reads what the run before has written. Where weights are `distinct`, no two have the same values: ONNX
    Runtime keeps equal ones once.
    """

    symbol: str
    inputs: Mapping[str, ArrayType]
    weights: Mapping[str, ArrayType]
    file: str = ""
    optimised: bool = False
    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    in_place: Mapping[str, int] = field(default_factory=dict)
    distinct: bool = False


@dataclass(frozen=True)
class Program:
    """A program to time.

    The outputs of `producer`, in order, become the inputs of `network`, so that they have the layouts that a model
    gives them. Without a producer the inputs are plain arrays. `prelude` is a part of the network with the same inputs,
    whose time is subtracted. Before a `cold` program all caches are swept. Operators run one after another, unless
    they may run `side_by_side`. Before each run of the network the worker reads and writes `between_bytes` of memory;
    if it `only_reads` them, nothing is left to be written back while the network runs.
    """

    network: Network
    producer: Network | None = None
    prelude: Network | None = None
    cold: bool = False
    side_by_side: bool = False
    between_bytes: int = 0
    only_reads: bool = False


@dataclass(frozen=True)
class TracedRun:
    """A run of a whole program.

    Its start is told by the monotonic clock, which all processes of a host share, and by the clock of the host, which
    oneDNN reads. Operators are in the order of their starts, and lines of oneDNN in the order of their printing.
    """

    start_ns: int
    host_ns: int
    duration_ns: int
    operators: tuple[TracedOperator, ...] = ()
    lines: tuple[Said, ...] = ()


# The name of a program that each worker has: it computes almost nothing.
NULL_PROGRAM = "null"


class Reason(str, Enum):
    """The reason for a refusal."""

    MALFORMED = "malformed"
    INCONSISTENT = "inconsistent"
    TOO_LARGE = "too large"
    NO_ROOM = "no room"
    UNKNOWN_OPERATOR = "unknown operator"
    UNFUSABLE = "unfusable"
    UNBUILDABLE = "unbuildable"
    NOT_FINITE = "not finite"
    NO_FRAMEWORK = "no framework"
    NO_PRECISION = "no precision"


class Reply:
    """A reply of a worker."""


@dataclass(frozen=True)
class Described(Reply):
    """The versions in the interpreter. `packages` has those of all that computes, by name, as far as they are known.

    Beside them are settings that the framework has chosen itself.
    """

    python: str
    framework: str
    version: str
    packages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Inferred(Reply):
    """The outputs of each node of the file. The framework lacks the operators of the `unknown` nodes."""

    outputs: tuple[tuple[Tensor, ...], ...]
    unknown: tuple[int, ...]


@dataclass(frozen=True)
class Fused(Reply):
    """The optimised graph, the outputs of its nodes, and for each node the requested nodes that it stands for."""

    symbol: str
    outputs: tuple[tuple[Tensor, ...], ...]
    parts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Recorded(Reply):
    """The outputs of one run; None for an output that is no tensor."""

    outputs: tuple[Held | None, ...]


@dataclass(frozen=True)
class Quantised(Reply):
    """The quantised copy is written."""


@dataclass(frozen=True)
class EngineOpened(Reply):
    """The engine of this version has loaded a language model; it may be another one than was expected."""

    version: str
    seconds: float
    name: str = ""


@dataclass(frozen=True)
class Generated(Reply):
    """The time until the first token, that of each later one, and the processor time of all of them.

    `peak_bytes` is the most memory that the worker has held so far.
    """

    first_ns: int
    later_ns: tuple[int, ...]
    processor_ns: int
    peak_bytes: int


class ServedAnswer(NamedTuple):
    """The answer to a request of a user: when it was due, had its first token, and ended."""

    user: int
    asked_ns: int
    first_ns: int
    ended_ns: int


@dataclass(frozen=True)
class Served(Reply):
    """The answers to all requests, by their ends."""

    answers: tuple[ServedAnswer, ...]


@dataclass(frozen=True)
class Loaded(Reply):
    """The program is loaded and has run.

    With `allocates`, each run makes new arrays for the outputs, as those of the first run do not fit.
    """

    first_run_seconds: float
    allocates: bool = False


@dataclass(frozen=True)
class Sampled(Reply):
    """The duration of each timed run, per program in the order of the request."""

    durations_ns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Profiled(Reply):
    """The times of operators by the framework's own profiler, one row per profiled run.

    `nodes` are the operators that ran, as their numbers in the network, in the order of execution; an operator that the
    network lacks has a number that no other has. Starts count from the first operator of the run. A profiler that only
    adds up gives one row, the mean of all runs.
    """

    nodes: tuple[int, ...]
    starts_ns: tuple[tuple[int, ...], ...]
    durations_ns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TracedRuns(Reply):
    """The traced runs of a program.

    A profiler that only adds up does not have starts: each run has the mean durations of all, one after another.
    """

    runs: tuple[TracedRun, ...]
    has_starts: bool


@dataclass(frozen=True)
class Explained(Reply):
    """The lines of oneDNN about its kernels, in order."""

    lines: tuple[Said, ...]


@dataclass(frozen=True)
class Unloaded(Reply):
    """The programs are unloaded."""


@dataclass(frozen=True)
class Refused(Reply):
    """The framework rejects the request. `node` is the index of the node at fault, if one is known."""

    reason: Reason
    message: str
    node: int | None = None


Answer = TypeVar("Answer", bound=Reply)


class Request(Generic[Answer]):
    """A request to a worker. The parameter is the type of its reply, unless the reply is a refusal."""


@dataclass(frozen=True)
class Describe(Request[Described]):
    """Ask for the versions in the interpreter."""


@dataclass(frozen=True)
class Infer(Request[Inferred]):
    """Ask for the shapes and dtypes of all outputs, given the shapes of some variables by name."""

    symbol: str
    shapes: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Fuse(Request[Fused]):
    """Ask for the graph that the framework's optimiser makes of a network, or of the model file that it names."""

    network: Network


@dataclass(frozen=True)
class Record(Request[Recorded]):
    """Run a network once and ask for the types of its outputs.

    If it fails on synthetic data, inputs of zeros are tried, and then inputs of ones.
    """

    network: Network


@dataclass(frozen=True)
class Quantise(Request[Quantised]):
    """Write a copy of a model file that computes with integers of 8 bits.

    The network names the file and the types of its inputs. `dynamically` allows the copy to find the ranges of tensors
    in each run; otherwise they are those of one run on synthetic inputs.
    """

    network: Network
    copy: str
    dynamically: bool


@dataclass(frozen=True)
class OpenEngine(Request[EngineOpened]):
    """Load a folder of onnxruntime-genai into its engine, in place of an earlier one."""

    folder: str
    threads: int


@dataclass(frozen=True)
class Generate(Request[Generated]):
    """Let the engine read so many tokens and make so many others, each the most likely one."""

    prompt: int
    tokens: int


@dataclass(frozen=True)
class Serve(Request[Served]):
    """Let the engine serve users, who each wait for their answer of so many tokens before they ask again.

    It makes at most a `batch` of answers together. `pauses_s` has the seconds before each request of a user: since the
    start, or since the answer before it.
    """

    prompt: int
    tokens: int
    batch: int
    pauses_s: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Load(Request[Loaded]):
    """Load a program under a name, in place of a program of that name.

    The worker refuses it if its arrays take more than the limit or, where values are checked, if it computes some that
    are not finite.
    """

    program_id: str
    program: Program
    memory_limit_bytes: int | None = None
    check_values: bool = True


@dataclass(frozen=True)
class Sample(Request[Sampled]):
    """Time these programs one after another, each after `warm` untimed runs unless it is cold."""

    programs: tuple[str, ...]
    warm: int
    repeat: int


@dataclass(frozen=True)
class Profile(Request[Profiled]):
    """Time each operator of a loaded program in `repeat` runs, after `warm` unprofiled ones."""

    program: str
    warm: int
    repeat: int


@dataclass(frozen=True)
class TraceRuns(Request[TracedRuns]):
    """Run a loaded program `repeat` times, after `warm` runs that are not traced.

    With `operators`, the framework's own profiler times each operator. With `lines`, the reply has what oneDNN prints.
    """

    program: str
    warm: int
    repeat: int
    operators: bool
    lines: bool


@dataclass(frozen=True)
class Explain(Request[Explained]):
    """Ask for what oneDNN prints about the kernels of a network, if the settings of the runtime make it print."""

    network: Network


@dataclass(frozen=True)
class Unload(Request[Unloaded]):
    """Unload these programs; names of no program are ignored."""

    programs: tuple[str, ...]


def answers(request: Request[Any], reply: Reply) -> bool:
    """Return true if the reply is of the type for that request."""
    declared: Any = type(request)
    return isinstance(reply, declared.__orig_bases__[0].__args__[0])
