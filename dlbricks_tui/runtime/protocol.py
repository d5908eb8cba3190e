"""What a worker is asked and what it answers.

Both sides import this module, so that it keeps to the syntax and the library of Python 3.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar


class Tensor(NamedTuple):
    """What inference knows of one output: None for what it does not reach."""

    shape: tuple[int, ...] | None
    dtype: str | None


class ArrayType(NamedTuple):
    """What an array is that has to be made."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Network:
    """A graph to be run as it stands: a symbol file of unique node names, and what its variables are, by name.

    `weights` never change; `inputs` are fed, and their order counts. Where `file` names a model file, the worker runs
    that file with its own weights, and `symbol` and `weights` are empty. The framework optimises a file before it runs
    it only if `optimised` is set. `values` are inputs that are fed one number, all others are fed made-up data.
    """

    symbol: str
    inputs: Mapping[str, ArrayType]
    weights: Mapping[str, ArrayType]
    file: str = ""
    optimised: bool = False
    values: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """What is timed.

    The heads of `producer`, in order, become the inputs of `network`, so that these have the layout that a model gives
    them; without one they are plain arrays. `prelude` is a part of the network with the same inputs that is not asked
    about: the time that it takes by itself is taken off. A `cold` program is timed when the caches hold something else,
    and an `evicted` one when those do that a core has for itself. The operators of a network run one after another,
    unless they may run `side_by_side`. Before each run of the network the worker passes over `between_bytes` of memory.
    """

    network: Network
    producer: Network | None = None
    prelude: Network | None = None
    cold: bool = False
    evicted: bool = False
    side_by_side: bool = False
    between_bytes: int = 0


class Reason(str, Enum):
    """Why a worker cannot do what it is asked."""

    MALFORMED = "malformed"
    INCONSISTENT = "inconsistent"
    TOO_LARGE = "too large"
    UNKNOWN_OPERATOR = "unknown operator"
    UNFUSABLE = "unfusable"
    UNBUILDABLE = "unbuildable"
    NOT_FINITE = "not finite"
    NO_FRAMEWORK = "no framework"


class Reply:
    """What a worker answers."""


@dataclass(frozen=True)
class Described(Reply):
    """The versions in the interpreter, what the framework was built with, and whether it fuses by default."""

    python: str
    framework: str
    version: str
    numpy: str
    features: tuple[str, ...]
    fuses: bool


@dataclass(frozen=True)
class Inferred(Reply):
    """For each node of the file the outputs that others may read; `unknown` nodes have operators it lacks."""

    outputs: tuple[tuple[Tensor, ...], ...]
    unknown: tuple[int, ...]


@dataclass(frozen=True)
class Fused(Reply):
    """The optimised graph, the outputs of its nodes, and for each the nodes asked about that it stands for."""

    symbol: str
    outputs: tuple[tuple[Tensor, ...], ...]
    parts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Loaded(Reply):
    """The program is there and has run once; `bytes` is what the arrays take that enter and leave it."""

    first_run_seconds: float
    outputs: tuple[tuple[int, ...], ...]
    bytes: int


@dataclass(frozen=True)
class Sampled(Reply):
    """How long each timed run took, for each program in the order in which they were asked for."""

    durations_ns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Profiled(Reply):
    """One row of times per profiled run, by the framework's own profiler.

    `nodes` are the operators that ran, by their number in the network, in the order of execution. Starts count from the
    first operator of the run.
    """

    nodes: tuple[int, ...]
    starts_ns: tuple[tuple[int, ...], ...]
    durations_ns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Unloaded(Reply):
    """The programs are gone."""


@dataclass(frozen=True)
class Refused(Reply):
    """The request makes no sense to the framework; `node` is the index of the node at fault where one is."""

    reason: Reason
    message: str
    node: int | None = None


Answer = TypeVar("Answer", bound=Reply)


class Request(Generic[Answer]):
    """What a worker is asked; the parameter is the reply that is no refusal."""


@dataclass(frozen=True)
class Describe(Request[Described]):
    """What is installed?"""


@dataclass(frozen=True)
class Infer(Request[Inferred]):
    """Which shapes and dtypes have the outputs of every node, given those of some variables by name?"""

    symbol: str
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]


@dataclass(frozen=True)
class Fuse(Request[Fused]):
    """What does the framework make of this graph before it runs it?"""

    symbol: str
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]


@dataclass(frozen=True)
class Load(Request[Loaded]):
    """Keep this program ready under that name, in the place of one that has it already.

    It is refused when its arrays take more than the limit, and, where values are checked, when it computes some that
    are not finite.
    """

    program_id: str
    program: Program
    memory_limit_bytes: int | None = None
    check_values: bool = True


@dataclass(frozen=True)
class Sample(Request[Sampled]):
    """How long do these programs take now, one after another, each after `warm` untimed runs unless it is cold?"""

    programs: tuple[str, ...]
    warm: int
    repeat: int


@dataclass(frozen=True)
class Profile(Request[Profiled]):
    """How long does each operator of a loaded program take, in `repeat` runs after `warm` unprofiled ones?"""

    program: str
    warm: int
    repeat: int


@dataclass(frozen=True)
class NullCalls(Request[Sampled]):
    """How long does it take to have almost nothing computed?"""

    count: int


@dataclass(frozen=True)
class Unload(Request[Unloaded]):
    """Forget these programs; one that is not there is forgotten already."""

    programs: tuple[str, ...]


def answers(request: Request[Any], reply: Reply) -> bool:
    """Whether that reply is of the kind which that request is for."""
    return isinstance(reply, _ANSWERS[type(request)])


_ANSWERS: dict[type[Request[Any]], type[Reply]] = {
    Describe: Described,
    Infer: Inferred,
    Fuse: Fused,
    Load: Loaded,
    Sample: Sampled,
    Profile: Profiled,
    NullCalls: Sampled,
    Unload: Unloaded,
}
