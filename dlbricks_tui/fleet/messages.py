"""Messages between the driver of a fleet and its hosts, and their texts: JSON values only.

A host reports itself, receives parcels and tasks, and sends what it has measured while a task runs. Texts are read
strictly, as the other side may be damaged or of another version. The driver checks everything that it receives before
it uses it. docs/how-it-works/fleet.md says what that protects from.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, TypeVar

from dlbricks_tui.fleet.errors import MessageError
from dlbricks_tui.jobs.codec import decoded, from_others, values_of
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.untrusted_json import parsed_document

Found = TypeVar("Found")

# Bytes of a parcel, of a message, and of the outcome of a task, which has all of its records.
MOST_PARCEL_BYTES, MOST_MESSAGE_BYTES, MOST_OUTCOME_BYTES = 1 << 26, 1 << 24, 1 << 28
_SCHEMA = 1
_MOST_KEYS = 200_000
_LONGEST_TEXT = 1000
# Seconds and counts beyond these are not progress.
_LARGEST = 1e12

# A record of the store as JSON.
Document: TypeAlias = Mapping[str, Any]
EndState: TypeAlias = Literal["finished", "cancelled", "failed"]


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


@dataclass(frozen=True, slots=True)
class RuntimeReport:
    """A runtime of a host, with its identity there."""

    framework: str
    version: str
    identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What a host says of itself before it gets any work."""

    dlbricks: str
    python: str
    # The ids of the methods, by name.
    methods: Mapping[str, str]
    runtimes: tuple[RuntimeReport, ...]
    # The record of its system.
    system: Document
    # The time there, ISO 8601 in UTC.
    clock: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Bricks that one host has to measure in one run; results that its store has are sent without measuring."""

    id: str
    # The run to carry out; the host puts the files of the parcels in the place of the models.
    request: RunRequest
    parcels: tuple[str, ...]
    # The keys of the only bricks to measure; empty: all that the parcels hold.
    bricks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """The progress of a task; `waits_for` names the process that measures on the host, if the task has to wait."""

    task: str
    done: int
    of: int
    seconds_left: float | None
    disturbed_rounds: int
    disturbed_seconds: float
    paused: bool = False
    waits_for: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFound:
    """A record of the host's store: a measurement, a failure, or the system or runtime of these."""

    task: str
    record: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNote:
    """Something that the user should know, such as a parcel that cannot be read."""

    task: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded:
    """The end of a task, with the reason."""

    task: str
    state: EndState
    reason: str = ""


HostMessage: TypeAlias = TaskProgress | ResultFound | TaskNote | TaskEnded

_KINDS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in (TaskProgress, ResultFound, TaskNote, TaskEnded)}


def report_text(report: HostReport) -> str:
    """Return the report of a host as text."""
    return _text("dlbricks-host-report", _values(report))


def report_from(text: str) -> HostReport:
    """Return the report in a text; raise MessageError for anything else."""
    return _read(
        text, "dlbricks-host-report", MOST_MESSAGE_BYTES, lambda document: decoded(HostReport, document, from_others())
    )


def task_text(task: Task) -> str:
    """Return a task as text, without names of the user's models, files and inputs."""
    return _text("dlbricks-task", {**_values(task), "request": values_of(for_hosts(task.request))})


def task_from(text: str) -> Task:
    """Return the task in a text; raise MessageError for anything else."""
    reading = from_others(entries=_MOST_KEYS)
    return _read(text, "dlbricks-task", MOST_MESSAGE_BYTES, lambda document: decoded(Task, document, reading))


def for_hosts(request: RunRequest) -> RunRequest:
    """Return a request without everything that only its own host knows: a host fills in its parcels and its runtime.

    Shapes, values and batch sizes are part of the parcels.
    """
    runtime = replace(request.runtime, name=request.runtime.framework, python="")
    return replace(
        request,
        runtime=runtime,
        models=(),
        others=(),
        inputs=(),
        values=(),
        batch_sizes=(),
        suite=None,
        only=(),
        evaluation="",
        unmet=(),
    )


def message_text(message: HostMessage) -> str:
    """Return a message of a host as text."""
    return _text("dlbricks-host-message", _message_values(message))


def message_from(text: str) -> HostMessage:
    """Return the message in a text; raise MessageError for anything else."""
    return _read(text, "dlbricks-host-message", MOST_MESSAGE_BYTES, _message)


def outcome_text(messages: Iterable[HostMessage]) -> str:
    """Return everything that a task found as one text; its last message is the end of the task."""
    return _text("dlbricks-outcome", {"messages": [_message_values(it) for it in messages]})


def outcome_from(text: str) -> tuple[HostMessage, ...]:
    """Return the messages in the outcome of a task; raise MessageError for anything else."""

    def read(document: dict[str, Any]) -> tuple[HostMessage, ...]:
        if document.keys() != {"messages"} or not isinstance(document["messages"], list):
            raise ValueError("is not a list of messages")
        return tuple([_message(it) for it in document["messages"]])

    return _read(text, "dlbricks-outcome", MOST_OUTCOME_BYTES, read)


def _message_values(message: HostMessage) -> dict[str, Any]:
    values = _values(message)
    for name in {"text", "reason"} & values.keys():
        values[name] = values[name][:_LONGEST_TEXT]
    return {"kind": type(message).__name__, **values}


def _message(document: Any) -> HostMessage:
    kind = document.pop("kind", None) if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"is of the unknown kind {str(kind)[:40]!r}")
    message: HostMessage = decoded(_KINDS[kind], document, from_others(_LONGEST_TEXT))
    if isinstance(message, TaskProgress):
        numbers = (message.done, message.of, message.disturbed_rounds, message.disturbed_seconds)
        if not all(0 <= number <= _LARGEST for number in (*numbers, message.seconds_left or 0.0)):
            raise ValueError("tells an impossible progress")
    return message


def _values(message: Any) -> dict[str, Any]:
    return {it.name: getattr(message, it.name) for it in fields(message)}


def _text(format_name: str, values: Mapping[str, Any]) -> str:
    document = {"format": format_name, "schema": _SCHEMA, **values}
    return json.dumps(document, separators=(",", ":"), allow_nan=False, default=_values)


def _read(text: str, format_name: str, most_bytes: int, read: Callable[[dict[str, Any]], Found]) -> Found:
    try:
        content = text.encode()
        if len(content) > most_bytes:
            raise ValueError(f"holds more than {most_bytes >> 20} MiB")
        return read(parsed_document(content, format_name, _SCHEMA))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise MessageError(str(error) or repr(error)) from None
