"""Messages between the driver of a fleet and its hosts, and their texts: JSON values only.

A host reports itself, receives parcels and tasks, and sends what it has measured while a task runs. Texts are read
strictly, as the other side may be damaged or of another version. The driver checks everything that it receives before
it uses it. docs/how-it-works/fleet.md says what that protects from.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, TypeVar

from dlbricks_tui.files import parsed_document
from dlbricks_tui.fleet.request import MessageError
from dlbricks_tui.jobs.codec import decoded, from_others, values_of
from dlbricks_tui.language.architecture import LanguageError
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import LanguageOrder
from dlbricks_tui.printable import printable
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.runtime import Runtime

# Bytes of a parcel, and of a message.
MOST_PARCEL_BYTES, MOST_MESSAGE_BYTES = 1 << 26, 1 << 24
_FORMAT, _SCHEMA = "dlbricks-fleet-message", 1
_MOST_KEYS = 200_000
_LONGEST_TEXT = 1000
# Seconds and counts beyond these are not progress.
_LARGEST = 1e12

# A record of the store as JSON.
Document: TypeAlias = Mapping[str, Any]
TaskState: TypeAlias = Literal["running", "finished", "cancelled", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A network that travels to hosts: the layers of a model without repeated modules, names and weights.

    `sha256` is the hash of its content and its name everywhere. `bricks` has the keys of the bricks to find in it.
    """

    sha256: str
    # The ending of its file, such as `.onnx`.
    suffix: str
    content: bytes = field(repr=False)
    bricks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What a host says of itself before it gets any work."""

    dlbricks: str
    python: str
    # The ids of the methods, by name.
    methods: Mapping[str, str]
    # The identities of its runtimes.
    runtimes: tuple[str, ...]
    # The record of its system.
    system: Document
    # The time there, ISO 8601 in UTC.
    clock: str
    # True if the run of the task that the driver asks about was not killed: it goes on, or has come to its end.
    lived: bool = False
    # For the doctor: the digest of its files, the versions of packages, why frameworks do not start, what else was
    # noticed (the subject, its state, and a cure if it needs one), and the number of bricks with results in its store.
    content: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    noticed: tuple[tuple[str, str, str], ...] = ()
    bricks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Bricks that one host has to measure in one run; results that its store has are sent without measuring."""

    id: str
    # The run to carry out; the host puts the files of the parcels in the place of the models.
    request: RunRequest
    # The keys of the only bricks to measure.
    bricks: tuple[str, ...]
    # A language model to measure in place of parcels.
    language: LanguageOrder | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """A task as it is now, or how it has ended; `waits_for` names the process that measures on the host before it."""

    state: TaskState = "running"
    # The reason for the end.
    reason: str = ""
    done: int = 0
    of: int = 0
    seconds_left: float | None = None
    disturbed_rounds: int = 0
    disturbed_seconds: float = 0.0
    paused: bool = False
    waits_for: str = ""
    # Something that the user should know, such as a parcel that cannot be read.
    note: str = ""

    def __post_init__(self) -> None:
        numbers = (self.of, self.disturbed_rounds, self.disturbed_seconds, self.seconds_left or 0.0)
        if not (0 <= self.done <= self.of and all(0 <= number <= _LARGEST for number in numbers)):
            raise ValueError(f"tells an impossible progress, {self.done:.10g} of {self.of:.10g} bricks")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFound:
    """A record of the host's store: a measurement, a failure, or peaks."""

    record: Document


# What a host tells while it carries out a task; the last progress is its end.
HostMessage: TypeAlias = TaskProgress | ResultFound
Message = TypeVar("Message", bound=HostReport | Task | HostMessage)


def text_of(message: HostReport | Task | HostMessage) -> str:
    """Return a message as text; a task without names of the user's models, files and inputs."""
    if isinstance(message, Task):
        message = _for_hosts(message)
    values: dict[str, Any] = {it.name: getattr(message, it.name) for it in fields(message)}
    values |= {name: values[name][:_LONGEST_TEXT] for name in ("note", "reason") if name in values}
    document = {"format": _FORMAT, "schema": _SCHEMA, "kind": type(message).__name__, **values}
    return json.dumps(document, separators=(",", ":"), allow_nan=False, default=values_of)


def message_in(text: str, *kinds: type[Message]) -> Message:
    """Return the message of one of these kinds in a text; raise MessageError for anything else."""
    try:
        content = text.encode()
        if len(content) > MOST_MESSAGE_BYTES:
            raise ValueError(f"holds more than {MOST_MESSAGE_BYTES >> 20} MiB")
        document = parsed_document(content, _FORMAT, _SCHEMA)
        name = document.pop("kind", None)
        kind = next((it for it in kinds if it.__name__ == name), None)
        if kind is None:
            raise ValueError(f"is of the unknown kind {str(name)[:40]!r}")
        # What a host says of a task is shown.
        clean, entries = (printable, 100) if kind is TaskProgress else (None, _MOST_KEYS)
        return decoded(kind, document, from_others(entries=entries, clean=clean))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, LanguageError) as error:
        raise MessageError(str(error) or repr(error)) from None


def _for_hosts(task: Task) -> Task:
    """Return a task without everything that only this host knows: a host fills in its parcels and its runtime.

    Shapes, values and batch sizes are part of the parcels. Of a language model only its architecture is sent.
    """

    def unnamed(runtime: Runtime) -> Runtime:
        return replace(runtime, name=runtime.framework, python="")

    nothing: Any = dict.fromkeys(("models", "others", "inputs", "values", "batch_sizes", "only", "unmet"), ())
    request = replace(task.request, runtime=unnamed(task.request.runtime), suite=None, evaluation="", **nothing)
    if (order := task.language) is not None:
        asked = [
            replace(it, model=NamedModel("model", it.model.architecture), runtime=unnamed(it.runtime))
            for it in order.questions
        ]
        order = replace(order, questions=tuple(asked))
    return replace(task, request=request, language=order)
